package token

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	bob = kit.ID("user/bob") // may read
	eve = kit.ID("user/eve") // may act, but no tenant has a policy for it
	pat = kit.ID("user/pat") // may act, but only in namespace payments
)

// runtime is the tenant acme, which alice administers, and whose rules change at run time.
func runtime() Tenant {
	t := acme("https://login.example.org")
	t.Namespaces = []string{"logs", "payments"}
	t.RuntimeRules = &Quota{Policies: 40, Groupings: 5}
	for _, action := range []string{rules.View, rules.ManagePolicies, rules.ManageGroupings} {
		t.Policies = append(t.Policies, rules.Policy{Subject: alice.String(), Action: action, Object: "tenant:acme"},
			rules.Policy{Subject: pat.String(), Action: action, Object: "namespace:acme/payments"})
	}
	return t
}

func operated(t *testing.T, tenant Tenant) *env {
	t.Helper()
	e := startWith(t, tenant, func(e *env) {
		for id, access := range map[spiffe.ID]document.Access{alice: document.AccessWrite, bob: document.AccessRead, eve: document.AccessWrite, pat: document.AccessWrite} {
			e.Policy.Operators = append(e.Policy.Operators, document.Operator{ID: id, Access: access})
		}
	})
	for _, socket := range []string{announced.OperatorSocket, "bootstrap/bootstrap.sock"} {
		e.until(socket, func() bool { _, err := os.Stat(filepath.Join(e.dir, socket)); return err == nil })
	}
	return e
}

func (e *env) until(what string, holds func() bool) {
	e.t.Helper()
	kit.Eventually(e.t, what, holds)
}

// operate returns the answer to an operator whom kind config announces. Without a body, the request
// only reads.
func (e *env) operate(caller spiffe.ID, path string, body any) (int, []byte) {
	e.t.Helper()
	method, content := "GET", io.Reader(nil)
	if body != nil {
		method, content = "POST", bytes.NewReader(kit.JSON(body))
	}
	r, err := http.NewRequest(method, "http://florete-control.drhorrible.demo.flor.rete/v1/tenants"+path, content)
	if err != nil {
		e.t.Fatal(err)
	}
	a := agenttest.Announced{Socket: filepath.Join(e.dir, announced.OperatorSocket), Service: kit.ID("service/drhorrible/" + spiffe.ControlService)}
	return a.Do(e.t, caller, r)
}

// must returns the decoded answer to a request that must succeed.
func must[T any](e *env, caller spiffe.ID, path string, body any) (v T) {
	e.t.Helper()
	status, b := e.operate(caller, path, body)
	if status != http.StatusOK || json.Unmarshal(b, &v) != nil {
		e.t.Fatalf("%s: %d %s", path, status, b)
	}
	return v
}

// refused checks that a request is refused, and that the refusal has an audit row.
func (e *env) refused(caller spiffe.ID, path string, body any, part string) {
	e.t.Helper()
	before := len(e.Audit())
	status, b := e.operate(caller, path, body)
	if status < 400 || !strings.Contains(string(b), part) {
		e.t.Errorf("%s %s: %d %s, want %q", path, kit.JSON(body), status, b, part)
	}
	if rows := e.Audit()[before:]; !slices.ContainsFunc(rows, func(r server.Row) bool { return r.Caller == caller.String() && r.Outcome != server.Granted }) {
		e.t.Errorf("%s: no row of the refusal", path)
	}
}

func policy(subject, action, object string) rules.Policy {
	return rules.Policy{Subject: subject, Action: action, Object: object}
}

