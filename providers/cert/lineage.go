package cert

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// codeTwoMachines is the code of the alarm that two machines act as one node.
const codeTwoMachines = "two-machines"

const linePrefix = "cert/line/"

// line is the record of the SVIDs that a node received for itself here, at cert/line/<node>. Each
// SVID is requested with the one before it, so a machine presents the newest one, or the one before
// if an answer was lost. A machine that presents an older one has left the line: two machines hold
// the node's SSH host key.
type line struct {
	Newest string `json:"newest"` // serial number in hex, also in the audit log
	Before string `json:"before"` // of the SVID that requested it; empty when the node enrolled
	Since  int64  `json:"since"`  // the newest is valid, Unix seconds

	// Issuers has the key IDs, in hex, of the issuing CAs that have extended the line, the last
	// first. With a shared store these are the CAs of all replicas.
	Issuers []string `json:"issuers,omitempty"`
}

// maxIssuers bounds the issuers of a line: the five replicas of a store, and former ones.
const maxIssuers = 16

// extendLine records that a node receives leaf for itself. SVIDs of providers with other stores,
// and SVIDs newer than the record after a restore, belong to any line.
func (i *Issuer) extendLine(ctx context.Context, c server.Call, leaf, issuing *x509.Certificate) (d server.Decision, err error) {
	key := linePrefix + c.Caller.Name()
	var was line
	e, err := i.Store.Get(ctx, key)
	if err == nil {
		err = json.Unmarshal(e.Value, &was)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return d, fmt.Errorf("%s: %w", key, err)
	}
	by := hex.EncodeToString(issuing.SubjectKeyId)
	is := line{Newest: trust.SerialNumber(leaf), Since: leaf.NotBefore.Unix(), Issuers: []string{by}}
	for _, other := range was.Issuers {
		if other != by && len(is.Issuers) < maxIssuers {
			is.Issuers = append(is.Issuers, other)
		}
	}
	if c.SVID != nil {
		is.Before = trust.SerialNumber(c.SVID)
		ours := slices.Contains(is.Issuers, hex.EncodeToString(c.SVID.AuthorityKeyId))
		if ours && is.Before != was.Newest && is.Before != was.Before && c.SVID.NotBefore.Unix() <= was.Since {
			d.Alarm = &server.Alarm{
				Code: codeTwoMachines,
				Message: fmt.Sprintf("certificate %s of %s, of %s, requests the next one, want certificate %s: two machines hold its SSH host key, or it was restored from a copy: give the right machine a new key and declare that in the flake",
					is.Before, c.Caller, c.SVID.NotBefore.Format(time.RFC3339), was.Newest),
				Detail: map[string]string{"presented": is.Before, "newest": was.Newest, "before": was.Before},
			}
		}
	}
	value, err := json.Marshal(is)
	if err != nil {
		return d, err
	}
	d.If = []store.Cond{{Key: key, Modified: e.Modified}}
	d.Then = []store.Op{store.Put(key, value)}
	return d, nil
}
