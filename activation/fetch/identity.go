package fetch

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// isOwn tells whether a need is for the SVID of the node itself, which is what
// the node proves itself with in every other request.
func (h *Host) isOwn(n florete.Need) bool {
	var r struct{ ID florete.ID }
	return n.Kind == "cert" && json.Unmarshal(n.Request, &r) == nil && r.ID == h.Manifest.Identity.ID
}

// svid is the node's SVID as delivered, if it can still prove anything.
func (h *Host) svid() (*tls.Certificate, *Error) {
	for _, n := range h.Manifest.Needs {
		if !h.isOwn(n) {
			continue
		}
		cert, err := h.load(h.Layout.Need(n.ID))
		if err == nil {
			id, err := h.verify(cert)
			if err == nil && id == h.Manifest.Identity.ID {
				return cert, nil
			}
			if err == nil {
				err = fmt.Errorf("is of %s", id)
			}
			return nil, local(api.Transient, api.CodeUntrusted, fmt.Errorf("the node's SVID, need %s: %w: it must enrol again", n.ID, err))
		}
		return nil, local(api.Transient, CodeDisk, fmt.Errorf("the node's SVID, need %s: %w", n.ID, err))
	}
	return nil, &Error{Error: api.Errorf(api.Invalid, CodeNoNode, "manifest of %s: no need of kind cert for %s, which is what the host proves itself with", h.Manifest.Host, h.Manifest.Identity.ID)}
}

// Trusts tells whether the SVID delivered for a need leads to a root of the
// manifest. That it has expired is no matter.
func (h *Host) Trusts(n florete.Need) bool {
	cert, err := h.load(h.Layout.Need(n.ID))
	if err != nil {
		return false
	}
	_, err = h.verify(cert)
	return err == nil || api.AsError(err).Code == api.CodeClock
}

// load reads an SVID and its key from one generation.
func (h *Host) load(dir string) (*tls.Certificate, error) {
	gen, err := florete.OpenCurrent(dir)
	if err != nil {
		return nil, err
	}
	defer gen.Close()
	svid, err := read(gen, florete.FileSVID)
	if err != nil {
		return nil, err
	}
	key, err := read(gen, florete.FileKey)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(svid, key)
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

func read(gen *os.Root, name string) ([]byte, error) {
	f, err := gen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// hostKey is the SSH host key, which must be the one that the manifest declares: with any
// other the provider would refuse the proof. It is read for each request, and tried again
// while it is wrong, since either may change: the file, or by newer documents the other.
func (h *Host) hostKey() (ssh.Signer, *Error) {
	text, err := os.ReadFile(h.HostKey)
	if err != nil {
		return nil, local(api.Denied, CodeHostKey, fmt.Errorf("SSH host key: %w: give the host's private key with --ssh-host-key", err))
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, local(api.Denied, CodeHostKey, fmt.Errorf("SSH host key %s: %w", h.HostKey, err))
	}
	declared, err := api.ParseHostKey(h.Manifest.Identity.SSHHostKey)
	if err != nil {
		return nil, local(api.Denied, CodeHostKey, fmt.Errorf("manifest of %s: sshHostKey %q: %w", h.Manifest.Host, h.Manifest.Identity.SSHHostKey, err))
	}
	if !bytes.Equal(signer.PublicKey().Marshal(), declared.Marshal()) {
		found := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		return nil, local(api.Denied, CodeHostKey, fmt.Errorf("SSH host key %s is %q, but the manifest of %s declares %q: declare this host's key in the flake, or name the right file with --ssh-host-key",
			h.HostKey, found, h.Manifest.Host, h.Manifest.Identity.SSHHostKey))
	}
	return signer, nil
}