// TestRuntimeRules checks that rules that operators add or remove take effect at once, and that
// rules of the flake stay.
func TestRuntimeRules(t *testing.T) {
	t.Parallel()
	e := operated(t, runtime())
	other := kit.ID("service/other")
	status := func() int { s, _ := e.exchange(other, "acme", url.Values{}); return s }
	if got := status(); got != http.StatusForbidden {
		t.Fatalf("before: %d", got)
	}
	direct, grouping := policy(other.String(), "cache.read", "cache:acme/logs/x"), rules.Grouping{Member: other.String(), Role: "role:writer"}
	added := must[Rule](e, alice, "/acme/policies", direct)
	if added.Origin != OfRuntime || added.By != alice.String() || added.Added.IsZero() {
		t.Errorf("%+v", added)
	}
	must[Rule](e, pat, "/acme/groupings", grouping)
	_, answer := e.exchange(other, "acme", url.Values{})
	if got := e.verified(answer); !got.May("cache.read", "cache:acme/logs/x") || !got.May("stream.publish", "stream:acme/payments/y") || len(got.Permissions) != 2 {
		t.Errorf("%+v", got)
	}
	if again := must[Rule](e, alice, "/acme/policies", direct); again.Added != added.Added {
		t.Errorf("the same again: %+v, was %+v", again, added)
	}

	all := must[TenantRules](e, alice, "/acme/rules", nil)
	var flake, runtime int
	for _, r := range append(all.Policies, all.Groupings...) {
		switch {
		case r.Origin == OfFlake && r.By == "":
			flake++
		case r.Origin == OfRuntime && r.By != "":
			runtime++
		}
	}
	if flake != 9+2 || runtime != 2 {
		t.Errorf("%d of the flake and %d of run time in %+v", flake, runtime, all)
	}
	if in := must[TenantRules](e, pat, "/acme/rules", nil); len(in.Policies) != 6 || len(in.Groupings) != 3 {
		t.Errorf("within payments: %+v", in)
	}

	// A restart keeps all rules.
	e.Restart()
	e.until("the socket", func() bool { _, err := e.as(other).Get(acmeIssuer + "/jwks.json"); return err == nil })
	if got := status(); got != http.StatusOK {
		t.Errorf("after a restart: %d", got)
	}
	must[Rule](e, alice, "/acme/policies/remove", direct)
	must[Rule](e, pat, "/acme/groupings/remove", grouping)
	if got := status(); got != http.StatusForbidden {
		t.Errorf("after: %d", got)
	}
	acts := map[string]int{}
	for _, r := range e.Audit() {
		if r.Kind == announced.OperatorKind && r.Outcome == server.Granted && r.Detail["tenant"] == "acme" && r.From == "192.0.2.7:4610" {
			acts[r.Code+" "+r.Caller]++
		}
	}
	for _, want := range []string{CodePolicyAdd + " " + alice.String(), CodeGroupingAdd + " " + pat.String(), CodePolicyRemove + " " + alice.String(), CodeGroupingRemove + " " + pat.String()} {
		if acts[want] != 1 || len(acts) != 4 {
			t.Errorf("%s: rows %v", want, acts)
		}
	}
}

