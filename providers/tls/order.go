package tls

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/go-acme/lego/v4/acme"
	"github.com/go-acme/lego/v4/acme/api"
	"github.com/go-acme/lego/v4/certificate"
	"github.com/go-acme/lego/v4/challenge"
	"github.com/go-acme/lego/v4/challenge/dns01"
)

const (
	orderTime = 2 * time.Minute // of one order
	poll      = time.Second     // unless the CA has another
	maxPoll   = 15 * time.Second
)

// obtain orders a certificate from the CA for a certificate request, and returns the chain in PEM.
// The argument former is the certificate that is replaced. It may be nil.
func (k *Certificates) obtain(ctx context.Context, p *Policy, names []string, csr *x509.CertificateRequest, former *x509.Certificate) (string, error) {
	core, err := k.account(p)
	if err != nil {
		return "", err
	}
	var options api.OrderOptions
	if former != nil {
		if id, err := certificate.MakeARICertID(former); err == nil {
			options.ReplacesCertID = id
		}
	}
	order, err := core.Orders.NewWithOptions(names, &options)
	var problem *acme.ProblemDetails
	var limited *acme.RateLimitedError
	if options.ReplacesCertID != "" && errors.As(err, &problem) && !errors.As(err, &limited) {
		order, err = core.Orders.New(names) // the former one is another CA's, or this one lost it
	}
	if err != nil {
		return "", err
	}
	for _, at := range order.Authorizations {
		if err := k.authorize(ctx, core, p, at); err != nil {
			return "", err
		}
	}
	if _, err := core.Orders.UpdateForCSR(order.Finalize, csr.Raw); err != nil {
		return "", err
	}
	for after := poll / 10; ; after = min(after*2, maxPoll) {
		now, err := core.Orders.Get(order.Location)
		switch {
		case err != nil:
			return "", err
		case now.Status == acme.StatusValid:
			chain, _, err := core.Certificates.Get(now.Certificate, true)
			return string(chain), err
		case now.Status == acme.StatusInvalid:
			if now.Error != nil {
				return "", now.Error
			}
			return "", errors.New("the CA made the order invalid")
		}
		if err := wait(ctx, after); err != nil {
			return "", err
		}
	}
}

// authorize proves to the CA that the cluster controls a name. If the CA has a valid authorization,
// no proof is necessary.
func (k *Certificates) authorize(ctx context.Context, core *api.Core, p *Policy, at string) error {
	authz, err := core.Authorizations.Get(at)
	if err != nil || authz.Status == acme.StatusValid {
		return err
	}
	validate := func(core *api.Core, _ string, c acme.Challenge) error { return validate(ctx, core, at, c) }
	if p.DNS == "" {
		return k.overHTTP(ctx, core, authz, validate)
	}
	provider, err := k.dnsProvider(p.DNS)
	if err != nil {
		return err
	}
	var options []dns01.ChallengeOption
	if len(k.Resolvers) > 0 {
		options = append(options, dns01.AddRecursiveNameservers(k.Resolvers), dns01.DisableAuthoritativeNssPropagationRequirement(), dns01.RecursiveNSsPropagationRequirement())
	}
	c := dns01.NewChallenge(core, validate, provider, options...)
	if err := c.PreSolve(authz); err != nil {
		return err
	}
	return errors.Join(c.Solve(authz), c.CleanUp(authz))
}

// overHTTP makes the CA validate an HTTP-01 challenge, once the ingress answers the challenge.
func (k *Certificates) overHTTP(ctx context.Context, core *api.Core, authz acme.Authorization, validate dns01.ValidateFunc) error {
	c, err := challenge.FindChallenge(challenge.HTTP01, authz)
	if err != nil {
		return fmt.Errorf("%s: the CA offers no HTTP-01: write providers.tls.dns", authz.Identifier.Value)
	}
	answer, err := core.GetKeyAuthorization(c.Token)
	if err != nil {
		return err
	}
	if err := k.answers(ctx, authz.Identifier.Value, c.Token, answer); err != nil {
		return err
	}
	return validate(core, authz.Identifier.Value, c)
}

