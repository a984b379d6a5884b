package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Note is a warning that an operator should read before publishing a change.
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

// replaced adds a note if the cluster keeps none of its roots.
func replaced(was, is compile.Snapshot) []Note {
	if err := compile.CheckRootsKept(was.Topology.Trust.Roots, is.Topology.Trust.Roots); err != nil {
		return []Note{{"the roots", "hosts with documents from the network are lost until they are deployed by hand: " + err.Error()}}
	}
	return nil
}
