// Package identityfile admits a host to a cluster by files that a person carries between the
// operator and the host. It creates the request for an identity file, verifies the identity file
// that the operator issues, and leaves that file for activation.
//
//	flor identity create    generates keys ──▶ join/keys.json, and a request signed by the device key
//	florctl identity issue  certificates, documents, revocation list, signed by the operator, encrypted with age
//	flor identity install   decrypts and verifies all of it ──▶ join/identity.json ──▶ activation delivers and removes it
//
// After everything is verified, join/identity.json is written by a single rename. If the
// installation is interrupted, there is either no file, or a complete file that activation delivers.
package identityfile

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Host is a host that receives its certificates and documents in an identity file, because it
// cannot fetch them over the network. An operator creates the file and brings it to the host.
type Host struct {
	State   hostdir.Layout
	HostKey string // file of the SSH host key
}

// Offer is an identity file that was verified but is not installed yet.
type Offer struct {
	File  hostapi.IdentityFile // identity file, with the private keys that this host generated
	Needs []string             // IDs of the needs for which the file contains certificates
	Until time.Time            // earliest expiry of the certificates in the file
	Set   documents.Set        // documents in force; if Changed is set, the new documents from the file
	Newer bool

	host Host
}

// KeyFile returns the path of the private key with which the host proves its identity. The manifest
// decides which key this is.
func (h Host) KeyFile(m document.Manifest) string {
	if m.Identity.Joins {
		return h.State.DeviceKey()
	}
	return h.HostKey
}

// proves returns the key with which the host proves its identity, or nil if that key does not exist
// yet.
func (h Host) proves(m document.Manifest) (ssh.Signer, error) {
	if m.Identity.Joins {
		key, err := devicekey.Load(h.State, devicekey.DefaultTPM)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return ssh.NewSignerFromSigner(key)
	}
	b, err := os.ReadFile(h.HostKey)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.HostKey, err)
	}
	declared, err := hostapi.ParseHostKey(m.Identity.SSHHostKey)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(declared.Marshal(), key.PublicKey().Marshal()) {
		return nil, fmt.Errorf("%s: has key %s, but the manifest of %s declares %s: pass the right file with --ssh-host-key", h.HostKey, ssh.FingerprintSHA256(key.PublicKey()), m.Host, ssh.FingerprintSHA256(declared))
	}
	return key, nil
}

// Verify checks the content of an identity file, and returns the file as an Offer that can be
// installed. It does not change the host. It returns an error if the file is for another host, is
// not signed by a key that the host's manifest pins, or contains nothing newer than the host has.
func (h Host) Verify(b []byte, now time.Time) (*Offer, error) {
	store, _, err := documents.Open(h.State, "", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: install this host's documents and start its units first", err)
	}
	o := &Offer{host: h, Set: store.Set()}
	m := o.Set.Manifest
	var signed hostapi.SignedIdentityFile
	if err := strictjson.Decode(b, &signed); err != nil {
		return nil, fmt.Errorf("identity file: %w: want a file that florctl identity issue wrote", err)
	}
	// One key is enough for the file: enough keys sign each document, list and admission in it.
	if o.File, err = signed.Verify(m.Cluster, m.Identity.ID, signers.Any(m.Trust.SigningKeys...)); err != nil {
		return nil, err
	}
	list, err := newestList(o.File.Artifact.Revocations, m, o.Set.Roots.Revocations())
	if err != nil {
		return nil, err
	}
	offer, refused := store.Verify(o.File.Artifact)
	switch {
	case refused == nil && offer.Changed:
		o.Set, o.Newer = offer.Set, true
	case refused != nil && refused.Code != documents.CodeOlder.Name: // the documents in force are newer
		return nil, refused
	}
	if err := h.checkDevice(o.File, o.Set.Manifest, list); err != nil {
		return nil, err
	}
	if err := o.checkSVIDs(list, now); err != nil {
		return nil, err
	}
	return o, nil
}

// newestList returns the revocation list of an identity file. If the list in force on the host is
// newer, it returns that list.
func newestList(s *trust.SignedRevocations, m document.Manifest, held *trust.Revocations) (*trust.Revocations, error) {
	if s == nil {
		return held, nil
	}
	list, err := s.Open()
	if err == nil {
		err = s.Verify(list, m.Cluster, m.Trust.Signers())
	}
	if err == nil && list.Newer(held) {
		err = list.Follows(held)
	}
	if err != nil || !list.Newer(held) {
		return held, err
	}
	return list, nil
}

