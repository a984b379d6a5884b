package control_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var facts = hostreport.Facts{System: "Debian", Capabilities: []string{}}

// token records a join token for elm with one use, as alice.
func (e *env) token(t *testing.T, change ...func(*join.Token)) (hostapi.JoinToken, join.Token) {
	t.Helper()
	token, err := hostapi.NewJoinToken("drhorrible")
	if err != nil {
		t.Fatal(err)
	}
	record := join.Token{ID: hostapi.TokenID(token.Public()), Hosts: "elm", Uses: 1, Until: unixtime.Of(time.Now().Add(time.Hour))}
	for _, c := range change {
		c(&record)
	}
	e.answer(alice, "POST", "/v1/tokens", bytes.NewReader(kit.JSON(record)), &record)
	return token, record
}

// admission returns the admission of elm's device.
func (e *env) admission(t *testing.T, key signature.SecretKey, device ssh.Signer) *trust.SignedAdmission {
	t.Helper()
	text := string(kit.JSON(trust.NewAdmission("demo", elm, kit.Authorized(device.PublicKey()), time.Now())))
	sig, err := key.Sign(nil, trust.AdmissionText(text))
	if err != nil {
		t.Fatal(err)
	}
	return &trust.SignedAdmission{Admission: text, Signature: sig.String()}
}

// decide sends a decision of alice about elm, and returns the API's answer.
func (e *env) decide(d control.Decision) (int, string) {
	status, b := e.do(alice, e.request("POST", "/v1/joins/elm", bytes.NewReader(kit.JSON(d))))
	return status, string(b)
}

