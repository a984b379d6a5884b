package control_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
	"github.com/florete/florete/providers/token"
	"github.com/florete/florete/providers/token/rules"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/controltest"
	"github.com/florete/florete/tests/kit/providertest"
)

// strict refuses attributes that an object's schema does not have.
func strict(v any) {
	switch v := v.(type) {
	case kit.Schema:
		if _, ok := v["properties"].(kit.Schema); ok {
			v["additionalProperties"] = false
		}
		for _, e := range v {
			strict(e)
		}
	case []any:
		for _, e := range v {
			strict(e)
		}
	}
}

// TestOpenAPI checks that the OpenAPI document lists exactly the endpoints that exist, and that the
// answers of these endpoints match it.
func TestOpenAPI(t *testing.T) {
	e := startWith(t, (*env).others)
	content := "correct horse"
	var doc kit.Schema
	e.answer(bob, "GET", "/v1/openapi.json", nil, &doc)
	strict(doc["components"])
	v := kit.Validator{All: map[string]kit.Schema{"": doc}}
	root := kit.Place{Schema: doc}

	// One of everything that an answer can have.
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &control.Published{})
	e.answer(alice, "POST", "/v1/publish", e.text(1001, "two"), &control.Published{})
	report := hostreport.Report{Documents: []document.Reported{}, Units: []hostreport.Unit{}, Facts: hostreport.Facts{Capabilities: []string{}}, Sequence: 1, Release: "1", Format: document.NewestFormat, Needs: []hostreport.Need{
		{ID: "cert-node", Kind: "cert", State: hostdir.NeedFulfilled},
		{ID: "oidc-wiki", Kind: "oidc", State: "waiting", Error: &hostdir.NeedError{Kind: "transient", Code: "busy", Message: "later"}},
	}}
	if _, err := e.Client(ursula).Report(t.Context(), kit.JSON(report)); err != nil {
		t.Fatal(err)
	}

	var began control.Published
	e.answer(alice, "POST", "/v1/publish", e.rollout(1010), &began)
	if began.Rollout == nil || began.Rollout.Serial != 1010 {
		t.Errorf("got %+v", began)
	}
	size := e.logged()
	rows, err := e.Log.Local().Rows(t.Context(), 0, size)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := tlog.ParseLeaf(rows[0].Leaf)
	if err != nil {
		t.Fatal(err)
	}
	joining, record := e.token(t)
	if _, err := e.Stranger(elm).Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &joining); err != nil {
		t.Fatal(err)
	}
	other, _ := hostapi.NewJoinToken("drhorrible")
	policy := rules.Policy{Subject: "role:x", Action: "cache.read", Object: "namespace:acme/payments"}
	grouping := rules.Grouping{Member: "role:x", Role: "role:y"}
	e.answer(alice, "POST", "/v1/tenants/acme/groupings", bytes.NewReader(kit.JSON(grouping)), &token.Rule{})
	if _, err := e.beside[token.Name].Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("token/keys/gone", nil)}}); err != nil {
		t.Fatal(err)
	}
	waiting := control.AccessRequest{ID: strings.Repeat("ab", 16), Role: "oncall", Seconds: 60, Reason: "search is down"}
	e.answer(alice, "POST", "/v1/access/requests", bytes.NewReader(kit.JSON(waiting)), &archive.AccessRequest{})
	another := waiting
	another.ID = strings.Repeat("cd", 16)
	bodies := map[string]any{
		"/v1/access/requests":           another,
		"/v1/access/requests/{id}/drop": struct{}{},
		"/v1/access/grants":             e.grant(strings.Repeat("ef", 16), time.Hour),

		"/v1/issued":             join.Issued{Host: "elm", Device: "SHA256:x", Until: unixtime.Of(time.Now()), Certificates: []join.IssuedSVID{{ID: elm, Serial: "1f"}}},
		"/v1/claims/{host}":      control.Claim{Seconds: 60},
		"/v1/rotate":             control.Rotate{Host: "ursula", Need: "oidc-wiki"},
		"/v1/revocations":        kit.Revocations(1, e.key, revocation.Target{ID: kit.ID("user/eve")}),
		"/v1/files":              file.File{Ref: "wiki/smtp", Content: &content},
		"/v1/joins/{host}":       control.Decision{Admission: e.admission(t, e.key, e.Stranger(elm).HostKey)},
		"/v1/tokens":             join.Token{ID: hostapi.TokenID(other.Public()), Hosts: "*", Uses: 2, Until: record.Until},
		"/v1/tokens/{id}/revoke": struct{}{},

		"/v1/tenants/{tenant}/policies":         policy,
		"/v1/tenants/{tenant}/policies/remove":  policy,
		"/v1/tenants/{tenant}/groupings":        grouping,
		"/v1/tenants/{tenant}/groupings/remove": grouping,
		"/v1/tenants/{tenant}/delete":           token.Deletion{Force: true},
	}
	mesh := hostapi.Request{Need: "secret-node-mesh", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(controltest.Mesh)}
	if _, err := e.beside[secret.Name].Client(ursula).Do(t.Context(), hostapi.Path(secret.Name), mesh); err != nil {
		t.Fatal(err)
	}
	e.answer(alice, "POST", "/v1/files", bytes.NewReader(kit.JSON(bodies["/v1/files"])), &file.File{})
	seen, published := map[string]bool{}, int64(1020)
	paths := doc["paths"].(kit.Schema)
	// Acts on the rollout come before what ends it by publishing another version.
	order := slices.Sorted(maps.Keys(paths))
	slices.SortStableFunc(order, func(a, b string) int {
		return -cmp.Compare(strings.Count(a, "/rollout"), strings.Count(b, "/rollout"))
	})
	for _, path := range order {
		for method := range paths[path].(kit.Schema) {
			at := root.Child("paths").Child(path).Child(method).Child("responses")
			url := strings.NewReplacer("{tenant}/delete", "gone/delete", "{tenant}", "acme", "{serial}", "1000", "{act}", "pause", "{id}", record.ID, "{host}", "elm").Replace(path)
			switch path {
			case "/v1/access/requests/{id}/drop":
				url = strings.ReplaceAll(path, "{id}", waiting.ID)
			case "/v1/audit/log/rows":
				url += fmt.Sprintf("?from=0&size=%d", size)
			case "/v1/audit/log/proof":
				url += "?row=" + leaf.Key
			}
			r := e.request(strings.ToUpper(method), url, nil)
			if method == "post" && !strings.HasPrefix(path, "/v1/rollout") {
				if path == "/v1/publish" {
					url += "?atOnce=true"
				}
				r = e.request("POST", url, e.text(published, "one"))
				published++
			}
			if body, ok := bodies[path]; ok && method == "post" {
				r = e.request("POST", url, bytes.NewReader(kit.JSON(body)))
			}
			status, b := e.do(alice, r)
			if status != http.StatusOK {
				t.Errorf("%s %s: %d %s", method, path, status, b)
				continue
			}
			content := v.Follow(at.Child("200")).Child("content")
			schema := content.Child("application/json").Child("schema")
			seen[path] = true
			if schema.Schema == nil {
				continue // documents, as florctl writes them
			}
			var answer any
			if err := json.Unmarshal(b, &answer); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if err := v.Check(schema, answer); err != nil {
				t.Errorf("%s: %v in %s", path, err, b)
			}
			for list, n := range map[string]int{"hosts": 1, "needs": 2, "versions": 2, "tokens": 1, "joins": 1, "files": 1, "secrets": 1, "tenants": 1} {
				if path == "/v1/"+list && method == "get" && len(answer.(kit.Schema)[list].([]any)) < n {
					t.Errorf("%s: %s", path, b)
				}
			}

			_, b = e.do(kit.ID("user/mallory"), e.request(strings.ToUpper(method), url, nil))
			if err := json.Unmarshal(b, &answer); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			refusal := v.Follow(at.Child("default")).Child("content").Child("application/json").Child("schema")
			if err := v.Check(refusal, answer); err != nil {
				t.Errorf("%s: %v in %s", path, err, b)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); fmt.Sprint(got) != fmt.Sprint(control.Paths()) {
		t.Errorf("the document has %v, there are %v", got, control.Paths())
	}
}

// Pages follow each other, and each row comes once.
func TestPages(t *testing.T) {
	e := start(t)
	for i := range 7 {
		e.answer(alice, "POST", "/v1/publish", e.text(1000+int64(i), "one"), &control.Published{})
	}
	var rows []int64
	for after, n := "", 0; n == 0 || after != ""; n++ {
		var page control.Audit
		e.answer(bob, "GET", "/v1/audit?limit=3&after="+after, nil, &page)
		for _, r := range page.Rows {
			if r.Code == "publish" {
				rows = append(rows, r.Serial)
			}
		}
		after = page.Next
	}
	if fmt.Sprint(rows) != "[1000 1001 1002 1003 1004 1005 1006]" {
		t.Errorf("got %v", rows)
	}
	var page control.Audit
	if e.answer(bob, "GET", "/v1/audit?since=2200-01-01T00:00:00Z", nil, &page); len(page.Rows) != 0 {
		t.Errorf("got %+v", page)
	}
}

// TestUnreadableReport checks that an invalid report of a host does not affect the requests about
// other hosts.
func TestUnreadableReport(t *testing.T) {
	e := start(t)
	if _, err := e.Client(ursula).Report(t.Context(), []byte(`{"sequence":1,"needs":3}`)); err != nil {
		t.Fatal(err)
	}
	var needs control.Needs
	if e.answer(bob, "GET", "/v1/needs", nil, &needs); len(needs.Needs) != 0 {
		t.Errorf("got %+v", needs)
	}
	var hosts control.Hosts
	if e.answer(bob, "GET", "/v1/hosts", nil, &hosts); len(hosts.Hosts) != 1 || hosts.Hosts[0].Host != "ursula" {
		t.Errorf("got %+v", hosts)
	}
}
