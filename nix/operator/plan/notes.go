package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Note is a warning that an operator should read before publishing a change, with the place in the
// topology to which it refers.
type Note struct {
	Place string `json:"place"`
	Text  string `json:"text"`
}

// moved adds notes about config providers that hosts can no longer reach at any address they know.
func moved(was, is compile.Snapshot) (all []Note, err error) {
	gone := map[string][]string{} // by provider host
	for host, docs := range was.Documents {
		var old, now map[string]any
		if err := read(docs[document.DocManifest], &old); err != nil {
			return nil, err
		}
		if err := read(is.Documents[host][document.DocManifest], &now); err != nil {
			return nil, err
		}
		config := func(manifest map[string]any, provider string) map[string]any {
			return object(object(object(manifest["providers"])[provider])["config"])
		}
		for provider := range object(old["providers"]) {
			after := config(now, provider)
			if provider == host || after == nil {
				continue
			}
			for _, v := range list(config(old, provider)["addresses"]) {
				if address := shown(v); !slices.Contains(list(after["addresses"]), v) && !slices.Contains(gone[provider], address) {
					gone[provider] = append(gone[provider], address)
				}
			}
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(gone)) {
		slices.Sort(gone[provider])
		all = append(all, Note{"the config provider of " + provider,
			"hosts fetch these documents at " + strings.Join(gone[provider], ", ") + ": publish them before it moves, or keep that address besides the new one until they have them"})
	}
	return all, nil
}

// replaced returns a note if the cluster keeps none of its former roots, because hosts then reject
// all providers.
func replaced(was, is compile.Snapshot) []Note {
	if err := compile.CheckRootsKept(was.Topology.Trust.Roots, is.Topology.Trust.Roots); err != nil {
		return []Note{{"the roots", "hosts with documents from the network are lost until they are deployed by hand: " + err.Error()}}
	}
	return nil
}

// limited returns notes about waves of a rollout. A wave has a note if a disruption budget permits
// fewer hosts at once than the change affects in the wave.
func limited(is compile.Snapshot, changed []Host) (all []Note, err error) {
	for _, provider := range is.Topology.Providers[document.KindConfig].Hosts {
		body := is.Documents[provider][document.DocPolicy]
		if body.Body == "" {
			continue
		}
		var policy struct {
			Rollout *document.Rollout `json:"rollout"`
		}
		if err := json.Unmarshal([]byte(body.Body), &policy); err != nil {
			return nil, err
		}
		if policy.Rollout == nil {
			continue
		}
		for i, b := range policy.Rollout.Budgets {
			for n, wave := range policy.Rollout.Waves {
				var hosts []string
				for _, h := range changed {
					if slices.Contains(wave, h.Name) && slices.Contains(b.Hosts, h.Name) {
						hosts = append(hosts, h.Name)
					}
				}
				if len(hosts) > b.Most {
					all = append(all, Note{fmt.Sprintf("rollout.atOnce[%d]", i), fmt.Sprintf("wave %d: at most %d of %s at once", n+1, b.Most, strings.Join(hosts, " "))})
				}
			}
		}
		break // all config providers have the same rollout
	}
	return all, nil
}
