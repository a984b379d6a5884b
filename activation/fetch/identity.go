package fetch

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// IsNode reports whether a need is for the node's own SVID. The host authenticates all other
// requests with this SVID.
func (h *Host) IsNode(n document.Need) bool {
	if n.Kind != document.KindCert {
		return false
	}
	id, err := h.certID(n)
	return err == nil && id == h.Manifest.Identity.ID
}

// certID returns the SPIFFE ID for which a need requests a certificate. It caches the result.
func (h *Host) certID(n document.Need) (spiffe.ID, error) {
	if id, ok := h.certIDs.Load(n.ID); ok {
		return id.(spiffe.ID), nil
	}
	id, err := n.CertID()
	if err == nil {
		h.certIDs.Store(n.ID, id)
	}
	return id, err
}

// svid returns the delivered SVID of the node if the SVID is still valid.
func (h *Host) svid() (*tls.Certificate, *Error) {
	for _, n := range h.Manifest.Needs {
		if !h.IsNode(n) {
			continue
		}
		svid, err := h.SVIDs.Load(h.Layout.Need(n.ID), h.Manifest.Identity.ID)
		if err != nil {
			return nil, local(CodeDisk, fmt.Errorf("the node's SVID, need %s: %w", n.ID, err))
		}
		if err := h.verify(svid); err != nil {
			return nil, local(hostapi.CodeUntrustedTransient, fmt.Errorf("the node's SVID, need %s: %w: it must enrol again", n.ID, err))
		}
		return &svid.Cert, nil
	}
	return nil, &Error{Error: hostapi.Errorf(CodeNoNode, "manifest of %s: no need of kind cert for %s, which authenticates the host's requests", h.Manifest.Host, h.Manifest.Identity.ID)}
}

// Trusts reports whether the SVID that was delivered for a need chains to a root in the manifest
// and is not revoked. It does not check whether the SVID has expired or is suspended. It returns
// false if no SVID was delivered.
func (h *Host) Trusts(n document.Need) bool {
	id, err := h.certID(n)
	if err != nil {
		return false
	}
	svid, err := h.SVIDs.Load(h.Layout.Need(n.ID), id)
	if err != nil {
		return false
	}
	if err = h.verify(svid); err != nil && hostapi.AsError(err).Code != hostapi.CodeClock.Name {
		return false
	}
	err = h.Roots.Revocations().CheckChain(svid.Chain, id)
	var revoked *trust.RevokedError
	return err == nil || errors.As(err, &revoked) && revoked.Suspended
}

// hostKey returns the key with which this host proves its identity: the SSH host key, or the device
// key if the flake declares no SSH host key. It reads the key for each request, because the key may
// change.
func (h *Host) hostKey() (ssh.Signer, *Error) {
	if h.Manifest.Identity.Joins {
		return h.deviceKey()
	}
	if err := nss.PrivateKey(h.HostKey); err != nil {
		return nil, local(CodeHostKeyTransient, err)
	}
	text, err := os.ReadFile(h.HostKey)
	if err != nil {
		return nil, local(CodeHostKeyTransient, fmt.Errorf("SSH host key: %w: give the host's private key with --ssh-host-key", err))
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, local(CodeHostKeyTransient, fmt.Errorf("SSH host key %s: %w, want an OpenSSH private key: ssh-keygen -A makes one in place of an empty file", h.HostKey, err))
	}
	return signer, nil
}

// deviceKey returns the key that identifies a host for which the flake declares no SSH host key.
func (h *Host) deviceKey() (ssh.Signer, *Error) {
	key, err := devicekey.Load(h.Layout, h.tpm())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, h.unjoined()
	}
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return nil, local(CodeDisk, fmt.Errorf("device key: %w", err))
	}
	var signer ssh.Signer
	if err == nil {
		signer, err = ssh.NewSignerFromSigner(device{key})
	}
	if err != nil {
		return nil, local(CodeHostKeyTransient, err)
	}
	return signer, nil
}

// KeySeen returns a value that differs from an earlier one if the key with which this host proves
// its identity may have changed: a key file was created, removed or written, or a TPM appeared.
// Values can only be compared for equality.
func (h *Host) KeySeen() string {
	paths := []string{h.HostKey}
	if h.Manifest.Identity.Joins {
		paths = []string{h.Layout.DeviceKey(), h.tpm()}
	}
	var seen strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			fmt.Fprintf(&seen, "%s: %v\n", path, err)
		case info.Mode().IsRegular():
			fmt.Fprintf(&seen, "%s: %s, %d bytes, %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		default: // the times of a device change with its use
			fmt.Fprintf(&seen, "%s: %s\n", path, info.Mode().Type())
		}
	}
	return seen.String()
}

// OfKey reports whether an error code means that this host could not prove its identity with its
// key. Another attempt can succeed if the value of KeySeen has changed since.
func OfKey(code string) bool {
	return code == CodeHostKey.Name || code == CodeTPM.Name || code == hostapi.CodeDeviceKey.Name
}

func (h *Host) tpm() string { return cmp.Or(h.TPM, devicekey.DefaultTPM) }

// device is a device key that adds an explanation to the errors of signing, such as a cleared TPM.
type device struct{ crypto.Signer }

func (d device) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	sig, err := d.Signer.Sign(rand, digest, opts)
	var lost *devicekey.LostError
	switch {
	case errors.As(err, &lost):
		return nil, hostapi.Errorf(CodeTPM, "%v", err)
	case err != nil:
		return nil, hostapi.Errorf(CodeTPMTransient, "%v", err)
	}
	return sig, nil
}

// declaredHostKey returns the SSH host key. If it is not the key that the manifest declares,
// declaredHostKey returns an error that says how to mend this. A provider would refuse the request
// anyway.
func (h *Host) declaredHostKey() (ssh.Signer, *Error) {
	signer, failed := h.hostKey()
	if failed != nil || h.Manifest.Identity.Joins {
		return signer, failed
	}
	declared, err := hostapi.ParseHostKey(h.Manifest.Identity.SSHHostKey)
	if err != nil {
		return nil, local(CodeHostKey, fmt.Errorf("manifest of %s: sshHostKey %q: %w", h.Manifest.Host, h.Manifest.Identity.SSHHostKey, err))
	}
	if !bytes.Equal(signer.PublicKey().Marshal(), declared.Marshal()) {
		found := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		return nil, local(CodeHostKey, fmt.Errorf("SSH host key %s is %q, but the manifest of %s declares %q: declare this host's key in the flake, or name the right file with --ssh-host-key",
			h.HostKey, found, h.Manifest.Host, h.Manifest.Identity.SSHHostKey))
	}
	return signer, nil
}
