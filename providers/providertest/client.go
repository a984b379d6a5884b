package providertest

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
)

// HostKey is the SSH host key of a node.
func (e *Env) HostKey(node florete.ID) ssh.Signer {
	e.t.Helper()
	if e.keys[node] == nil {
		e.keys[node] = NewHostKey(e.t)
	}
	return e.keys[node]
}

// ReplaceHostKey gives a node another SSH host key, from the next Publish also in the policy.
func (e *Env) ReplaceHostKey(node florete.ID) {
	e.t.Helper()
	e.keys[node] = NewHostKey(e.t)
	for i := range e.Policy.Devices {
		if e.Policy.Devices[i].ID == node {
			e.Policy.Devices[i].SSHHostKey = Authorized(e.keys[node])
		}
	}
}

// NewHostKey makes an SSH host key.
func NewHostKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Authorized is a host key as documents have it.
func Authorized(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

// Client asks for a node, with an SVID that did not come through the provider.
func (e *Env) Client(node florete.ID) *api.Client {
	e.t.Helper()
	c := e.Stranger(node)
	c.SVID = e.SVID(e.Issuing, node)
	return c
}

// Stranger asks for a node that has no SVID.
func (e *Env) Stranger(node florete.ID) *api.Client {
	e.t.Helper()
	roots, err := florete.NewRoots(Domain, e.Policy.Trust.Roots)
	if err != nil {
		e.t.Fatal(err)
	}
	return &api.Client{Node: node, Provider: e.Provider(), Roots: roots, HostKey: e.HostKey(node), Dial: e.Dial}
}

// Provider is the process as a manifest has it.
func (e *Env) Provider() florete.Provider {
	p := e.Policy.Provider[e.kind]
	return florete.Provider{ID: p.ID, Addresses: p.Listen}
}

// Dial connects to the provider wherever it listens.
func (e *Env) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, e.address)
}

// SVID is one by an authority, valid for an hour.
func (e *Env) SVID(by *ca.Authority, id florete.ID) *tls.Certificate {
	e.t.Helper()
	key, err := ca.NewKey()
	if err != nil {
		e.t.Fatal(err)
	}
	leaf, err := by.Issue(id, key.Public(), time.Now().Add(time.Hour), time.Now())
	if err != nil {
		e.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, by.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}
