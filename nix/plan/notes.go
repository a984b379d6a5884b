package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete"
	"github.com/florete/florete/nix/compile"
)

// Note is something that an operator should know before a change is published.
type Note struct {
	Place string `json:"place"`
	Text  string `json:"text"`
}

// moved notes config providers that hosts cannot reach any more at an address that they know.
func moved(was, is compile.Snapshot) (all []Note, err error) {
	var addresses [2]map[string][]any // by provider host
	for s, snapshot := range []compile.Snapshot{was, is} {
		addresses[s] = map[string][]any{}
		for _, docs := range snapshot.Documents {
			var manifest map[string]any
			if err := read(docs[florete.DocManifest], &manifest); err != nil {
				return nil, err
			}
			for host, kinds := range object(manifest["providers"]) {
				if config := object(object(kinds)["config"]); config != nil {
					addresses[s][host] = list(config["addresses"])
				}
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(addresses[before])) {
		var gone []string
		for _, v := range addresses[before][host] {
			if now, still := addresses[after][host]; still && !slices.Contains(now, v) {
				gone = append(gone, shown(v))
			}
		}
		if gone != nil {
			all = append(all, Note{"the config provider of " + host,
				"hosts fetch these documents at " + strings.Join(gone, ", ") + ": publish them before it moves, or keep that address besides the new one until they have them"})
		}
	}
	return all, nil
}