// TestScope checks that callers act only within their own scope, and that rules follow the grammar
// of the flake.
func TestScope(t *testing.T) {
	t.Parallel()
	e := operated(t, runtime())
	x := "role:x"
	must[Rule](e, alice, "/acme/policies", policy("role:wide", "stream.publish", "namespace:acme/*"))
	for _, c := range []struct {
		caller spiffe.ID
		path   string
		body   any
		part   string
	}{
		{bob, "/acme/policies", policy(x, "a.b", "tenant:acme"), "control-plane-write"},
		{kit.ID("user/mallory"), "/acme/rules", nil, "may do nothing"},
		{eve, "/acme/rules", nil, "no rbac.view"},
		{eve, "/acme/policies", policy(x, "a.b", "stream:acme/payments/x"), "no rbac.policy.manage on stream:acme/payments/x"},
		{pat, "/acme/policies", policy(x, "a.b", "stream:acme/logs/x"), "on stream:acme/logs/x"},
		{pat, "/acme/policies", policy(x, "a.b", "namespace:acme/*"), "on namespace:acme/*"},
		{pat, "/acme/policies", policy(pat.String(), rules.ManagePolicies, "tenant:acme"), "on tenant:acme"},
		{pat, "/acme/policies/remove", policy("role:wide", "stream.publish", "namespace:acme/*"), "on namespace:acme/*"},
		{pat, "/acme/groupings", rules.Grouping{Member: pat.String(), Role: "role:wide"}, "on namespace:acme/*"},
		{pat, "/acme/groupings", rules.Grouping{Member: pat.String(), Role: "role:later"}, "on tenant:acme"},
		{alice, "/acme/policies", policy(x, "a.b", "tenant:*"), "of every tenant"},
		{alice, "/acme/policies", policy(x, "a.b", "stream:*/*"), "of every tenant"},
		{alice, "/acme/policies", policy(x, "a.b", "stream:acme/*/x"), "of every namespace"},
		{alice, "/acme/policies", policy(x, "a.b", "tenant:other"), "not of tenant acme"},
		{alice, "/acme/policies", policy(x, "a.b", "namespace:acme/nowhere"), "no namespace"},
		{alice, "/acme/policies", policy(x, "*", "tenant:acme"), "and no *"},
		{alice, "/acme/policies", policy("*", "a.b", "tenant:acme"), "want a SPIFFE ID"},
		{alice, "/acme/policies", policy("spiffe://evil.flor/user/x", "a.b", "tenant:acme"), "not of trust domain"},
		{alice, "/acme/policies", map[string]string{"subject": x, "effect": "deny"}, "not of the form"},
		{alice, "/acme/groupings", rules.Grouping{Member: x, Role: x}, "itself"},
		{alice, "/acme/groupings", rules.Grouping{Member: "group:nobody/x", Role: x}, "no issuer"},
		{alice, "/acme/policies/remove", policy("role:writer", "stream.publish", "stream:acme/payments/*"), "the flake's"},
		{alice, "/acme/groupings/remove", rules.Grouping{Member: wiki.String(), Role: "role:writer"}, "the flake's"},
		{alice, "/acme/policies/remove", policy(x, "a.b", "tenant:acme"), "has none such"},
		{alice, "/other/policies", policy(x, "a.b", "tenant:other"), "tenants.other.runtimeRules"},
		{alice, "/nobody/policies", policy(x, "a.b", "tenant:nobody"), "no tenant"},
		{alice, "/acme/delete", Deletion{Force: true}, "the flake's"},
		{alice, "/nobody/delete", Deletion{Force: true}, "nothing is kept"},
	} {
		e.refused(c.caller, c.path, c.body, c.part)
	}
	if all := must[TenantRules](e, alice, "/acme/rules", nil); len(all.Policies) != 10 || len(all.Groupings) != 2 {
		t.Errorf("%d policies and %d groupings", len(all.Policies), len(all.Groupings))
	}
	for _, role := range []string{"role:a", "role:b", "role:c"} {
		must[Rule](e, alice, "/acme/groupings", rules.Grouping{Member: bob.String(), Role: role})
	}
	e.refused(alice, "/acme/groupings", rules.Grouping{Member: bob.String(), Role: "role:d"}, "its quota")
}

// TestNarrowed checks that run-time rules no longer count for parts of a tenant that the flake
// removed, and do not count at all for a tenant that permits only rules of the flake.
func TestNarrowed(t *testing.T) {
	t.Parallel()
	e := operated(t, runtime())
	must[Rule](e, alice, "/acme/policies", policy(bob.String(), "cache.read", "cache:acme/logs/x"))
	must[Rule](e, alice, "/acme/policies", policy(bob.String(), "cache.read", "cache:acme/payments/x"))
	publish := func(serial int64, tenant Tenant) {
		t.Helper()
		e.Provide(Name, settingsOf(tenant))
		e.Publish(serial)
		e.until("the policy", func() bool { _, v := e.kind.Policies.Versioned(); return v == serial })
	}
	narrower := runtime()
	narrower.Namespaces = []string{"payments"}
	publish(providertest.Serial+1, narrower)
	_, answer := e.exchange(bob, "acme", url.Values{})
	if got := e.verified(answer); len(got.Permissions) != 1 || !got.May("cache.read", "cache:acme/payments/x") {
		t.Errorf("%+v", got)
	}
	all := must[TenantRules](e, alice, "/acme/rules", nil)
	if i := slices.IndexFunc(all.Policies, func(r Rule) bool { return strings.Contains(r.Ignored, "no namespace") }); i < 0 || all.Policies[i].Object != "cache:acme/logs/x" {
		t.Errorf("%+v", all.Policies)
	}
	must[Rule](e, alice, "/acme/policies/remove", policy(bob.String(), "cache.read", "cache:acme/logs/x"))
	narrower.RuntimeRules = nil
	publish(providertest.Serial+2, narrower)
	if status, answer := e.exchange(bob, "acme", url.Values{}); status != http.StatusForbidden {
		t.Errorf("%d %v", status, answer)
	}
	for _, after := range []time.Duration{0, grace + time.Hour} {
		if err := e.kind.sweep(t.Context(), time.Now().Add(after), e.kind.Policy()); err != nil {
			t.Fatal(err)
		}
	}
	left, _, err := e.Store.List(t.Context(), "token/")
	if err != nil || slices.ContainsFunc(left, func(e store.Entry) bool { return !strings.HasPrefix(e.Key, keysPrefix) }) || len(left) != 2 {
		t.Errorf("%+v, %v", left, err)
	}
}