// notYet is the error for an ingress that does not answer a challenge. The CA is then not asked to
// validate the challenge, because it counts failures.
type notYet struct{ error }

// patient is the longest time that an ingress may take to answer a challenge. An ingress may have
// received the thumbprint only a moment ago.
const patient = 4 * time.Second

// answers returns an error unless the ingress of a name answers a challenge. If the name cannot be
// reached from here, for example behind a NAT, it returns nil. The CA then finds out by itself.
func (k *Certificates) answers(ctx context.Context, name, token, want string) (err error) {
	for end := time.Now().Add(patient); ; {
		err = k.probe(ctx, name, token, want)
		if err == nil || time.Now().After(end) || wait(ctx, patient/8) != nil {
			return err
		}
	}
}

func (k *Certificates) probe(ctx context.Context, name, token, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+name+"/.well-known/acme-challenge/"+token, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "florete")
	resp, err := k.ingress.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return notYet{fmt.Errorf("%s: nobody answers on port 80 there: is flor ingress running?", name)}
	}
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err == nil && strings.TrimSpace(string(b)) != want {
		return notYet{fmt.Errorf("%s: what listens on port 80 there answers no challenges of this cluster (status %d): is it an ingress of the cluster?", name, resp.StatusCode)}
	}
	return nil
}

// validate makes the CA validate a challenge and waits for the result.
func validate(ctx context.Context, core *api.Core, authorization string, c acme.Challenge) error {
	begun, err := core.Challenges.New(c.URL)
	if err != nil {
		return err
	}
	after := pause(begun.RetryAfter)
	for {
		if err := wait(ctx, after); err != nil {
			return err
		}
		authz, err := core.Authorizations.Get(authorization)
		switch {
		case err != nil:
			return err
		case authz.Status == acme.StatusValid:
			return nil
		case authz.Status != acme.StatusPending:
			for _, c := range authz.Challenges {
				if c.Error != nil {
					return c.Error
				}
			}
			return fmt.Errorf("%s: the CA made the authorization %s", authz.Identifier.Value, authz.Status)
		}
		after = min(after*2, maxPoll)
	}
}

// pause returns how long a CA requests to wait.
func pause(retryAfter string) time.Duration {
	if d, err := api.ParseRetryAfter(retryAfter); err == nil && d > 0 {
		return min(d, maxPoll)
	}
	return poll / 10
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look asks the CA when a certificate should be renewed (ARI, RFC 9773). The answer can make a
// renewal earlier than after two thirds of the certificate's lifetime, but never later.
func (k *Certificates) look(ctx context.Context, p *Policy, r *record, now time.Time) {
	after := 6 * time.Hour
	defer func() { r.Look = now.Add(after).Unix() }()
	leaf, err := leafOf(r.Chain)
	if err != nil {
		return
	}
	core, err := k.account(p)
	if err != nil {
		k.Logger.WarnContext(ctx, "the CA reports no time to renew", "error", err)
		after = 10 * time.Minute
		return
	}
	info, err := certificate.NewCertifier(core, nil, certificate.CertifierOptions{}).GetRenewalInfo(certificate.RenewalInfoRequest{Cert: leaf})
	if err != nil {
		if !errors.Is(err, api.ErrNoARI) {
			k.Logger.WarnContext(ctx, "the CA reports no time to renew", "error", err)
		}
		return
	}
	if info.RetryAfter > 0 {
		after = min(max(info.RetryAfter, time.Minute), 24*time.Hour)
	}
	if at := r.within(info.SuggestedWindow.Start, info.SuggestedWindow.End); at < r.Renew {
		r.Renew = at
		k.Logger.InfoContext(ctx, "the CA wants a certificate renewed early", "names", leaf.DNSNames, "at", stamp(at), "reason", info.ExplanationURL)
	}
}
