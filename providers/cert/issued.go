package cert

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// issuedPrefix is the key prefix of the records of issued SVIDs. Records sort by the end of the
// SVID and then by its issuance. SVIDs issued at about the same time are then written to the same
// pages of the store.
const issuedPrefix = "cert/issued/"

// keptAfter is the time for which a record is kept after the end of its certificate. This allows
// for differences between clocks.
const keptAfter = time.Hour

func issuedBefore(t time.Time) string { return fmt.Sprintf("%s%010x", issuedPrefix, t.Unix()) }

// keepIssued returns the store operation that records an SVID. It belongs in the transaction that
// issues the SVID.
func keepIssued(leaf *x509.Certificate, id spiffe.ID) store.Op {
	is := trust.IssuedOf(leaf, id)
	b := strictjson.Encode(is)
	return store.Put(fmt.Sprintf("%s-%09d-%s", issuedBefore(is.Until.Time), time.Now().Nanosecond(), is.Serial), b)
}

// issued calls a function with the record of every SVID that ends after the given time.
func (i *Issuer) issued(ctx context.Context, end time.Time, each func(trust.Issued)) error {
	for e, err := range store.All(ctx, i.Store, issuedPrefix, issuedBefore(end), 1000) {
		if err != nil {
			return err
		}
		var is trust.Issued
		if err := json.Unmarshal(e.Value, &is); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		}
		each(is)
	}
	return nil
}

// forgetEnded removes the records of expired SVIDs.
func (i *Issuer) forgetEnded(ctx context.Context, now time.Time) error {
	end := issuedBefore(now.Add(-keptAfter))
	for {
		page, err := i.Store.Page(ctx, issuedPrefix, "", store.MaxOps)
		if err != nil {
			return err
		}
		var txn store.Txn
		for _, e := range page {
			if e.Key < end {
				txn.Then = append(txn.Then, store.Delete(e.Key))
			}
		}
		if len(txn.Then) == 0 {
			return nil
		}
		if _, err := i.Store.Commit(ctx, txn); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// codeOwnSVID is the audit code of rows about SVIDs that the provider issued to itself.
const codeOwnSVID = "own-svid"

// recordSelf writes audit rows for the SVIDs that the provider has issued to itself since the last
// call. Such an SVID is already in use when it is recorded, because nobody can reach the provider
// before it has an SVID.
func (i *Issuer) recordSelf(ctx context.Context) error {
	i.self.mu.Lock()
	unrecorded := i.self.unrecorded
	i.self.mu.Unlock()
	for _, u := range unrecorded {
		row := server.Row{Time: u.at.UTC(), Caller: u.id.String(), Kind: Name, Outcome: server.Changed, Code: codeOwnSVID,
			Message: "this provider's own SVID", Detail: issuedDetail(u.leaf, u.id)}
		if _, err := i.Store.Commit(ctx, store.Txn{Then: []store.Op{keepIssued(u.leaf, u.id), row.Op()}}); err != nil {
			return err
		}
		i.self.mu.Lock()
		i.self.unrecorded = i.self.unrecorded[1:]
		i.self.mu.Unlock()
	}
	return nil
}

// issuedDetail returns the details of an SVID for its audit row.
func issuedDetail(leaf *x509.Certificate, id spiffe.ID) map[string]string {
	return map[string]string{"id": id.String(), "certificate": trust.SerialNumber(leaf), "until": leaf.NotAfter.Format(time.RFC3339)}
}
