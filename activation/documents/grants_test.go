package documents

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
)

// TestGrants checks that a host keeps the grants that its manifest permits, refuses others without
// refusing the documents, and that no provider puts a grant in force again that is over.
func TestGrants(t *testing.T) {
	o := newOrigins(t)
	key := kit.NewHostKey()
	requests := func(m document.Manifest) document.Manifest {
		m.Requests = map[string]document.Request{"oncall": {Most: 4, Approvers: []document.Approver{kit.Approver(kit.ID("user/leo"), key)}}}
		return m
	}
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	if o.store.ExpectGrants(); o.store.GrantsTag() != "" {
		t.Errorf("a host without requests asks for grants: %s", o.store.GrantsTag())
	}
	o.deploy(kit.Document(6, requests(o.version("b"))))
	o.open()
	if o.store.ExpectGrants(); o.store.GrantsTag() != hostapi.NoGrants {
		t.Errorf("got %s", o.store.GrantsTag())
	}
	now := time.Now().Truncate(time.Second)
	grant := func(id string, by ssh.Signer, ends bool) accessgrant.Signed {
		return kit.SignGrant(accessgrant.Grant{
			Cluster: o.store.Set().Manifest.Cluster, ID: strings.Repeat(id, 16), Role: "oncall", User: kit.ID("user/alice"), By: kit.ID("user/leo"),
			From: unixtime.Of(now), Until: unixtime.Of(now.Add(time.Hour)), Ends: ends,
		}, by)
	}
	inForce := func() (ids []string) {
		t.Helper()
		held, err := accessgrant.Read(o.layout.AccessGrants())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range held.InForce(o.store.Set().Manifest, nil, time.Now()) {
			ids = append(ids, g.ID[:2])
		}
		return ids
	}
	accept := func(want string, refused int, grants ...accessgrant.Signed) {
		t.Helper()
		g := hostapi.Grants(grants)
		o.wantAccepted(o.store.Accept(t.Context(), hostapi.Artifact{Documents: []hostapi.SignedDocument{}, Grants: &g}))
		if got := strings.Join(inForce(), " "); got != want {
			t.Errorf("in force: %q, want %q", got, want)
		}
		if got := o.store.RefusedGrants(); len(got) != refused {
			t.Errorf("refused %v, want %d", got, refused)
		}
		if o.store.GrantsTag() != g.Tag() {
			t.Error("the host would receive the same again")
		}
	}
	one, two := grant("01", key, false), grant("02", key, false)
	accept("01", 1, one, grant("03", kit.NewHostKey(), false))
	accept("01 02", 0, two) // a provider that has not the first one
	accept("02", 0, grant("01", key, true))
	accept("02", 0, one, two)
	o.open() // a restart
	if o.store.ExpectGrants(); o.store.GrantsTag() != hostapi.NoGrants {
		t.Errorf("after a restart: %s", o.store.GrantsTag())
	}
	accept("02", 0, one, two)
	if err := os.WriteFile(o.layout.AccessGrants(), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.store.EndGrants(); err != nil {
		t.Fatal(err)
	}
	if held, err := accessgrant.Read(o.layout.AccessGrants()); err != nil || held.Lost.IsZero() || len(held.Grants) > 0 {
		t.Errorf("damaged: %+v, %v", held, err)
	}
	accept("", 3, one, two) // it cannot know that two is not over
}
