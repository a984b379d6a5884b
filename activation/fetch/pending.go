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

// pending is a request that was not answered yet. It is written to disk before it is sent. If it is
// sent again, its body, its private key and its idempotency key are the same.
type pending struct {
	Key        string          `json:"key"`     // idempotency key
	Digest     string          `json:"digest"`  // digest of the need
	Answers    int             `json:"answers"` // number of earlier answers to the need
	Rotation   int             `json:"rotation,omitempty"`
	Body       json.RawMessage `json:"body"`
	PrivateKey string          `json:"privateKey,omitempty"` // PEM: PKCS #8 (RFC 5958), or OpenSSH's format for kind ssh
}

func (h *Host) pendingPath(need string) string {
	return filepath.Join(h.Layout.Need(need), "pending.json")
}

// readPending reads the pending request for a need from disk.
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

// pending returns the pending request for a need. It creates a new request if there is none, if the
// need has changed, or if the pending request was answered.
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
	switch a.Need.Kind {
	case document.KindCert:
		p.Body, p.PrivateKey, err = h.certRequest(a.Need)
	case document.KindSSH:
		p.Body, p.PrivateKey, err = h.sshRequest(a.Need)
	case document.KindTLS:
		p.Body, p.PrivateKey, err = h.tlsRequest(a.Need, time.Now())
	}
	if err != nil {
		return pending{}, err
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

// request converts a pending request to the form in which it is sent.
func (h *Host) request(a Attempt, p pending) hostapi.Request {
	return hostapi.Request{Need: a.Need.ID, Serial: h.Serial, Generation: a.Need.Generation, Rotation: a.Rotation, Body: p.Body, IdempotencyKey: p.Key}
}

// Answered reports whether the stored request for a need was answered after it was stored. The
// caller passes the number of answers that the need has received so far.
func (h *Host) Answered(need string, answers int) bool {
	p, found, err := h.readPending(need)
	return err == nil && found && p.Answers != answers
}

// Forget removes the stored request for a need. It is called after the answer was delivered, so
// that the next attempt sends a new request.
func (h *Host) Forget(need string) error {
	if err := os.Remove(h.pendingPath(need)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
