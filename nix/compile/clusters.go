package compile

import (
	"fmt"
	"maps"
	"slices"
)

// validated is what Validate requests of the topology of a cluster that may have faults.
type validated struct {
	Hosts     map[string]machine
	Federated map[string]Federated
}

// machine is a host as clusters compare it: where it is, and what is on it. What the compiler
// found faults in is text: as an ID it would not decode, and that would hide the faults.
type machine struct {
	ID, SSHHostKey, Instance    string
	Address                     []string
	ForwarderPort, ProviderPort int
	ProviderPorts, StorePorts   []int
}

// compareClusters finds what clusters of one flake say of a host that they cannot both mean.
// They mean the same machine by its SSH host key, and the same identity by its SPIFFE ID.
func compareClusters(all []Report) {
	for i := range all {
		r := &all[i]
		for _, other := range all[:i] {
			marked := map[string]string{} // what marks a host of the other cluster → its name
			for name, h := range other.members.Hosts {
				for _, mark := range marks(h) {
					marked[mark] = name
				}
			}
			for _, name := range slices.Sorted(maps.Keys(r.members.Hosts)) {
				var met []string
				for _, mark := range marks(r.members.Hosts[name]) {
					if theirs := marked[mark]; theirs != "" && !slices.Contains(met, theirs) {
						met = append(met, theirs)
						r.Faults = append(r.Faults, compareHosts(name, r.members.Hosts[name], other.Cluster, other.members.Hosts[theirs])...)
					}
				}
			}
		}
		order(r.Faults)
	}
}

// marks are what no two hosts have in common.
func marks(h machine) []string {
	all := []string{h.ID}
	if h.SSHHostKey != "" {
		all = append(all, h.SSHHostKey)
	}
	for _, address := range h.Address {
		all = append(all, fmt.Sprint(address, " ", h.ForwarderPort))
	}
	return all
}

func compareHosts(name string, h machine, cluster string, o machine) (faults []Fault) {
	host := "hosts." + name + "."
	differ := func(place, problem string, value any, remedy string) {
		faults = append(faults, Fault{
			ID: "FL059", Severity: "error", Place: place,
			Problem: problem, Value: fmt.Sprint(value), Remedy: remedy,
		})
	}
	if h.SSHHostKey != o.SSHHostKey || h.SSHHostKey == "" {
		differ(host+"sshHostKey", "cluster "+cluster+" has another key of this host, not", h.SSHHostKey,
			"write the key that the machine has in both, or, of two machines, give one another name, address or port")
		return faults
	}
	if h.Instance == o.Instance {
		differ(host+"instance", "in cluster "+cluster+" the same machine has as well", fmt.Sprintf("%q", h.Instance),
			"declare which of them is the further one, instance = \"…\";")
	}
	if h.ForwarderPort == o.ForwarderPort {
		differ(host+"forwarderPort", "in cluster "+cluster+" the same machine has as well", h.ForwarderPort, "write another in one of them")
	}
	both := func(ours, theirs []int) bool {
		return slices.ContainsFunc(ours, func(port int) bool { return slices.Contains(theirs, port) })
	}
	if both(h.ProviderPorts, o.ProviderPorts) {
		differ(host+"providerPort", "in cluster "+cluster+" the same machine has as well", h.ProviderPort, "write another in one of them")
	}
	if both(h.StorePorts, o.StorePorts) {
		differ("providers.store.port", "on host "+name+", in cluster "+cluster+" the same machine, a store already has", o.StorePorts[0], "write another in one of them, apart by two")
	}
	return faults
}
