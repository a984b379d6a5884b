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

// ReplaceHostKey gives a node a new SSH host key. The provider learns the new key with the next
// call of Publish.
func (e *Env) ReplaceHostKey(node spiffe.ID) {
	e.keys[node] = kit.NewHostKey()
	for i := range e.Policy.Devices {
		if e.Policy.Devices[i].ID == node {
			e.Policy.Devices[i].SSHHostKey = kit.Authorized(e.keys[node].PublicKey())
		}
	}
}

// Client returns a client that sends requests as a node. It has an SVID from the test's CA that is
// valid for an hour.
func (e *Env) Client(node spiffe.ID) *hostapi.Client {
	e.t.Helper()
	c := e.Stranger(node)
	c.SVID = e.Issue(node, time.Hour)
	return c
}

// Stranger returns a client that sends requests as a node that has no SVID yet, for example to
// enrol.
func (e *Env) Stranger(node spiffe.ID) *hostapi.Client {
	e.t.Helper()
	roots, err := trust.NewRoots(kit.Domain, e.Policy.Trust.Roots)
	if err != nil {
		e.t.Fatal(err)
	}
	return &hostapi.Client{Node: node, Provider: e.Provider(), Roots: roots, HostKey: e.HostKey(node), Dial: e.Dial}
}

// Provider returns the ID and the addresses of the provider, as the manifest of a host contains
// them.
func (e *Env) Provider() document.Provider {
	p := e.Policy.Provider[e.kind]
	return document.Provider{ID: p.ID, Addresses: p.Listen}
}

// Dial connects to the running provider, and ignores the address in its arguments. Use it in place
// of net.Dialer.DialContext.
func (e *Env) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, e.address)
}
