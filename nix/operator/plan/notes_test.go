package plan

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// TestLimited checks that the plan names each budget that holds back hosts which the change
// concerns.
func TestLimited(t *testing.T) {
	policy := document.Policy{Rollout: &document.Rollout{
		Waves: [][]string{{"web"}, {"db1", "db2", "db3"}},
		Budgets: []document.Budget{
			{Tags: []string{"web"}, Most: 1, Hosts: []string{"web"}},
			{Tags: []string{"etcd"}, Most: 1, Hosts: []string{"db1", "db2", "db3"}},
		}}}
	body, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	is := compile.Snapshot{
		Topology:  compile.Topology{Providers: map[string]compile.Provider{document.KindConfig: {Hosts: []string{"web"}}}},
		Documents: map[string]map[string]compile.Raw{"web": {document.DocPolicy: {Body: string(body)}}},
	}
	for want, changed := range map[string][]Host{
		"[{rollout.atOnce[1] wave 2: at most 1 of db1 db3 at once}]": {{Name: "db1"}, {Name: "db3"}, {Name: "web"}},
		"[]": {{Name: "db1"}, {Name: "web"}},
	} {
		notes, err := limited(is, changed)
		if got := fmt.Sprint(notes); err != nil || got != want {
			t.Errorf("%v: %s, %v, want %s", changed, got, err, want)
		}
	}
}
