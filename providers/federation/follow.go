package federation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const (
	reread = 250 * time.Millisecond // how soon a new policy is noticed
	// within is the longest time for one request to an endpoint.
	within = 20 * time.Second
	// repeatedly is the longest pause before a failed request is repeated.
	repeatedly = time.Minute
	// reminded is the interval between audit rows about the same refusal.
	reminded = time.Hour
)

// These are the audit codes of refusals.
const (
	codeBundle   = "bundle-refused"     // invalid bundle, or a bundle that must not replace the last one
	codeEndpoint = "endpoint-untrusted" // endpoint that the policy does not trust
)

// refusedError is the error of an endpoint or bundle that must not be trusted.
type refusedError struct {
	code string
	error
}

func (e *refusedError) Unwrap() error { return e.error }

// follower fetches the bundle of one foreign trust domain, with one request at a time.
type follower struct {
	mu     sync.Mutex // held during a request
	next   time.Time  // time of the next fetch; zero for at once
	failed string     // last error in the log
	noted  map[string]time.Time
}

// Run serves the bundle of this trust domain, and fetches the bundles of foreign trust domains,
// until ctx ends. It returns an error if the settings in Web are wrong, or if the endpoint that
// they describe cannot be served.
func (f *Federation) Run(ctx context.Context, ready func()) error {
	if err := f.Web.check(); err != nil {
		return err
	}
	if f.Web.Listen == "" {
		return f.run(ctx, ready)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop()
		served <- f.serveWeb(ctx)
	}()
	err := f.run(ctx, ready)
	stop()
	return errors.Join(err, <-served)
}

func (f *Federation) run(ctx context.Context, ready func()) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	followers := map[string]*follower{} // by trust domain and endpoint
	tick := time.NewTicker(reread)
	defer tick.Stop()
	var failed journal.Once
	for {
		if p := f.Policy(); p != nil {
			if err := f.keepOwn(ctx, p); ctx.Err() == nil && failed.News(err) {
				f.Logger.Error("the bundle of this trust domain stays as it was", "error", err)
			}
			for _, t := range p.trusts {
				at := t.name + " " + t.endpoint + " " + t.endpointID.String()
				if followers[at] == nil {
					followers[at] = &follower{noted: map[string]time.Time{}}
				}
				w := followers[at]
				if w.mu.TryLock() {
					if time.Now().Before(w.next) {
						w.mu.Unlock()
						continue
					}
					calls.Go(func() {
						defer w.mu.Unlock()
						w.follow(ctx, f, t)
					})
				}
			}
		}
		ready()
		ready = func() {}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// follow fetches the bundle once, and returns the time of the next fetch.
func (w *follower) follow(ctx context.Context, f *Federation, t *trusted) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	b, _, err := f.inForce(ctx, t)
	if err != nil {
		b = t.first
	} else {
		var next *trust.Bundle
		if next, err = fetch(ctx, t, b); err == nil {
			err = f.accept(ctx, t, next)
		}
		if err == nil {
			b = next
		}
	}
	w.next = time.Now().Add(hint(b))
	if err == nil {
		w.failed = ""
		return
	}
	if context.Cause(ctx) == context.Canceled {
		return
	}
	w.next = time.Now().Add(min(hint(b), repeatedly))
	var refused *refusedError
	if errors.As(err, &refused) && time.Since(w.noted[refused.code]) > reminded {
		w.noted[refused.code] = time.Now()
		w.refuse(ctx, f, t, refused)
	}
	if text := err.Error(); text != w.failed {
		f.Logger.Warn("the bundle stays as it was", "trustDomain", t.name, "endpoint", t.endpoint, "error", err)
		w.failed = text
	}
}

// refuse writes the audit row of a refused endpoint or bundle.
func (w *follower) refuse(ctx context.Context, f *Federation, t *trusted, refused *refusedError) {
	row := server.Suspect(time.Now(), Name, refused.code, refused, map[string]string{"trustDomain": t.name, "endpoint": t.endpoint})
	if _, err := f.Store.Commit(ctx, store.Txn{Then: []store.Op{row.Op()}}); err != nil {
		f.Logger.Error("no audit row", "error", err)
		return
	}
	row.Log(ctx, f.Logger)
}

// fetch gets the bundle of a foreign trust domain from the domain's endpoint. The last argument is
// the bundle in force, which must verify the endpoint's certificate.
func fetch(ctx context.Context, t *trusted, by *trust.Bundle) (*trust.Bundle, error) {
	transport := &http.Transport{
		TLSClientConfig: endpointTLS(t, by), TLSHandshakeTimeout: within / 2, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.endpoint, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return nil, &refusedError{codeEndpoint, fmt.Errorf("endpoint of %s: %w", t.name, untrusted)}
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s, want the bundle", t.endpoint, answer.Status)
	}
	text, err := readAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.endpoint, err)
	}
	b, err := trust.ParseBundle(t.name, text)
	if err != nil {
		return nil, &refusedError{codeBundle, err}
	}
	return b, nil
}
