package providertest

import (
	"context"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
)

// HostKey returns the private SSH host key of a node.
func (e *Env) HostKey(node spiffe.ID) ssh.Signer {
	if e.keys[node] == nil {
		e.keys[node] = kit.NewHostKey()
	}
	return e.keys[node]
}

// ReplaceHostKey gives a node another SSH host key. The next call of Publish adds the new key to
// the policy.
func (e *Env) ReplaceHostKey(node spiffe.ID) {
	e.keys[node] = kit.NewHostKey()
	for i := range e.Policy.Devices {
		if e.Policy.Devices[i].ID == node {
			e.Policy.Devices[i].SSHHostKey = kit.Authorized(e.keys[node].PublicKey())
		}
	}
}

// Client returns a client that sends requests as a node. The client has an SVID that the test made,
// not the provider.
func (e *Env) Client(node spiffe.ID) *hostapi.Client {
	e.t.Helper()
	c := e.Stranger(node)
	c.SVID = e.Issue(node, time.Hour)
	return c
}

// Stranger returns a client that sends requests as a node, but has no SVID.
func (e *Env) Stranger(node spiffe.ID) *hostapi.Client {
	e.t.Helper()
	roots, err := trust.NewRoots(kit.Domain, e.Policy.Trust.Roots)
	if err != nil {
		e.t.Fatal(err)
	}
	return &hostapi.Client{Node: node, Provider: e.Provider(), Roots: roots, HostKey: e.HostKey(node), Dial: e.Dial}
}

// Provider returns the running process in the form in which a manifest names it.
func (e *Env) Provider() document.Provider {
	p := e.Policy.Provider[e.kind]
	return document.Provider{ID: p.ID, Addresses: p.Listen}
}

// Dial connects to the running provider at its current address. It ignores the address argument.
func (e *Env) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, e.address)
}
