package control_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

// Each act on the revocation list has an audit row that names the targets.
func TestRevocationAudited(t *testing.T) {
	e := start(t)
	var last *trust.Revocations
	carol, elm := kit.ID("user/carol"), kit.ID("node/elm")
	now := time.Now().Truncate(time.Second) // lists have whole seconds
	for _, act := range []struct {
		name string
		do   func(*trust.Revocations) error
		want []string // code and targets
	}{
		{"revoke", func(l *trust.Revocations) error {
			revocation.Revoke(l, revocation.Target{ID: carol})
			revocation.Revoke(l, revocation.Target{Keys: []string{"SHA256:k"}, Before: []spiffe.ID{elm}, Certificates: []string{"3f"}})
			return nil
		}, []string{fmt.Sprintf("revoke SSH host key SHA256:k, certificate 3f, spiffe://demo.flor/node/elm (issued before %s), spiffe://demo.flor/user/carol", now.UTC().Format(time.RFC3339))}},
		{"nothing", func(*trust.Revocations) error { return nil }, []string{"renew-revocations "}},
		{"reinstate", func(l *trust.Revocations) error {
			return revocation.Reinstate(l, revocation.Target{ID: carol, Certificates: []string{"3f"}})
		}, []string{"reinstate certificate 3f, spiffe://demo.flor/user/carol"}},
		{"suspend", func(l *trust.Revocations) error { return revocation.Suspend(l, elm) }, []string{"suspend spiffe://demo.flor/node/elm"}},
		{"unsuspend", func(l *trust.Revocations) error { return revocation.Unsuspend(l, elm) }, []string{"unsuspend spiffe://demo.flor/node/elm"}},
		{"several", func(l *trust.Revocations) error {
			if err := revocation.Reinstate(l, revocation.Target{Keys: []string{"SHA256:k"}}); err != nil {
				return err
			}
			return revocation.Suspend(l, carol)
		}, []string{"reinstate SSH host key SHA256:k", "suspend spiffe://demo.flor/user/carol"}},
		{"what was suspended is revoked", func(l *trust.Revocations) error {
			revocation.Revoke(l, revocation.Target{ID: carol})
			return nil
		}, []string{"revoke spiffe://demo.flor/user/carol"}},
		{"what ended by itself", func(l *trust.Revocations) error {
			later := revocation.Next(last, l.Cluster, now.Add(2*trust.MaxLifetime), time.Hour)
			l.Signed, l.Entries = later.Signed, later.Entries
			return nil
		}, []string{"renew-revocations "}},
	} {
		t.Run(act.name, func(t *testing.T) {
			next := revocation.Next(last, e.Policy.Cluster, now, time.Hour)
			if err := act.do(next); err != nil {
				t.Fatal(err)
			}
			s, err := revocation.Sign(next, e.key)
			if err != nil {
				t.Fatal(err)
			}
			if last, err = s.Open(); err != nil {
				t.Fatal(err)
			}
			before := len(e.acts())
			for range 2 { // the same again is no act
				e.answer(alice, "POST", "/v1/revocations", bytes.NewReader(kit.JSON(s)), &archive.Revocations{})
			}
			rows := e.acts()[before:]
			if len(rows) != len(act.want) {
				t.Fatalf("got %+v, want %q", rows, act.want)
			}
			for _, r := range rows {
				found := false
				for _, want := range act.want {
					found = found || r.Code+" "+r.Detail["targets"] == want
				}
				if !found || r.Caller != alice.String() || r.Serial != next.Number || !strings.Contains(r.Message, r.Detail["targets"]) {
					t.Errorf("got %+v, want %q", r, act.want)
				}
			}
		})
	}
}

// TestRevocationAuditBounded checks that one row names a limited number of the entries of a new
// list, and their total.
func TestRevocationAuditBounded(t *testing.T) {
	e := start(t)
	list := revocation.Next(nil, e.Policy.Cluster, time.Now(), time.Hour)
	var target revocation.Target
	for i := range 1500 {
		target.Certificates = append(target.Certificates, fmt.Sprintf("%x", 0x100000+i))
	}
	revocation.Revoke(list, target)
	s, err := revocation.Sign(list, e.key)
	if err != nil {
		t.Fatal(err)
	}
	e.answer(alice, "POST", "/v1/revocations", bytes.NewReader(kit.JSON(s)), &archive.Revocations{})
	rows := e.acts()
	if len(rows) != 1 || !strings.HasSuffix(rows[0].Detail["targets"], " and 1000 more") || !strings.HasSuffix(rows[0].Message, " and 1490 more") {
		t.Errorf("got %+v", rows)
	}
}

// TestListThatDrops checks that a list without an entry that nobody reinstated is refused as a
// mistake of the caller, and changes nothing.
func TestListThatDrops(t *testing.T) {
	e := start(t)
	carol := revocation.Target{ID: kit.ID("user/carol")}
	e.answer(alice, "POST", "/v1/revocations", bytes.NewReader(kit.JSON(kit.Revocations(1, e.key, carol))), &archive.Revocations{})
	status, answer := e.do(alice, e.request("POST", "/v1/revocations", bytes.NewReader(kit.JSON(kit.Revocations(2, e.key)))))
	var refusal hostapi.Error
	if err := json.Unmarshal(answer, &refusal); err != nil || refusal.Kind != hostapi.Invalid || !strings.Contains(refusal.Message, "drops user/carol") {
		t.Errorf("got %d %s, want that the list drops user/carol", status, answer)
	}
	e.answer(alice, "POST", "/v1/revocations", bytes.NewReader(kit.JSON(kit.Revocations(2, e.key, carol))), &archive.Revocations{})
}