// checkDevice returns an error if the identity file was issued for another machine.
func (h Host) checkDevice(f hostapi.IdentityFile, m document.Manifest, list *trust.Revocations) error {
	key, err := h.proves(m)
	if err != nil {
		return err
	}
	if !m.Identity.Joins {
		if f.DeviceKey != "" || f.Admission != nil {
			return fmt.Errorf("identity file: for a host without an SSH host key, but the manifest of %s declares one: make a new file with florctl identity issue", m.Host)
		}
		return list.CheckKey(ssh.FingerprintSHA256(key.PublicKey()))
	}
	if f.Admission == nil {
		return fmt.Errorf("identity file: admits no device, but the manifest of %s declares no SSH host key: make a new file with florctl identity issue", m.Host)
	}
	a, _, err := f.Admission.Verify(m.Cluster, m.Identity.ID, m.Trust.Signers())
	if err != nil {
		return err
	}
	admitted, err := hostapi.ParseHostKey(a.Key)
	if err != nil {
		return fmt.Errorf("identity file: device: %w", err)
	}
	if f.DeviceKey != "" {
		given, err := ssh.ParsePrivateKey([]byte(f.DeviceKey))
		if err != nil {
			return fmt.Errorf("identity file: device key: %w", err)
		}
		if key == nil {
			key = given
		}
	}
	if key == nil {
		return fmt.Errorf("identity file: for the device with key %s, but this host has no device key: run flor identity create to make a key and request a new file", ssh.FingerprintSHA256(admitted))
	}
	if !bytes.Equal(admitted.Marshal(), key.PublicKey().Marshal()) {
		return fmt.Errorf("identity file: for the device with key %s, but this host has key %s: run flor identity create to request a new file", ssh.FingerprintSHA256(admitted), ssh.FingerprintSHA256(key.PublicKey()))
	}
	return list.CheckKey(ssh.FingerprintSHA256(admitted))
}

// checkSVIDs adds the private keys that this host generated to the certificates in the file. It
// returns an error if the file contains a certificate that other hosts would refuse.
func (o *Offer) checkSVIDs(list *trust.Revocations, now time.Time) error {
	m, roots := o.Set.Manifest, o.Set.Roots.With(list)
	keys, err := fetch.IdentityKeys(o.host.State)
	if err != nil {
		return err
	}
	at := &fetch.Host{Layout: o.host.State, Manifest: m, Roots: o.Set.Roots}
	needs := map[spiffe.ID]document.Need{}
	for _, n := range m.Needs {
		if id, err := n.CertID(); n.Kind == document.KindCert && err == nil {
			needs[id] = n
		}
	}
	for i := range o.File.SVIDs {
		s := &o.File.SVIDs[i]
		n, ok := needs[s.ID]
		if !ok {
			continue // belongs to older or newer documents than those in force
		}
		if s.Key == "" {
			if s.Key = keys[s.ID.String()]; s.Key == "" {
				return fmt.Errorf("identity file: %s: for a key that this host does not have: run flor identity create to request a new file", s.ID.Short())
			}
		}
		svid, err := trust.ParseSVID([]byte(s.SVID), []byte(s.Key), s.ID)
		if err != nil {
			return fmt.Errorf("identity file: %s: %w: the file answers another request: run flor identity create to request a new file", s.ID.Short(), err)
		}
		if _, err := roots.Verify(svid.Chain, now, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
			return fmt.Errorf("identity file: %w", err)
		}
		if _, expiry := trust.Window(svid.Chain); o.Until.IsZero() || expiry.Before(o.Until) {
			o.Until = expiry
		}
		if at.Awaits(n, svid) {
			o.Needs = append(o.Needs, n.ID)
		}
	}
	if len(o.Needs) == 0 && !o.Newer {
		return errors.New("identity file: contains nothing newer than this host has")
	}
	return nil
}

// Install stores the identity file where activation finds it, and installs the device key and the
// admission from the file. If Install fails, activation never sees a partial file.
func (o *Offer) Install() error {
	unlock, err := fetch.LockJoin(o.host.State)
	if err != nil {
		return err
	}
	b, err := json.Marshal(o.File)
	if err == nil {
		err = atomicfile.File(o.host.State.IdentityFile(), b, 0o600)
	}
	unlock()
	if err != nil {
		return err
	}
	return fetch.FinishEnrolment(o.host.State, o.File)
}

// Delivered reports whether activation has delivered all certificates of the installed identity
// file. It also returns true if no file was installed.
func (h Host) Delivered() (bool, error) {
	f, _, err := fetch.ReadEnrolled(h.State)
	return f == nil && err == nil, err
}

func line(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }
