package cert

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// codeTwoMachines is the audit code of the alarm that two machines act as the same node.
const codeTwoMachines = "two-machines"

const linePrefix = "cert/line/"

// line is the record of the SVIDs that a node has received for itself here, under the key
// cert/line/<node>. The record reveals that two machines have the SSH host key of one node. A node
// requests each SVID with the SVID before it. A single machine therefore presents the newest SVID,
// or the SVID before that if an answer was lost. An older SVID comes from a second machine.
type line struct {
	Newest string `json:"newest"` // serial number of the newest SVID in hex, also in the audit log
	Before string `json:"before"` // serial number of the SVID before; empty after an enrolment
	Since  int64  `json:"since"`  // begin of the newest SVID, in Unix seconds

	// Issuers contains the key IDs, in hex, of the issuing CAs that have extended the line. The CA
	// that extended it last comes first. If replicas share a store, the CAs of all replicas are
	// included.
	Issuers []string `json:"issuers,omitempty"`
}

// maxIssuers is the largest number of issuers in a line. A store has at most five replicas; any
// further issuers are former replicas.
const maxIssuers = 16

// extendLine records that a node receives an SVID for itself. It raises the alarm if a second
// machine acts as the node. An SVID from a provider with another store raises no alarm. An SVID
// that is newer than the record raises none either, because a restore of the store can cause this.
func (i *Issuer) extendLine(ctx context.Context, c server.Call, leaf, issuing *x509.Certificate) (d server.Decision, err error) {
	key := linePrefix + c.Caller.Name()
	var was line
	modified, err := store.Load(ctx, i.Store, key, &was)
	if err != nil {
		return d, err
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
	d.If = []store.Cond{{Key: key, Modified: modified}}
	d.Then = []store.Op{store.Put(key, value)}
	return d, nil
}
