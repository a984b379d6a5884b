package tls

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptotls "crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	stdlog "log"
	"math/big"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-acme/lego/v4/acme"
	"github.com/go-acme/lego/v4/acme/api"
	legolog "github.com/go-acme/lego/v4/log"
	"github.com/go-jose/go-jose/v4"

	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/providers/outside"
)

// quiet stops the library lego from logging. Failures of lego are returned as errors, and are
// audited.
var quiet = sync.OnceFunc(func() { legolog.Logger = stdlog.New(io.Discard, "", 0) })

// derivedKey returns a P-256 key that is derived from the sealing key, so that it need not be
// stored.
func (k *Certificates) derivedKey(purpose string) *ecdsa.PrivateKey {
	most := new(big.Int).Sub(elliptic.P256().Params().N, big.NewInt(1))
	d := new(big.Int).SetBytes(k.Key.Derive(purpose, 48))
	d.Mod(d, most).Add(d, big.NewInt(1))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, 32)))
	if err != nil {
		panic(err) // 1 to N-1
	}
	return key
}

// accountKey returns the key of the account at the policy's CA.
func (k *Certificates) accountKey(p *Policy) *ecdsa.PrivateKey {
	return k.derivedKey("florete tls account v1\n" + p.Directory)
}

// thumbprint returns the second part of a challenge's answer, which follows the token and a dot
// (RFC 8555, section 8.1).
func (k *Certificates) thumbprint(p *Policy) string {
	jwk := jose.JSONWebKey{Key: k.accountKey(p).Public()}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		panic(err) // a key of P-256
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// client is a client of the CA with an account. The account was registered if it did not exist.
type client struct {
	mu   sync.Mutex
	core *api.Core
}

// account returns a client of the policy's CA with an account. Each process registers the account
// once. If the account exists, the CA returns it.
func (k *Certificates) account(p *Policy) (*api.Core, error) {
	at := p.Directory + "\n" + p.Contact
	k.mu.Lock()
	c := k.clients[at]
	if c == nil {
		c = &client{}
		k.clients[at] = c
	}
	k.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core != nil {
		return c.core, nil
	}
	var config *cryptotls.Config
	if k.Roots != "" {
		pem, err := os.ReadFile(k.Roots)
		if err != nil {
			return nil, fmt.Errorf("roots of the CA: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("roots of the CA: %s: no certificate in it", k.Roots)
		}
		config = &cryptotls.Config{RootCAs: roots, MinVersion: cryptotls.VersionTLS12}
	}
	// A CA names where its orders, challenges and certificates are.
	client, err := outside.Config{TLS: config, Anywhere: true, Timeout: 30 * time.Second}.Client(p.Directory)
	if err != nil {
		return nil, err
	}
	client.Transport = &bound{ctx: k.ctx, to: client.Transport}
	core, err := api.New(client, "florete/"+release.Number, p.Directory, "", k.accountKey(p))
	if err != nil {
		return nil, err
	}
	account := acme.Account{TermsOfServiceAgreed: true}
	if p.Contact != "" {
		account.Contact = []string{"mailto:" + p.Contact}
	}
	if _, err := core.Accounts.New(account); err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	c.core = core
	return core, nil
}

// maxResponse is the largest response of a CA, in bytes.
const maxResponse = 1 << 20

// bound is an HTTP transport that ends requests with a context, because requests of lego have none.
// It also limits the size of responses.
type bound struct {
	ctx context.Context
	to  http.RoundTripper
}

func (b *bound) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	unhook := context.AfterFunc(b.ctx, cancel)
	resp, err := b.to.RoundTrip(r.WithContext(ctx))
	if err != nil {
		unhook()
		cancel()
		return nil, err
	}
	resp.Body = &limited{io.LimitReader(resp.Body, maxResponse), resp.Body, func() { unhook(); cancel() }}
	return resp, nil
}

type limited struct {
	io.Reader
	closer io.Closer
	done   func()
}

func (b *limited) Close() error {
	defer b.done()
	return b.closer.Close()
}
