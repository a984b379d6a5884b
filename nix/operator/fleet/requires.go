package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/nix/operator/compile"
)

// Absent returns an error if a host does not have a capability that the cluster requires of it. It
// checks only capabilities that hosts detect themselves, and only hosts that have reported
// recently.
func Absent(t compile.Topology, reports map[string]hostreport.Kept, now time.Time) error {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		host, ok := t.Hosts[name]
		if r := reports[name]; !ok || now.Sub(r.Received.Time) > hostreport.Silence {
			continue
		}
		report, err := reports[name].Decode()
		if err != nil {
			continue // reported by florctl status
		}
		for _, by := range requires(t, host) {
			for _, c := range by.capabilities {
				if slices.Contains(hostreport.FoundCapabilities, c) && !slices.Contains(report.Facts.Capabilities, c) {
					lines = append(lines, fmt.Sprintf("%s requires the capability %s, which host %s does not find on its machine: name another host, or add the device", by.what, c, name))
				}
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// requirement is a reason why a host needs capabilities.
type requirement struct {
	what         string
	capabilities []string
}

func requires(t compile.Topology, h compile.Host) (all []requirement) {
	of := func(roles []string) {
		for _, r := range roles {
			all = append(all, requirement{"role " + r, t.Roles[r].Requires})
		}
	}
	of(h.Roles)
	for _, s := range h.Services {
		service := t.Services[s]
		of(service.Roles)
		if service.Replicas != nil {
			all = append(all, requirement{"service " + s, service.Placement.Capabilities})
		}
	}
	for _, kind := range h.Kinds {
		all = append(all, requirement{"provider " + kind, t.Providers[kind].Requires})
	}
	return all
}