// TestDropped checks that the data of a removed tenant is kept for a grace period. The data returns
// with the tenant, and is deleted after the period or when an operator deletes it.
func TestDropped(t *testing.T) {
	t.Parallel()
	e := operated(t, runtime())
	granted := policy(bob.String(), "cache.read", "cache:acme/payments/x")
	add := func() {
		t.Helper()
		must[Rule](e, alice, "/acme/policies", granted)
		if status, _ := e.exchange(bob, "acme", url.Values{}); status != http.StatusOK {
			t.Fatalf("%d", status)
		}
	}
	add()
	serial := int64(providertest.Serial)
	publish := func(with bool) {
		t.Helper()
		s := settingsOf(runtime())
		if !with {
			delete(s.Tenants, "acme")
			e.Policy.Grants = slices.DeleteFunc(e.Policy.Grants, func(g document.Grant) bool { return g.Kind == Name })
		}
		serial++
		e.Provide(Name, s)
		e.Publish(serial)
		e.until("the policy", func() bool { _, v := e.kind.Policies.Versioned(); return v == serial })
	}
	sweep := func(after time.Duration) {
		t.Helper()
		if err := e.kind.sweep(t.Context(), time.Now().Add(after), e.kind.Policy()); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() bool {
		names, err := e.kind.tenants.stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, is := names["acme"]
		return is
	}
	publish(false)
	if status, _ := e.exchange(bob, "acme", url.Values{}); status != http.StatusNotFound {
		t.Errorf("dropped: %d", status)
	}
	sweep(0)
	all := must[Tenants](e, bob, "", nil).Tenants
	if len(all) != 2 || all[0].Tenant != "acme" || all[0].Dropped.IsZero() || time.Until(all[0].Until.Time) < grace-time.Minute || !all[1].Dropped.IsZero() {
		t.Errorf("%+v", all)
	}
	sweep(grace - time.Hour)
	publish(true)
	sweep(0)
	if status, _ := e.exchange(bob, "acme", url.Values{}); status != http.StatusOK {
		t.Errorf("again: %d", status)
	}
	e.refused(alice, "/acme/delete", Deletion{Force: true}, "the flake's")

	// The grace period of a tenant that returned starts over.
	publish(false)
	sweep(2 * grace)
	if !stored() {
		t.Error("gone as soon as it was dropped")
	}
	sweep(4 * grace)
	if stored() {
		t.Error("kept for longer than the grace")
	}
	want := func(code, caller string) {
		t.Helper()
		if !slices.ContainsFunc(e.Rows(), func(r server.Row) bool { return r.Code == code && r.Caller == caller && r.Detail["tenant"] == "acme" }) {
			t.Errorf("no row %s of %q", code, caller)
		}
	}
	want(CodeDelete, "")

	// More run-time rules than fit on a page.
	publish(true)
	add()
	var txn store.Txn
	for i := range 3 * store.MaxOps {
		r := Rule{Policy: &rules.Policy{Subject: "role:x", Action: "a.b", Object: "stream:acme/payments/" + strings.Repeat("x", 1+i%100) + strings.Repeat("y", i/100)}}
		txn.Then = append(txn.Then, store.Put(r.key("acme"), kit.JSON(r)))
		if len(txn.Then) == store.MaxOps {
			if _, err := e.Store.Commit(t.Context(), txn); err != nil {
				t.Fatal(err)
			}
			txn.Then = nil
		}
	}
	publish(false)
	e.refused(bob, "/acme/delete", Deletion{}, "control-plane-write")
	e.refused(alice, "/acme/delete", Deletion{}, "may be in use until")
	must[Kept](e, alice, "/acme/delete", Deletion{Force: true})
	if stored() {
		t.Error("kept after it was deleted")
	}
	for _, prefix := range []string{rulesPrefix + "acme", keysPrefix + "acme", "token/dropped"} {
		if left, _, err := e.Store.List(t.Context(), prefix); len(left) > 0 || err != nil {
			t.Errorf("%d left below %s, %v", len(left), prefix, err)
		}
	}
	want(CodeDelete, alice.String())
	publish(true)
	if status, _ := e.exchange(bob, "acme", url.Values{}); status != http.StatusForbidden {
		t.Errorf("a tenant of the same name: %d", status)
	}
}

// TestBootstrap checks that root of the host can name the first administrators once.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	tenant := acme("https://login.example.org")
	tenant.RuntimeRules = &Quota{Policies: 40, Groupings: 5}
	e := operated(t, tenant)
	e.refused(alice, "/acme/policies", policy(bob.String(), "cache.read", "tenant:acme"), "no rbac.policy.manage")
	socket := filepath.Join(e.dir, "bootstrap", "bootstrap.sock")
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	post := func(name, body string) (int, string) {
		t.Helper()
		resp, err := client.Post("http://bootstrap/v1/tenants/"+name+"/bootstrap", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	admins := `{"admins":["` + alice.String() + `","` + alice.String() + `"]}`
	for _, c := range []struct{ name, body, part string }{
		{"nobody", admins, "no tenant"},
		{"other", admins, "tenants.other.runtimeRules"},
		{"acme", `{}`, "0 admins"},
		{"acme", `{"admins":["role:x"]}`, "body"},
		{"acme", `{"admins":["spiffe://evil.flor/user/alice"]}`, "not of trust domain"},
	} {
		if status, b := post(c.name, c.body); status < 400 || !strings.Contains(b, c.part) {
			t.Errorf("%s %s: %d %s", c.name, c.body, status, b)
		}
	}
	if status, b := post("acme", admins); status != http.StatusOK {
		t.Fatalf("%d %s", status, b)
	}
	must[Rule](e, alice, "/acme/policies", policy(bob.String(), "cache.read", "namespace:acme/payments"))
	if status, b := post("acme", `{"admins":["`+eve.String()+`"]}`); status != http.StatusForbidden || !strings.Contains(b, "which is once") {
		t.Errorf("again: %d %s", status, b)
	}
	e.refused(eve, "/acme/rules", nil, "no rbac.view")
	named, refused := 0, 0
	for _, r := range e.Audit() {
		switch {
		case r.Code == CodeBootstrap && r.Outcome == server.Granted && strings.Contains(r.Message, alice.String()):
			named++
		case r.Code == hostapi.CodeReplayed.Name && r.Detail["tenant"] == "acme":
			refused++
		}
	}
	if named != 1 || refused != 1 {
		t.Errorf("%d rows of the act, %d of the refusal", named, refused)
	}
}

// TestBootstrapOff checks that the bootstrap socket is missing if the settings contain no address,
// or if others could connect to it.
func TestBootstrapOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	k := New(Config{Bootstrap: filepath.Join(dir, "bootstrap.sock")})
	if err := k.serveBootstrap(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod 0700") {
		t.Errorf("%v", err)
	}
	if got := (&Settings{}).tokens(server.Process{Policies: &server.Policies{}}); got.Bootstrap != "" {
		t.Errorf("without a setting it is %s", got.Bootstrap)
	}
}
