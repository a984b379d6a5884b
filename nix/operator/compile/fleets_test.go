package compile

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
)

// TestFleets checks that clusters of real sizes compile without a fault or a warning, and that hosts
// which cannot be called are reached through relays: no address has the port of a NAT.
func TestFleets(t *testing.T) {
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "../../../tests/fleets")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var fleets map[string]struct {
		result
		Hosts []string
	}
	if err := json.Unmarshal(out, &fleets); err != nil {
		t.Fatal(err)
	}
	for name, machines := range map[string]int{"homelab": 25, "council": 13, "foundation": 21} {
		fleet := fleets[name]
		t.Run(name, func(t *testing.T) {
			if fleet.Report != "" {
				t.Fatal(fleet.Report)
			}
			if len(fleet.Hosts) != machines {
				t.Errorf("%d machines, want %d", len(fleet.Hosts), machines)
			}
			relayed := 0
			for _, host := range fleet.Hosts {
				raw := fleet.Documents[host]["manifest"]
				doc, err := document.Open([]byte(raw.Envelope), []byte(raw.Body), "")
				if err != nil {
					t.Fatalf("%s: %v", host, err)
				}
				for _, r := range doc.Manifest().Forwarder.Reach {
					if len(r.Via) > 0 {
						relayed++
					}
					for _, at := range slices.Concat(r.Endpoints...) {
						if !strings.HasSuffix(at, ":4610") {
							t.Errorf("%s reaches %s at %s, the port of a NAT", host, r.ID, at)
						}
					}
				}
			}
			if relayed == 0 {
				t.Error("nothing is reached through relays")
			}
			t.Logf("%d services on hosts are reached through relays", relayed)
		})
	}
}
