package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

// Importing contains options for publishing documents with Provider.Import.
type Importing struct {
	Back   int64 // for a rollback, serial of the earlier version with these documents; otherwise zero
	AtOnce bool  // offer the documents to all hosts at once, without waves

	// BeyondBudget offers the documents to all hosts at once, although this exceeds the disruption
	// budgets of the hosts.
	BeyondBudget bool
}

// Versions returns descriptions of the versions of the documents that the provider stores, newest
// first.
func (p *Provider) Versions(ctx context.Context) ([]archive.Version, error) {
	var v control.Versions
	err := p.Get(ctx, "/v1/versions", &v)
	return v.Versions, err
}

// Reports returns the last report of each host that has reported to the provider, by the name of
// the host.
func (p *Provider) Reports(ctx context.Context) (map[string]hostreport.Kept, error) {
	all := map[string]hostreport.Kept{}
	for after := ""; ; {
		var page control.Hosts
		if err := p.Get(ctx, "/v1/hosts?after="+url.QueryEscape(after), &page); err != nil {
			return nil, err
		}
		for _, h := range page.Hosts {
			all[h.Host] = h.Kept
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Export writes the documents of the version with the given serial to w, in the form that
// archive.NewStreamReader reads.
func (p *Provider) Export(ctx context.Context, serial int64, w io.Writer) error {
	body, err := p.request(ctx, http.MethodGet, fmt.Sprintf("/v1/versions/%d", serial), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// Import publishes the signed documents in r, which archive.EncodeStream has written. It returns the
// provider's message about the result.
func (p *Provider) Import(ctx context.Context, r io.Reader, how Importing) (string, error) {
	path, query := "/v1/publish", url.Values{}
	switch {
	case how.Back != 0:
		path = fmt.Sprintf("/v1/rollback/%d", how.Back)
	case how.AtOnce:
		query.Set("atOnce", "true")
	}
	if how.BeyondBudget {
		query.Set("beyondBudget", "true")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	body, err := p.request(ctx, http.MethodPost, path, r)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var done control.Published
	if err := json.NewDecoder(body).Decode(&done); err != nil {
		return "", fmt.Errorf("%s%s: %w", p.base, path, err)
	}
	report := fmt.Sprintf("%s: %s", p.Host, archive.Report(done.Version, done.Changed))
	if done.Rollout != nil {
		report += fmt.Sprintf("\n%s: %s: florctl rollout status", p.Host, advance.Describe(*done.Rollout))
	}
	return report, nil
}

// Rollout returns the status of the rollout in progress or, if there is none, of the last one. If
// act is not empty, Rollout first changes the rollout, for example pauses it.
func (p *Provider) Rollout(ctx context.Context, act advance.Act) (s advance.Status, err error) {
	if act != "" {
		body, err := p.request(ctx, http.MethodPost, "/v1/rollout/"+string(act), nil)
		if err != nil {
			return s, err
		}
		body.Close()
	}
	err = p.Get(ctx, "/v1/rollout", &s)
	return s, err
}

// Claim asks whether a host may be deployed now, and reserves a place for it in each of its
// disruption budgets, which limit how many hosts change at the same time. The reservation ends
// after the given duration, rounded down to seconds. If a budget does not permit a change now,
// Claim reserves nothing and returns the reason.
func (p *Provider) Claim(ctx context.Context, host string, lasts time.Duration) (waits string, err error) {
	var claimed control.Claimed
	err = p.Post(ctx, "/v1/claims/"+url.PathEscape(host), control.Claim{Seconds: int(lasts.Seconds())}, &claimed)
	return claimed.Waits, err
}

// Release ends the reservation that Claim made for a host.
func (p *Provider) Release(ctx context.Context, host string) error {
	var claimed control.Claimed
	return p.Post(ctx, "/v1/claims/"+url.PathEscape(host)+"/release", nil, &claimed)
}

// Revocations returns the revocation list that the provider offers to hosts.
func (p *Provider) Revocations(ctx context.Context) (r archive.Revocations, err error) {
	err = p.Get(ctx, "/v1/revocations", &r)
	return r, err
}

// SetRevocations replaces the revocation list that the provider offers to hosts.
func (p *Provider) SetRevocations(ctx context.Context, s trust.SignedRevocations) error {
	var set archive.Revocations
	return p.Post(ctx, "/v1/revocations", s, &set)
}

// Access returns the requests for roles, and the access grants in force.
func (p *Provider) Access(ctx context.Context) (a archive.Access, err error) {
	err = p.Get(ctx, "/v1/access", &a)
	return a, err
}

// RequestAccess requests a role for the user who calls.
func (p *Provider) RequestAccess(ctx context.Context, q control.AccessRequest) (r archive.AccessRequest, err error) {
	err = p.Post(ctx, "/v1/access/requests", q, &r)
	return r, err
}

// DropAccessRequest removes a request for a role that nobody has approved.
func (p *Provider) DropAccessRequest(ctx context.Context, id string) (r archive.AccessRequest, err error) {
	err = p.Post(ctx, "/v1/access/requests/"+url.PathEscape(id)+"/drop", struct{}{}, &r)
	return r, err
}

// PutGrant makes the provider offer hosts an access grant, or a statement that ends one.
func (p *Provider) PutGrant(ctx context.Context, s accessgrant.Signed) error {
	var g accessgrant.Grant
	return p.Post(ctx, "/v1/access/grants", s, &g)
}

// Rotate orders a host to replace the secret of a need. The host receives the order with the answer
// to its next report. Rotate returns a message for the operator.
func (p *Provider) Rotate(ctx context.Context, host, need string) (string, error) {
	var ordered control.Ordered
	if err := p.Post(ctx, "/v1/rotate", control.Rotate{Host: host, Need: need}, &ordered); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: rotation %d of need %s is ordered, with the answer to its next report", host, ordered.Rotation, need), nil
}

// Tokens returns all join tokens that the provider has recorded.
func (p *Provider) Tokens(ctx context.Context) ([]join.Token, error) {
	var t control.Tokens
	err := p.Get(ctx, "/v1/tokens", &t)
	return t.Tokens, err
}

// CreateToken sends a new join token to the provider, which records it, and returns the record.
func (p *Provider) CreateToken(ctx context.Context, t join.Token) (made join.Token, err error) {
	err = p.Post(ctx, "/v1/tokens", t, &made)
	return made, err
}

// RevokeToken revokes the join token with this ID.
func (p *Provider) RevokeToken(ctx context.Context, id string) (t join.Token, err error) {
	err = p.Post(ctx, "/v1/tokens/"+url.PathEscape(id)+"/revoke", nil, &t)
	return t, err
}

// Joins returns the last join request of each host.
func (p *Provider) Joins(ctx context.Context) ([]join.Request, error) {
	var j control.Joins
	err := p.Get(ctx, "/v1/joins", &j)
	return j.Joins, err
}

// DecideJoin approves or rejects a host's join request at the provider, and returns the request
// with the decision.
func (p *Provider) DecideJoin(ctx context.Context, host string, d control.Decision) (r join.Request, err error) {
	err = p.Post(ctx, "/v1/joins/"+url.PathEscape(host), d, &r)
	return r, err
}

// Issued makes the provider write an audit row about the certificates in an identity file.
func (p *Provider) Issued(ctx context.Context, i join.Issued) error {
	return p.Post(ctx, "/v1/issued", i, &i)
}
