package compile

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
)

// validated is the part of a topology that Validate reads. The topology may have faults.
type validated struct {
	Hosts     map[string]machine
	Federated map[string]Federated
}

// machine is the part of a host that is compared between clusters: its addresses and its parts. IDs
// are strings, because an invalid ID would not decode and would hide the faults.
type machine struct {
	ID, SSHHostKey, Instance    string
	Address                     []string
	ForwarderPort, ProviderPort int
	ProviderPorts, StorePorts   []int
}

// compareClusters reports contradictory statements about a host in several clusters of one flake.
// Two hosts are the same machine if they have the same SSH host key, and the same identity if they
// have the same SPIFFE ID.
func compareClusters(all []Report) {
	for i := range all {
		r := &all[i]
		for _, other := range all[:i] {
			marked := map[mark]string{} // hosts of the other cluster
			for name, h := range other.members.Hosts {
				for _, m := range marks(h) {
					marked[m] = name
				}
			}
			for _, name := range slices.Sorted(maps.Keys(r.members.Hosts)) {
				var met []string
				for _, m := range marks(r.members.Hosts[name]) {
					if theirs := marked[m]; theirs != "" && !slices.Contains(met, theirs) {
						met = append(met, theirs)
						where := fmt.Sprintf("in cluster %s host %s, of the same %s %s,", other.Cluster, theirs, m.kind, m.value)
						r.Faults = append(r.Faults, compareHosts(name, r.members.Hosts[name], where, other.members.Hosts[theirs])...)
					}
				}
			}
		}
		order(r.Faults)
	}
}

// invalid is the text with which the compiler replaces invalid texts (nix/lib/default.nix).
const invalid = "?"

// mark is a property that only one host can have, such as an SSH host key. A mark that two hosts
// share is a fault.
type mark struct{ kind, value string }

func marks(h machine) []mark {
	all := []mark{{"SPIFFE ID", h.ID}}
	if h.SSHHostKey != "" && h.SSHHostKey != invalid {
		all = append(all, mark{"SSH host key", h.SSHHostKey})
	}
	for _, address := range h.Address {
		all = append(all, mark{"address and port", net.JoinHostPort(address, strconv.Itoa(h.ForwarderPort))})
	}
	return all
}

// compareHosts compares a host with a host of another cluster. The argument where names the other
// host in faults.
func compareHosts(name string, h machine, where string, o machine) (faults []Fault) {
	host := "hosts." + name + "."
	differ := func(place, problem string, value any, remedy string) {
		faults = append(faults, Fault{
			ID: "FL059", Severity: "error", Place: place,
			Problem: problem, Value: fmt.Sprint(value), Remedy: remedy,
		})
	}
	if h.SSHHostKey == invalid || o.SSHHostKey == invalid {
		return nil // reported by another fault
	}
	if h.SSHHostKey != o.SSHHostKey || h.SSHHostKey == "" {
		differ(host+"sshHostKey", where+" has the key "+cmp.Or(o.SSHHostKey, "that it joins with")+", not", cmp.Or(h.SSHHostKey, "null"),
			"write the key that the machine has in both, or, of two machines, give one another name, address or port")
		return faults
	}
	if h.Instance == o.Instance {
		differ(host+"instance", where+" has as well", fmt.Sprintf("%q", h.Instance),
			"declare which of them is the further one, instance = \"…\";")
	}
	if h.ForwarderPort == o.ForwarderPort {
		differ(host+"forwarderPort", where+" has as well", h.ForwarderPort, "write another in one of them")
	}
	both := func(ours, theirs []int) bool {
		return slices.ContainsFunc(ours, func(port int) bool { return slices.Contains(theirs, port) })
	}
	if both(h.ProviderPorts, o.ProviderPorts) {
		differ(host+"providerPort", where+" has as well", h.ProviderPort, "write another in one of them")
	}
	if both(h.StorePorts, o.StorePorts) {
		differ("providers.store.port", "on host "+name+", a store that "+where+" has already uses", o.StorePorts[0], "write another in one of them, apart by two")
	}
	return faults
}
