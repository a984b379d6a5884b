package compile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/florete/florete/internal/terminal"
)

// members is the part of a cluster with which other clusters of the flake must agree. IDs are
// strings, because a cluster with faults may have invalid IDs.
type members struct {
	TrustDomain string
	Roots       []string
	Services    map[string]string // services that are not scoped to one host: name → ID
	Known       []string          // IDs of everything in the cluster
	Foreign     map[string]struct {
		TrustDomain string
		named
	}
	Clusters map[string]named // other clusters of the same trust domain
}

// named contains the IDs of another cluster to which a cluster refers.
type named struct {
	Identities, Services []string
	Admitted             []string            // identities that have roles here
	Entrances            map[string][]string // services with a public name here, and the nodes that serve it

	// Clients are of the other cluster at the issuer here, and SignIns of this cluster at the issuer
	// there.
	Clients, SignIns []client
}

// client is a Client whose IDs may be invalid.
type client struct {
	Caller, Need string
	Generation   int
	Request      map[string]any
	SSHHostKey   string
}

// differs lists the attributes in which two clients differ.
func differs(a, b client) string {
	var names []string
	if a.Generation != b.Generation {
		names = append(names, "generation")
	}
	if a.SSHHostKey != b.SSHHostKey {
		names = append(names, "the SSH host key of the node")
	}
	all := maps.Clone(a.Request)
	maps.Copy(all, b.Request)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(a.Request[name], b.Request[name]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// compareTrust reports contradictions between the names, trust domains and identities of the
// clusters of one flake.
func compareTrust(all []Report) {
	for i := range all {
		r := &all[i]
		report := func(id, place, problem, value, remedy string) {
			r.Faults = append(r.Faults, Fault{ID: id, Severity: "error", Place: place, Problem: problem, Value: value, Remedy: remedy})
		}
		for _, o := range all[:i] {
			if o.Cluster == r.Cluster {
				report("FL125", "name", "another output of the flake is the cluster", fmt.Sprintf("%q", r.Cluster),
					"give one of them another name: documents of both would be taken for each other's")
			}
			if o.together.TrustDomain != r.together.TrustDomain {
				continue
			}
			common := func(root string) bool { return slices.Contains(o.together.Roots, root) }
			if len(r.together.Roots) > 0 && len(o.together.Roots) > 0 && !slices.ContainsFunc(r.together.Roots, common) {
				report("FL126", "trust.roots", "cluster "+o.Cluster+" has none of these roots, and the same trust domain", fmt.Sprintf("%q", r.together.TrustDomain),
					"give both clusters the roots of either, or one of them another trust domain")
			}
			for _, name := range slices.Sorted(maps.Keys(r.together.Services)) {
				if o.together.Services[name] != "" {
					report("FL127", "services."+name, "cluster "+o.Cluster+" has another service of the same identity", r.together.Services[name],
						"give one of them another name, or one cluster another trust domain: callers cannot distinguish them")
				}
			}
		}
		// has reports named identities and services that do not exist in the other cluster.
		has := func(place, of, domain string, f named, known []string) {
			var clients []string
			for _, c := range f.Clients {
				if id, _ := c.Request["service"].(string); !slices.Contains(clients, id) {
					clients = append(clients, id)
				}
			}
			for attribute, ids := range map[string][]string{"identities": f.Identities, "services": f.Services, "clients": clients} {
				for _, id := range ids {
					if slices.Contains(known, id) {
						continue
					}
					remedy := "declare it there, or take it out here"
					if meant := terminal.Suggest(id, known); meant != "" {
						remedy = fmt.Sprintf("did you mean %q?", strings.TrimPrefix(meant, "spiffe://"+domain+"/"))
					}
					report("FL128", place+"."+attribute, "cluster "+of+" of this flake does not have", id, remedy)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.together.Foreign)) {
			f := r.together.Foreign[name]
			var known []string
			var of string
			for _, o := range all {
				if o.Cluster != r.Cluster && o.together.TrustDomain == f.TrustDomain {
					of = o.Cluster
					known = append(known, o.together.Known...)
				}
			}
			if of != "" {
				has("federated."+name, of, f.TrustDomain, f.named, known)
			}
		}
		for _, o := range all {
			f, declared := r.together.Clusters[o.Cluster]
			switch {
			case !declared || o.Cluster == r.Cluster:
			case o.together.TrustDomain != r.together.TrustDomain:
				report("FL147", "clusters."+o.Cluster, "cluster "+o.Cluster+" of this flake has another trust domain", fmt.Sprintf("%q", o.together.TrustDomain),
					"declare it in federated."+o.Cluster+", with a bundle that verifies it")
			default:
				has("clusters."+o.Cluster, o.Cluster, r.together.TrustDomain, f, o.together.Known)
				for _, service := range slices.Sorted(maps.Keys(f.Entrances)) {
					for _, node := range f.Entrances[service] {
						if !slices.Contains(o.together.Clusters[r.Cluster].Admitted, node) {
							report("FL177", "clusters."+o.Cluster+".services", "cluster "+o.Cluster+" of this flake gives no role to the ingress that serves "+service+":", node,
								fmt.Sprintf("give it a role there: clusters.%s.identities.%q.roles", r.Cluster, strings.TrimPrefix(node, "spiffe://"+r.together.TrustDomain+"/")))
						}
					}
				}
				granted := o.together.Clusters[r.Cluster].Clients
				for _, want := range f.SignIns {
					service := strings.TrimPrefix(fmt.Sprint(want.Request["service"]), "spiffe://"+r.together.TrustDomain+"/service/")
					i := slices.IndexFunc(granted, func(c client) bool { return c.Caller == want.Caller && c.Need == want.Need })
					place, remedy := "services."+service[strings.LastIndex(service, "/")+1:]+".sso", fmt.Sprintf("declare the same client there: clusters.%s.clients.%q", r.Cluster, service)
					switch {
					case i < 0:
						report("FL187", place, "cluster "+o.Cluster+" of this flake has no such client for", want.Caller, remedy)
					case granted[i].Generation != want.Generation || granted[i].SSHHostKey != want.SSHHostKey || !reflect.DeepEqual(granted[i].Request, want.Request):
						report("FL187", place, "cluster "+o.Cluster+" of this flake has another client, which differs in", differs(want, granted[i]), remedy)
					}
				}
				for _, id := range shared(r.together, o.together) {
					report("FL139", "clusters."+o.Cluster, "this cluster and "+o.Cluster+" both have", id,
						"give it another name in one of them, or one cluster another trust domain: whoever lets in one lets in both")
				}
			}
		}
		order(r.Faults)
	}
}

// shared returns the identities that exist in two clusters of one trust domain. It leaves out
// nodes, which are then the same machine, and identities that FL127 reports.
func shared(a, b members) (ids []string) {
	for _, id := range a.Known {
		path := strings.TrimPrefix(id, "spiffe://"+a.TrustDomain+"/")
		if slices.Contains(b.Known, id) && !strings.HasPrefix(path, "node/") && a.Services[strings.TrimPrefix(path, "service/")] == "" {
			ids = append(ids, id)
		}
	}
	return ids
}
