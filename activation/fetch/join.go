package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// joinRequest is a request to join the cluster. It is stored on disk by flor join and remains there
// until a provider has decided. The join token is then removed.
type joinRequest struct {
	Token string           `json:"token"`
	Facts hostreport.Facts `json:"facts"`
}

// BeginJoin stores a request to join the cluster with a join token. Join sends the request later.
// If the host has no device key, BeginJoin generates one. It returns an error if the token is
// malformed or from an unknown provider, or if the manifest declares an SSH host key, with which
// the host enrols instead.
func (h *Host) BeginJoin(token string, facts hostreport.Facts) error {
	l, m := h.Layout, h.Manifest
	if !m.Identity.Joins {
		return fmt.Errorf("the manifest of %s declares its SSH host key: it enrols with that, and needs no token", m.Host)
	}
	t, err := hostapi.ParseJoinToken(token)
	if err != nil {
		return err
	}
	if h.documentsAt(t.Provider).ID.IsZero() {
		return fmt.Errorf("join token: of provider %.64q, which the manifest of %s does not have: make one at a provider of its documents", t.Provider, m.Host)
	}
	unlock, err := LockJoin(l)
	if err != nil {
		return err
	}
	defer unlock()
	if err := devicekey.Make(l, h.tpm()); err != nil {
		return fmt.Errorf("device key: %w", err)
	}
	if facts.DeviceKey = ""; l.DeviceKeyIn() == hostdir.InTPM {
		facts.DeviceKey = hostdir.InTPM
	}
	b, err := json.Marshal(joinRequest{strings.TrimSpace(token), facts})
	if err != nil {
		return err
	}
	return atomicfile.File(l.JoinRequest(), b, 0o600)
}

// LockJoin locks the files that a host uses to join a cluster, and waits until no other process
// holds the lock. Every process that writes these files must hold it. The caller must call unlock.
func LockJoin(l hostdir.Layout) (unlock func(), err error) {
	dir := filepath.Dir(l.DeviceKey())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = f.Chmod(0o755) // the forwarder reads which type of key exists
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// Join sends the stored request to admit this host's device to the cluster, and stores the
// admission if the request is granted. The result contains the provider's decision. While the
// decision is pending, the request stays stored, and the caller must call Join again.
func (h *Host) Join(ctx context.Context) (a hostapi.Joined, failed *Error) {
	var r joinRequest
	b, err := os.ReadFile(h.Layout.JoinRequest())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(h.Layout.Admission()); err == nil {
			return hostapi.Joined{State: hostapi.JoinApproved}, nil
		}
		return a, h.unjoined()
	}
	if err == nil {
		err = strictjson.Decode(b, &r)
	}
	if err != nil {
		return a, local(CodeDisk, fmt.Errorf("join request: %w", err))
	}
	token, err := hostapi.ParseJoinToken(r.Token)
	if err != nil {
		return a, local(CodeDisk, fmt.Errorf("join request: %w: flor join TOKEN again", err))
	}
	key, failed := h.hostKey()
	if failed != nil {
		return a, failed
	}
	if h.documentsAt(token.Provider).ID.IsZero() {
		return a, local(hostapi.CodeToken, fmt.Errorf("join token: of provider %.64q, which the manifest of %s does not have any more", token.Provider, h.Manifest.Host))
	}
	client := h.client(toDocuments(token.Provider), nil, key)
	if a, err = client.Join(ctx, r.Facts, &token); err != nil {
		return a, received(err)
	}
	unlock, err := LockJoin(h.Layout)
	if err != nil {
		return a, local(CodeDisk, err)
	}
	defer unlock()
	switch a.State {
	case hostapi.JoinApproved:
		admission, err := h.admit(key, token, a)
		if err != nil {
			return a, local(hostapi.CodeJoin, err)
		}
		if err := atomicfile.File(h.Layout.Admission(), admission, 0o600); err != nil {
			return a, local(CodeDisk, fmt.Errorf("admission: %w", err))
		}
	case hostapi.JoinPending:
		return a, nil
	}
	if now, err := os.ReadFile(h.Layout.JoinRequest()); err != nil || !bytes.Equal(now, b) {
		return a, nil // removed, or replaced by another request in the meantime
	}
	if err := os.Remove(h.Layout.JoinRequest()); err != nil {
		return a, local(CodeDisk, err)
	}
	return a, nil
}

// unjoined returns the error for a host that has not asked to join the cluster.
func (h *Host) unjoined() *Error {
	return local(hostapi.CodeJoinTransient, fmt.Errorf("%s has no SSH host key in the flake, and no device that was admitted: florctl join token create --host %s, then flor join - here", h.Manifest.Host, h.Manifest.Host))
}

// admit returns the signed admission to store. If the provider returned a grant for the join token
// instead of an admission, this host signs the admission itself with the token.
func (h *Host) admit(key ssh.Signer, token hostapi.JoinToken, a hostapi.Joined) ([]byte, error) {
	device := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	admission := a.Admission
	if admission == nil && a.Grant != nil {
		text, err := json.Marshal(trust.NewAdmission(h.Manifest.Cluster, h.Manifest.Identity.ID, device, time.Now()))
		if err != nil {
			return nil, err
		}
		secret, err := token.Secret()
		if err != nil {
			return nil, err
		}
		sig, err := secret.Sign(nil, trust.AdmissionText(string(text)))
		if err != nil {
			return nil, err
		}
		admission = &trust.SignedAdmission{Admission: string(text), Signature: sig.String(), Grant: a.Grant}
	}
	if admission == nil {
		return nil, errors.New("approved without an admission")
	}
	admitted, _, err := admission.Verify(h.Manifest.Cluster, h.Manifest.Identity.ID, h.Manifest.Trust.Signers())
	if err == nil && admitted.Key != device {
		err = fmt.Errorf("admission of %s: of another device, %.200q", h.Manifest.Host, admitted.Key)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(admission)
}

// admission returns the admission of this host's device. If a request to join is stored, admission
// first sends it. If the flake declares the host's key, no admission is needed and the result is
// nil.
func (h *Host) admission(ctx context.Context) (*trust.SignedAdmission, *Error) {
	if !h.Manifest.Identity.Joins {
		return nil, nil
	}
	if _, err := os.Stat(h.Layout.JoinRequest()); err == nil {
		switch a, failed := h.Join(ctx); {
		case failed != nil:
			return nil, failed
		case a.State == hostapi.JoinPending:
			return nil, local(hostapi.CodeJoinTransient, errors.New(a.Message))
		case a.State != hostapi.JoinApproved:
			return nil, local(hostapi.CodeJoin, errors.New(a.Message))
		}
	}
	b, err := os.ReadFile(h.Layout.Admission())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, h.unjoined()
	}
	var s trust.SignedAdmission
	if err == nil {
		err = strictjson.Decode(bytes.TrimSpace(b), &s)
	}
	if err != nil {
		return nil, local(CodeDisk, fmt.Errorf("admission: %w", err))
	}
	return &s, nil
}