// An operator approves a device: only with a signature that providers verify, of that very
// device. It outlives a restart, and is in the audit log without the token.
func TestJoin(t *testing.T) {
	e := start(t)
	c := e.Stranger(elm)
	token, record := e.token(t)
	if record.By != alice.String() || record.Left != 1 {
		t.Errorf("got %+v", record)
	}
	for range 2 { // the same device waits, and uses the token once
		if a, err := c.Join(t.Context(), facts, &token); err != nil || a.State != hostapi.JoinPending || a.Admission != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	e.Restart()
	e.until("a socket", func() bool { return e.dial() == nil })
	var joins control.Joins
	e.answer(bob, "GET", "/v1/joins", nil, &joins)
	if len(joins.Joins) != 1 || joins.Joins[0].State != hostapi.JoinPending || joins.Joins[0].Facts.System != "Debian" {
		t.Fatalf("got %+v", joins)
	}
	for what, a := range map[string]*trust.SignedAdmission{
		"another key's":    e.admission(t, kit.SigningKey("demo-1"), c.HostKey),
		"another device's": e.admission(t, e.key, kit.NewHostKey()),
	} {
		if status, answer := e.decide(control.Decision{Admission: a}); status != http.StatusBadRequest {
			t.Errorf("%s admission: %d %s", what, status, answer)
		}
	}
	if status, b := e.do(bob, e.request("POST", "/v1/joins/elm", strings.NewReader("{}"))); status != http.StatusForbidden {
		t.Errorf("a reader decides: %d %s", status, b)
	}
	for range 2 {
		if status, answer := e.decide(control.Decision{Admission: e.admission(t, e.key, c.HostKey)}); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	a, err := c.Join(t.Context(), facts, nil)
	if err != nil || a.State != hostapi.JoinApproved || a.Admission == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if status, answer := e.decide(control.Decision{}); status != http.StatusBadRequest || !strings.Contains(answer, "florctl revoke --host-key") {
		t.Errorf("rejected once it was approved: %d %s", status, answer)
	}
	acts := 0
	for _, row := range e.Rows() {
		if row.Code == join.CodeApprove && row.Outcome == "granted" {
			acts++
		}
		if strings.Contains(string(kit.JSON(row)), token.Public()) || strings.Contains(string(kit.JSON(row)), token.String()) {
			t.Errorf("a row has the token: %+v", row)
		}
	}
	if acts != 1 {
		t.Errorf("%d rows of approvals, want 1", acts)
	}

	t.Log("its key is revoked: it is told so, and another device may join")
	kit.WriteRevocations(e.Revocations(), kit.Revocations(1, e.key, revocation.Target{Keys: []string{ssh.FingerprintSHA256(c.HostKey.PublicKey())}}))
	e.until("the list", func() bool { return e.Policies.Revoked().InForce() == 1 })
	if a, err = c.Join(t.Context(), facts, nil); err != nil || a.State != hostapi.JoinRevoked {
		t.Errorf("%+v, %v", a, err)
	}
	e.until("the list to be offered", func() bool {
		e.answer(bob, "GET", "/v1/joins", nil, &joins)
		return joins.Joins[0].State == hostapi.JoinRevoked
	})
	c.HostKey = kit.NewHostKey()
	token, _ = e.token(t)
	if a, err = c.Join(t.Context(), facts, &token); err != nil || a.State != hostapi.JoinPending {
		t.Errorf("%+v, %v", a, err)
	}
}

// A device that was rejected needs another token.
func TestRejected(t *testing.T) {
	e := start(t)
	c := e.Stranger(elm)
	token, _ := e.token(t, func(r *join.Token) { r.Uses = 2 })
	if _, err := c.Join(t.Context(), facts, &token); err != nil {
		t.Fatal(err)
	}
	if status, answer := e.decide(control.Decision{}); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	for _, again := range []*hostapi.JoinToken{&token, nil} {
		if a, err := c.Join(t.Context(), facts, again); err != nil || a.State != hostapi.JoinRejected {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if status, answer := e.decide(control.Decision{Admission: e.admission(t, e.key, c.HostKey)}); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, answer)
	}
	token, _ = e.token(t)
	if a, err := c.Join(t.Context(), facts, &token); err != nil || a.State != hostapi.JoinPending {
		t.Errorf("%+v, %v", a, err)
	}
}

// Of many devices that come at once one waits, and the token counts once. What is wrong with a
// token is refused when it is made.
func TestTokens(t *testing.T) {
	e := start(t)
	token, _ := e.token(t, func(r *join.Token) { r.Uses = 20 })
	var mu sync.Mutex
	var all sync.WaitGroup
	states := map[string]int{}
	for range 12 {
		c := e.Stranger(elm)
		c.HostKey = kit.NewHostKey()
		all.Go(func() {
			a, err := c.Join(t.Context(), facts, &token)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				states[hostapi.AsError(err).Code]++
			} else {
				states[string(a.State)]++
			}
		})
	}
	all.Wait()
	if states["pending"] != 1 || states[hostapi.CodeJoin.Name] != 11 {
		t.Errorf("got %v", states)
	}
	var tokens control.Tokens
	e.answer(bob, "GET", "/v1/tokens", nil, &tokens)
	if len(tokens.Tokens) != 1 || tokens.Tokens[0].Left != 19 || strings.Contains(string(kit.JSON(tokens)), token.Public()) {
		t.Errorf("got %+v", tokens)
	}

	_, good := e.token(t)
	grant := func(by signature.SecretKey, token, host string) *trust.SignedGrant {
		text := string(kit.JSON(trust.JoinGrant{Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: "demo", Node: kit.ID("node/" + host), Token: token, Until: good.Until}))
		sig, err := by.Sign(nil, trust.JoinGrantText(text))
		if err != nil {
			t.Fatal(err)
		}
		return &trust.SignedGrant{Grant: text, Signature: sig.String()}
	}
	made, _ := hostapi.NewJoinToken("drhorrible")
	id := hostapi.TokenID(made.Public())
	for what, change := range map[string]func(*join.Token){
		"an ID that is no hash":      func(r *join.Token) { r.ID = made.Public() },
		"a pattern that is none":     func(r *join.Token) { r.Hosts = "[" },
		"no use":                     func(r *join.Token) { r.Uses = 0 },
		"too many uses":              func(r *join.Token) { r.Uses = join.MaxUses + 1 },
		"too long":                   func(r *join.Token) { r.Until = unixtime.Of(time.Now().Add(join.MaxLifetime + time.Hour)) },
		"over already":               func(r *join.Token) { r.Until = unixtime.Of(time.Now().Add(-time.Second)) },
		"a grant by another key":     func(r *join.Token) { r.Grant = grant(kit.SigningKey("demo-1"), made.Public(), "elm") },
		"a grant for another token":  func(r *join.Token) { r.Grant = grant(e.key, token.Public(), "elm") },
		"a grant for another host":   func(r *join.Token) { r.Grant = grant(e.key, made.Public(), "ursula") },
		"a grant for several hosts":  func(r *join.Token) { r.Grant, r.Hosts = grant(e.key, made.Public(), "elm"), "e*" },
		"a grant for several device": func(r *join.Token) { r.Grant, r.Uses = grant(e.key, made.Public(), "elm"), 2 },
	} {
		r := join.Token{ID: id, Hosts: "elm", Uses: 1, Until: good.Until}
		change(&r)
		if status, b := e.do(alice, e.request("POST", "/v1/tokens", bytes.NewReader(kit.JSON(r)))); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, status, b)
		}
	}
	c := e.Stranger(elm)
	_, err := c.Join(t.Context(), facts, &made)
	providertest.WantError(t, err, hostapi.CodeToken)
}
