package fetch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
)

// pending is a request without an answer. It is on disk before it is sent. Body and PrivateKey are
// made once, and Key is the same each time the request is sent.
type pending struct {
	Key        string          `json:"key"`     // idempotency key
	Digest     string          `json:"digest"`  // digest of the need
	Answers    int             `json:"answers"` // number of earlier answers to the need
	Rotation   int             `json:"rotation,omitempty"`
	Body       json.RawMessage `json:"body"`
	PrivateKey string          `json:"privateKey,omitempty"` // PEM, PKCS #8 (RFC 5958)
}

func (h *Host) pendingPath(need string) string {
	return filepath.Join(h.Layout.Need(need), "pending.json")
}

// readPending reads the pending request of a need.
func (h *Host) readPending(need string) (p pending, found bool, err error) {
	b, err := os.ReadFile(h.pendingPath(need))
	if errors.Is(err, fs.ErrNotExist) {
		return pending{}, false, nil
	}
	if err != nil {
		return pending{}, false, err
	}
	found = strictjson.Decode(b, &p) == nil
	return p, found, nil
}

// pending returns the pending request of a need. It makes a new one if there is none, or if it
// belongs to a changed need or has been answered.
func (h *Host) pending(a Attempt) (pending, error) {
	p, found, err := h.readPending(a.Need.ID)
	if err != nil {
		return pending{}, err
	}
	if found && p.Digest == a.Digest && p.Answers == a.Answers && p.Rotation == a.Rotation {
		p.Key, err = h.request(a, p).Key(h.Manifest.Identity.ID) // the identity of the sender may have changed
		return p, err
	}
	p = pending{Digest: a.Digest, Answers: a.Answers, Rotation: a.Rotation, Body: a.Need.Request}
	if a.Need.Kind == document.KindCert {
		if p.Body, p.PrivateKey, err = h.certRequest(a.Need); err != nil {
			return pending{}, err
		}
	}
	if a.Need.Kind == document.KindTLS {
		if p.Body, p.PrivateKey, err = h.tlsRequest(a.Need, time.Now()); err != nil {
			return pending{}, err
		}
	}
	if p.Key, err = h.request(a, p).Key(h.Manifest.Identity.ID); err != nil {
		return pending{}, err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return pending{}, err
	}
	return p, atomicfile.FileIn(h.pendingPath(a.Need.ID), b, 0o600)
}

// request returns a pending request in the form in which it is sent.
func (h *Host) request(a Attempt, p pending) hostapi.Request {
	return hostapi.Request{Need: a.Need.ID, Serial: h.Serial, Generation: a.Need.Generation, Rotation: a.Rotation, Body: p.Body, IdempotencyKey: p.Key}
}

// Answered reports whether the pending request of a need was answered. answers is the number of
// answers that the need has received so far.
func (h *Host) Answered(need string, answers int) bool {
	p, found, err := h.readPending(need)
	return err == nil && found && p.Answers != answers
}

// Forget removes the pending request of a need after its answer was delivered.
func (h *Host) Forget(need string) error {
	if err := os.Remove(h.pendingPath(need)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
