package control_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/tests/kit"
)

// grant returns a grant of the role oncall for alice, signed by leo.
func (e *env) grant(id string, lasts time.Duration, change ...func(*accessgrant.Grant)) accessgrant.Signed {
	now := time.Now().Truncate(time.Second)
	g := accessgrant.Grant{
		Cluster: e.Policy.Cluster, ID: id, Role: "oncall", User: alice, By: kit.ID("user/leo"),
		From: unixtime.Of(now), Until: unixtime.Of(now.Add(lasts)),
	}
	for _, c := range change {
		c(&g)
	}
	return kit.SignGrant(g, e.leo)
}

// access returns the requests and grants that a reader sees, in a short form.
func (e *env) access() string {
	e.t.Helper()
	var a archive.Access
	e.answer(bob, "GET", "/v1/access", nil, &a)
	var all []string
	for _, r := range a.Requests {
		all = append(all, fmt.Sprintf("%s asks for %s", r.User.Short(), r.Role))
	}
	for _, s := range a.Grants {
		g, err := s.Open()
		if err != nil {
			e.t.Fatal(err)
		}
		all = append(all, map[bool]string{false: "granted", true: "ended"}[g.Ends])
	}
	return strings.Join(all, ", ")
}

// refused checks that a request is refused with a text.
func (e *env) refused(caller spiffe.ID, path string, body any, want string) {
	e.t.Helper()
	status, b := e.do(caller, e.request("POST", path, bytes.NewReader(kit.JSON(body))))
	if status == http.StatusOK || !strings.Contains(string(b), want) {
		e.t.Errorf("POST %s: %d %s, want %q", path, status, b, want)
	}
}

// TestAccess follows a request from the user to the end of the grant. Readers may ask and submit
// grants, because the signature of an approver counts.
func TestAccess(t *testing.T) {
	e := start(t)
	id := strings.Repeat("01", 16)
	q := control.AccessRequest{ID: id, Role: "oncall", Seconds: 3600, Reason: "search is down"}
	send := func(caller spiffe.ID, path string, body, answer any) {
		t.Helper()
		for range 2 { // sent to two providers that share a store
			e.answer(caller, "POST", path, bytes.NewReader(kit.JSON(body)), answer)
		}
	}
	before := len(e.acts())
	send(alice, "/v1/access/requests", q, &archive.AccessRequest{})
	if got := e.access(); got != "user/alice asks for oncall" {
		t.Errorf("got %s", got)
	}
	grant := e.grant(id, time.Hour)
	send(bob, "/v1/access/grants", grant, &accessgrant.Grant{})
	if got := e.access(); got != "granted" {
		t.Errorf("got %s", got)
	}
	end := e.grant(id, time.Hour, func(g *accessgrant.Grant) { g.Ends = true })
	send(alice, "/v1/access/grants", end, &accessgrant.Grant{})
	if got := e.access(); got != "ended" {
		t.Errorf("got %s", got)
	}
	e.refused(alice, "/v1/access/grants", grant, "was approved or ended already")
	var rows []string
	for _, r := range e.acts()[before:] {
		rows = append(rows, fmt.Sprintf("%s by %s: %s %s", r.Code, r.Caller, r.Outcome, r.Detail["id"]))
	}
	want := []string{
		"access-request by spiffe://demo.flor/user/alice: granted " + id, "access-grant by spiffe://demo.flor/user/bob: granted " + id,
		"access-end by spiffe://demo.flor/user/alice: granted " + id,
	}
	if fmt.Sprint(rows[:3]) != fmt.Sprint(want) || len(rows) != 4 {
		t.Errorf("got %q, want %q and a refusal", rows, want)
	}

	q.ID = strings.Repeat("02", 16)
	send(alice, "/v1/access/requests", q, &archive.AccessRequest{})
	e.refused(bob, "/v1/access/requests/"+q.ID+"/drop", struct{}{}, "they and approvers of role oncall may drop it")
	e.answer(alice, "POST", "/v1/access/requests/"+q.ID+"/drop", strings.NewReader("{}"), &archive.AccessRequest{})
	if got := e.access(); got != "ended" {
		t.Errorf("got %s", got)
	}
}

// TestAccessRefused checks what a provider refuses, so that people learn of it before hosts refuse
// it as well.
func TestAccessRefused(t *testing.T) {
	e := start(t)
	id := strings.Repeat("01", 16)
	good := control.AccessRequest{ID: id, Role: "oncall", Seconds: 3600, Reason: "search is down"}
	for want, change := range map[string]func(*control.AccessRequest){
		"nobody may request role":      func(q *control.AccessRequest) { q.Role = "admins" },
		"want a minute to 4 hours":     func(q *control.AccessRequest) { q.Seconds = 4*3600 + 1 },
		"59 seconds":                   func(q *control.AccessRequest) { q.Seconds = 59 },
		"want 32 hex digits":           func(q *control.AccessRequest) { q.ID = "1" },
		"reason: want 1 to 200 bytes":  func(q *control.AccessRequest) { q.Reason = " " },
		"reason: want 1 to 200 bytes ": func(q *control.AccessRequest) { q.Reason = strings.Repeat("x", 201) },
	} {
		q := good
		change(&q)
		e.refused(alice, "/v1/access/requests", q, strings.TrimSpace(want))
	}
	e.refused(kit.ID("user/mallory"), "/v1/access/requests", good, "")
	e.refused(kit.ID("service/wiki"), "/v1/access/requests", good, "")
	for i := range 5 {
		q := good
		q.ID = fmt.Sprintf("%032x", i)
		if i == 4 {
			e.refused(alice, "/v1/access/requests", q, "4 of them of user/alice")
			break
		}
		e.answer(alice, "POST", "/v1/access/requests", bytes.NewReader(kit.JSON(q)), &archive.AccessRequest{})
	}
	for want, change := range map[string]func(*accessgrant.Grant){
		"want at most the 4h":             func(g *accessgrant.Grant) { g.Until = g.Until.Add(4 * time.Hour) },
		"user/carol may not request role": func(g *accessgrant.Grant) { g.User = kit.ID("user/carol") },
		"compare the clocks":              func(g *accessgrant.Grant) { g.From, g.Until = g.From.Add(time.Hour), g.Until.Add(time.Hour) },
		"compare the clocks, and approve": func(g *accessgrant.Grant) { g.From = g.From.Add(-time.Hour) },
		"ended at":                        func(g *accessgrant.Grant) { g.From, g.Until = g.From.Add(-2*time.Hour), g.Until.Add(-time.Hour) },
		"is of cluster":                   func(g *accessgrant.Grant) { g.Cluster = "blue" },
		"is no approver":                  func(g *accessgrant.Grant) { g.By = bob },
		"approved a request of their own": func(g *accessgrant.Grant) { g.By = alice },
		"ends at ":                        func(g *accessgrant.Grant) { g.Until = g.From },
	} {
		e.refused(alice, "/v1/access/grants", e.grant(id, time.Hour, change), want)
	}
	forged := e.grant(id, time.Hour)
	forged.Signature = kit.SignGrant(accessgrant.Grant{ID: id}, kit.NewHostKey()).Signature
	e.refused(alice, "/v1/access/grants", forged, "signed with none of the keys of user/leo")
	if got := e.access(); strings.Contains(got, "granted") {
		t.Errorf("got %s", got)
	}
}
