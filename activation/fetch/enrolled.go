package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// ReadEnrolled reads the identity file that flor identity install has installed for activation. It
// also returns the modification time of the file, in nanoseconds since 1970. If there is no such
// file, it returns nil without an error.
func ReadEnrolled(l hostdir.Layout) (f *hostapi.IdentityFile, left int64, err error) {
	at, err := os.Stat(l.IdentityFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(l.IdentityFile())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	f = new(hostapi.IdentityFile)
	if err == nil {
		err = strictjson.Decode(b, f)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("identity file: %w", err)
	}
	return f, at.ModTime().UnixNano(), nil
}

// FinishEnrolment installs the device key and the admission that an identity file contains. An
// existing device key is kept. The admission replaces a pending request to join the cluster.
func FinishEnrolment(l hostdir.Layout, f hostapi.IdentityFile) error {
	unlock, err := LockJoin(l)
	if err != nil {
		return err
	}
	defer unlock()
	if f.DeviceKey != "" {
		_, err := os.Stat(l.DeviceKey())
		if errors.Is(err, fs.ErrNotExist) {
			err = atomicfile.File(l.DeviceKey(), []byte(f.DeviceKey), 0o600)
		}
		if err != nil {
			return err
		}
	}
	if f.Admission == nil {
		return nil
	}
	b, err := json.Marshal(f.Admission)
	if err == nil {
		err = atomicfile.File(l.Admission(), b, 0o600)
	}
	if err == nil { // no admission is awaited any more
		err = removed(l.JoinRequest())
	}
	return err
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Enrolled returns the answer to a need from the installed identity file, without asking a
// provider. If there is no file, or it contains no certificate for the need that is newer than the
// delivered one, ok is false.
func (h *Host) Enrolled(n document.Need) (answer hostapi.Answer, ok bool, failed *Error) {
	if n.Kind != document.KindCert {
		return answer, false, nil
	}
	f, _, err := ReadEnrolled(h.Layout)
	if err == nil && f != nil {
		err = FinishEnrolment(h.Layout, *f)
	}
	if err != nil {
		return answer, false, local(CodeDisk, err)
	}
	svid := h.given(f, n)
	if svid == nil {
		return answer, false, nil
	}
	answer.Values = map[string]string{"svid": svid.SVID}
	if e := h.complete(Attempt{Need: n}, pending{PrivateKey: svid.Key}, &answer); e != nil {
		return answer, false, &Error{Error: e}
	}
	return answer, true, nil
}

// given returns the SVID for a need from an identity file. It returns nil if the SVID has expired,
// or was not issued after the delivered one.
func (h *Host) given(f *hostapi.IdentityFile, n document.Need) *hostapi.IdentitySVID {
	if f == nil || n.Kind != document.KindCert {
		return nil
	}
	id, err := h.certID(n)
	if err != nil {
		return nil
	}
	s := f.SVID(id)
	if s == nil {
		return nil
	}
	svid, err := trust.ParseSVID([]byte(s.SVID), []byte(s.Key), id)
	if err != nil || !h.Awaits(n, svid) {
		return nil
	}
	return s
}

// Awaits reports whether activation must still deliver an SVID for a need: the SVID has not
// expired, and is newer than the delivered one. Awaits also returns true for the delivered SVID
// itself if activation died before it recorded the delivery.
func (h *Host) Awaits(n document.Need, s *trust.SVID) bool {
	if _, expiry := trust.Window(s.Chain); time.Now().After(expiry) {
		return false
	}
	held, err := h.SVIDs.Load(h.Layout.Need(n.ID), s.ID)
	if err != nil || h.verify(held) != nil {
		return true
	}
	if held.Cert.Leaf.Equal(s.Cert.Leaf) {
		state, err := h.Layout.NeedState(n.ID)
		return err != nil || state.Digest == "" || state.Expires.Unix() != held.Cert.Leaf.NotAfter.Unix()
	}
	return s.Cert.Leaf.NotBefore.After(held.Cert.Leaf.NotBefore)
}

// Gives reports whether an identity file contains an SVID that must still be delivered for a need.
// If there is no file, f is nil, and Gives returns false.
func (h *Host) Gives(f *hostapi.IdentityFile, n document.Need) bool { return h.given(f, n) != nil }

// ForgetEnrolled removes the identity file once its whole content is delivered. The caller passes
// the modification time of the delivered file, as ReadEnrolled returned it. If the time differs,
// the file was replaced by a newer one and is kept.
func (h *Host) ForgetEnrolled(of int64) error {
	f, left, err := ReadEnrolled(h.Layout)
	if f == nil || err != nil || left != of || slices.ContainsFunc(h.Manifest.Needs, func(n document.Need) bool { return h.Gives(f, n) }) {
		return err
	}
	unlock, err := LockJoin(h.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if _, now, err := ReadEnrolled(h.Layout); err != nil || now != left {
		return err // it was replaced by another
	}
	if err := removed(h.Layout.IdentityFile()); err != nil {
		return err
	}
	keys, err := IdentityKeys(h.Layout)
	for id, key := range keys {
		if !slices.ContainsFunc(f.SVIDs, func(s hostapi.IdentitySVID) bool { return s.ID.String() == id && s.Key == key }) {
			return err // belongs to a request without an answer
		}
	}
	if err != nil {
		return err
	}
	return removed(h.Layout.IdentityKeys())
}

// IdentityKeys returns the private keys that this host has generated for its requests for an
// identity file. The map contains PEM text by SPIFFE ID. It is empty if there are no keys.
func IdentityKeys(l hostdir.Layout) (map[string]string, error) {
	keys := map[string]string{}
	b, err := os.ReadFile(l.IdentityKeys())
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err == nil {
		err = strictjson.Decode(b, &keys)
	}
	if err != nil {
		return nil, fmt.Errorf("keys of requests: %w", err)
	}
	return keys, nil
}
