package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// A process uses a new revocation list within seconds. It refuses a revoked SVID and a revoked SSH
// host key, but not an SVID that is issued later.
func TestRevokedCaller(t *testing.T) {
	e, r := start(t, &echo{})
	key := kit.SigningKey("demo-1")
	number := int64(0)
	revoke := func(targets ...revocation.Target) {
		t.Helper()
		number++
		kit.WriteRevocations(e.Revocations(), kit.Revocations(number, key, targets...))
		kit.Eventually(t, fmt.Sprintf("list %d to be in force", number), func() bool { return e.Policies.Revoked().InForce() == number })
	}
	c := e.Client(ursula)
	do := func() error {
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	p := c.Calls() // a connection from before the revocation
	defer p.Close()
	if _, err := p.Do(t.Context(), hostapi.Path("oidc"), r); err != nil {
		t.Fatal(err)
	}
	revoke(revocation.Target{ID: ursula})
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	_, err := p.Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeRevoked)
	rows := e.Audit()
	if last := rows[len(rows)-1]; last.Caller != ursula.String() || last.Code != hostapi.CodeRevoked.Name {
		t.Errorf("got %+v", last)
	}
	revoke(revocation.Target{Keys: []string{ssh.FingerprintSHA256(e.HostKey(ursula).PublicKey())}})
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	revoke(revocation.Target{Certificates: []string{trust.SerialNumber(c.SVID.Leaf)}})
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	revoke(revocation.Target{Before: []spiffe.ID{ursula}})
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	revoke(revocation.Target{ID: kit.ID("node/raishan")})
	if err := do(); err != nil {
		t.Error(err)
	}

	if err := e.Server.ListBehind(); err != nil {
		t.Errorf("with the newest list: %v", err)
	}
	t.Log("a host with a newer list, and one of before, which is not taken")
	c.Revocations = number + 1
	providertest.WantError(t, do(), hostapi.CodeListBehind)
	c.Revocations = 0
	kit.WriteRevocations(e.Revocations(), kit.Revocations(1, key))
	_ = do() // each decision looks for a new list
	if got := e.Policies.Revoked().InForce(); got != number {
		t.Errorf("list %d is in force, want %d", got, number)
	}
	t.Log("nor after a restart, by what is on record")
	for range 2 {
		e.Restart()
		_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
		providertest.WantError(t, err, hostapi.CodeListBehind)
		providertest.WantError(t, e.Server.ListBehind(), hostapi.CodeListBehind)
		_ = os.Remove(e.Revocations())
	}
	var codes []string
	for _, row := range e.Rows() {
		if row.Kind == "revocations" {
			codes = append(codes, row.Code)
		}
	}
	if len(codes) != int(number) || codes[0] != server.CodeInForce {
		t.Errorf("rows: %v", codes)
	}
}

// A list that another process of the host writes is in force for the next decision, if a key of the
// policy signed the list.
func TestListBeside(t *testing.T) {
	key := kit.SigningKey("demo-1")
	e := providertest.NewEnv(t, "ursula")
	e.Policy.Trust.SigningKeys = []string{key.ToPublicKey().String()}
	e.Runs("oidc", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Any(&echo{}) })
	e.Grant(ursula, "echo", "oidc", map[string]any{"word": "hello"})
	e.Start()
	r := hostapi.Request{Need: "echo", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"word":"hello"}`)}
	left := filepath.Join(t.TempDir(), "revocations.json")
	e.Policies.AlsoRead(left)
	c := e.Client(ursula)
	p := c.Calls()
	defer p.Close()
	do := func() error {
		_, err := p.Do(t.Context(), hostapi.Path("oidc"), r)
		return err
	}
	for n := range int64(20) {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		kit.WriteRevocations(left, kit.Suspensions(2*n+1, key, ursula))
		providertest.WantError(t, do(), hostapi.CodeRevokedTransient)
		kit.WriteRevocations(left, kit.Suspensions(2*n+2, key))
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	kit.WriteRevocations(left, kit.Suspensions(99, kit.SigningKey("demo-2"), ursula))
	if err := do(); err != nil {
		t.Errorf("a list that another key signed: %v", err)
	}
}

// A suspended caller gets a transient error. After the suspension ends, the caller continues with
// the same certificate. Earlier revocations stay in force.
func TestSuspendedCaller(t *testing.T) {
	e, r := start(t, &echo{})
	key := kit.SigningKey("demo-1")
	var last *trust.Revocations
	change := func(do func(*trust.Revocations) error) {
		t.Helper()
		next := revocation.Next(last, "demo", time.Now(), revocation.Lifetime)
		if err := do(next); err != nil {
			t.Fatal(err)
		}
		signed, err := revocation.Sign(next, key)
		if err != nil {
			t.Fatal(err)
		}
		kit.WriteRevocations(e.Revocations(), signed)
		if last, err = signed.Open(); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, fmt.Sprintf("list %d to be in force", last.Number), func() bool { return e.Policies.Revoked().InForce() == last.Number })
	}
	c := e.Client(ursula)
	do := func() error {
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
		return err
	}
	suspend := func(l *trust.Revocations) error { return revocation.Suspend(l, ursula) }
	resume := func(l *trust.Revocations) error { return revocation.Unsuspend(l, ursula) }
	change(suspend)
	err := do()
	providertest.WantError(t, err, hostapi.CodeRevokedTransient)
	if e := hostapi.AsError(err); e.RetryAfter != 30 || !strings.Contains(e.Message, "node/ursula is suspended, by revocation list 1: florctl unsuspend") {
		t.Errorf("got %+v", e)
	}
	if err := revocation.Reinstate(revocation.Next(last, "demo", time.Now(), time.Hour), revocation.Target{ID: ursula}); err == nil {
		t.Error("a suspension was reinstated")
	}
	change(resume)
	if err := do(); err != nil {
		t.Error(err)
	}
	if len(last.Entries) != 0 {
		t.Errorf("the list still has %+v", last.Entries)
	}

	change(func(l *trust.Revocations) error {
		revocation.Revoke(l, revocation.Target{Before: []spiffe.ID{ursula}})
		return nil
	})
	change(suspend)
	change(resume)
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	change(suspend)
	change(func(l *trust.Revocations) error { revocation.Revoke(l, revocation.Target{ID: ursula}); return nil })
	providertest.WantError(t, do(), hostapi.CodeRevoked)
	raishan := kit.ID("node/raishan")
	both := revocation.Next(nil, "demo", time.Now(), time.Hour)
	if err := revocation.Suspend(both, raishan); err != nil {
		t.Fatal(err)
	}
	revocation.Revoke(both, revocation.Target{Before: []spiffe.ID{raishan}})
	if err := revocation.Unsuspend(both, raishan); err != nil || len(both.Entries) != 1 || both.Entries[0].ValidAfter.IsZero() {
		t.Errorf("what was revoked while it was suspended is good again: %+v, %v", both.Entries, err)
	}
	for what, do := range map[string]func(*trust.Revocations) error{"suspended": suspend, "resumed": resume} {
		if err := do(revocation.Next(last, "demo", time.Now(), time.Hour)); err == nil {
			t.Errorf("what is revoked was %s", what)
		}
	}
}
