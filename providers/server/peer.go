package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/store"
)

// peer caches the result of verifying the client certificate of one connection. Further requests of
// the connection use the result as long as the roots and the time permit no other result.
type peer struct {
	mu            sync.Mutex
	binding       []byte       // of the connection; nil for not yet
	roots         *trust.Roots // that the rest was found with; nil for none yet
	id            spiffe.ID
	err           error
	begin, expiry time.Time // within which it holds; an untrusted chain never becomes good

	issued []*x509.Certificate // in answer to the last proof on the connection; nil for none

	device string // the device proof that was verified last, which is of this connection alone
	by     string // the key that it is by, in its wire form

	admitted *store.Cond // on which its SVID was admitted, and still is while it holds; nil for not yet
}

type peerKey struct{}

func withPeer(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{})
}

// bind returns the connection's channel binding.
func (p *peer) bind(cs *tls.ConnectionState) (b []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.binding == nil {
		p.binding, err = hostapi.ChannelBinding(cs)
	}
	return p.binding, err
}

// enrol makes the certificates in the answer to a proof the certificates of the connection, as if
// the client had presented them. The proof binds the device key to the connection and to the CSR,
// so that nobody else can use the certificates. enrol also removes cached results about former
// certificates.
func (p *peer) enrol(answer any) {
	var a hostapi.Answer
	if b, ok := answer.(encoded); !ok || json.Unmarshal(b, &a) != nil {
		return
	}
	chain, err := trust.ParseCertificates([]byte(a.Values["svid"]))
	if err != nil {
		return // the host enrolled, and connects with what it received
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issued, p.roots, p.admitted, p.device = chain, nil, nil, ""
}

// certificates returns the client's chain. This is the chain that the client presented or received
// on this connection, or an empty chain.
func (p *peer) certificates(cs *tls.ConnectionState) []*x509.Certificate {
	if len(cs.PeerCertificates) > 0 {
		return cs.PeerCertificates
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.issued
}

// proves verifies a device proof by calling a function, and returns the error of that function. If
// the same proof by the same key was already verified on this connection, proves does not call the
// function. The returned proof is the one that the connection keeps, so that a request that waits
// for long holds no copy of its own.
func (p *peer) proves(proof string, by ssh.PublicKey, verify func() error) (kept string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := string(by.Marshal())
	if proof == p.device && key == p.by {
		return p.device, nil
	}
	if err := verify(); err != nil {
		return proof, err
	}
	p.device, p.by = proof, key
	return proof, nil
}

// admit returns the condition under which the caller's SVID is admitted. It calls the function find
// once for each connection. Commits that require the condition fail when the condition no longer
// holds.
func (p *peer) admit(find func() (store.Cond, error)) (store.Cond, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.admitted == nil {
		on, err := find()
		if err != nil {
			return on, err
		}
		p.admitted = &on
	}
	return *p.admitted, nil
}

// readmit makes the next request call admit's function again to find out if the SVID is still
// admitted.
func (p *peer) readmit() {
	p.mu.Lock()
	p.admitted = nil
	p.mu.Unlock()
}

func peerOf(ctx context.Context) *peer { return ctx.Value(peerKey{}).(*peer) }

// verify calls hostapi.Peer for a client. It does so once for each connection and set of roots.
func (p *peer) verify(chain []*x509.Certificate, roots *trust.Roots) (spiffe.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	untrusted := p.err != nil && hostapi.AsError(p.err).Code != hostapi.CodeClock.Name
	valid := p.err == nil && !now.Before(p.begin) && !now.After(p.expiry)
	if p.roots != roots || !untrusted && !valid {
		p.id, p.err = hostapi.Peer(chain, roots, x509.ExtKeyUsageClientAuth)
		p.roots = roots
		p.begin, p.expiry = trust.Window(chain)
	}
	return p.id, p.err
}
