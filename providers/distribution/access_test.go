package distribution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestGrants checks that a new grant wakes a waiting host that publishes services of the role, and
// that others receive none.
func TestGrants(t *testing.T) {
	e := start(t)
	publish(t, e, 1000)
	leo, alice, key := kit.ID("user/leo"), kit.ID("user/alice"), kit.NewHostKey()
	policy := e.Policy
	policy.Requests = map[string]document.RequestPolicy{}
	for role, hosts := range map[string][]string{"oncall": {"ursula"}, "elsewhere": {"raishan"}} {
		policy.Requests[role] = document.RequestPolicy{By: []spiffe.ID{alice}, Most: 4, Approvers: []document.Approver{kit.Approver(leo, key)}, Hosts: hosts}
	}
	e.Policy = policy
	e.Publish(providertest.Serial + 1)
	put := func(role, id string, ends bool) {
		t.Helper()
		now := time.Now().Truncate(time.Second)
		g := accessgrant.Grant{Cluster: policy.Cluster, ID: strings.Repeat(id, 16), Role: role, User: alice, From: unixtime.Of(now), Until: unixtime.Of(now.Add(time.Hour)), By: leo, Ends: ends}
		_, err := (archive.Archive{Store: e.Store}).PutGrant(t.Context(), kit.SignGrant(g, key), policy, time.Now(), func() []store.Op { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	c := e.Client(ursula)
	put("oncall", "01", false)
	if has, err := c.Artifact(t.Context()); err != nil || has.Grants != nil {
		t.Fatalf("without the header: %+v, %v", has, err)
	}
	c.Grants = hostapi.NoGrants
	has, err := c.Artifact(t.Context())
	if err != nil || has.Grants == nil || len(*has.Grants) != 1 || len(has.Documents) != 1 {
		t.Fatalf("got %+v, %v", has, err)
	}
	c.Tag = has.Tag()
	if a, err := c.Artifact(t.Context()); err != nil || !a.Unchanged() || a.NotModified || len(*a.Grants) != 1 {
		t.Errorf("got %+v, %v, want the grants alone", a, err)
	}
	c.Grants = has.Grants.Tag()
	if a, err := c.Artifact(t.Context()); err != nil || !a.NotModified {
		t.Errorf("got %+v, %v, want nothing", a, err)
	}
	answer := watch(t, c, has)
	waits(t, 1, answer)
	put("elsewhere", "02", false)
	waits(t, 1, answer)
	put("oncall", "01", true)
	pushed := answered(t, answer)
	if pushed.Grants == nil || len(*pushed.Grants) != 1 || !pushed.Unchanged() || pushed.Revision == 0 {
		t.Fatalf("got %+v", pushed)
	}
	if g, err := (*pushed.Grants)[0].Open(); err != nil || !g.Ends {
		t.Errorf("got %+v, %v, want the end alone", g, err)
	}
}
