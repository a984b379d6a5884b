package fetch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"florete"
	"florete/activation/backoff"
	"florete/activation/delivery"
	"florete/providers/api"
)

// pending is a request that has no answer yet, on disk before it is sent. Body
// and PrivateKey are made once, and Key is the same each time it is sent.
type pending struct {
	Key        string          `json:"key"`    // idempotency key
	Digest     string          `json:"digest"` // of the need
	Since      int64           `json:"since"`  // when the need was fulfilled before
	Body       json.RawMessage `json:"body"`
	PrivateKey string          `json:"privateKey,omitempty"` // PEM, PKCS #8 (RFC 5958)
}

func (h *Host) pendingPath(need string) string {
	return filepath.Join(h.Layout.Need(need), "pending.json")
}

// pending reads what is pending for a need, or makes it when there is nothing or
// what there is belongs to another need, or to an effort that has ended.
func (h *Host) pending(a Ask) (pending, error) {
	since := backoff.At(a.Since).Seconds()
	b, err := os.ReadFile(h.pendingPath(a.Need.ID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pending{}, err
	}
	if err == nil {
		var p pending
		if florete.Decode(b, &p) == nil && p.Digest == a.Digest && p.Since == since {
			return p, nil
		}
	}
	p := pending{Digest: a.Digest, Since: since, Body: a.Need.Request}
	if a.Need.Kind == "cert" {
		if p.Body, p.PrivateKey, err = certRequest(a.Need); err != nil {
			return pending{}, err
		}
	}
	r := api.Request{Need: a.Need.ID, Generation: a.Need.Generation, Body: p.Body}
	if p.Key, err = r.Key(h.Manifest.Identity.ID); err != nil {
		return pending{}, err
	}
	if b, err = json.Marshal(p); err != nil {
		return pending{}, err
	}
	return p, delivery.WriteFile(h.pendingPath(a.Need.ID), b, 0o600)
}
