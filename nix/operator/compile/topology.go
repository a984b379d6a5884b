package compile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Topology is a written topology with every reference followed: nix/resolve/export.nix.
// Lists are sorted, but for hosts of a provider, which come in order of preference.
type Topology struct {
	Name          string
	TrustDomain   string
	Trust         struct{ SigningKeys, Roots []string } // roots in PEM
	Hosts         map[string]Host
	Services      map[string]Service
	Users         map[string]User
	Teams         map[string]Team
	Federated     map[string]Federated // foreign trust domains
	Clusters      map[string]Elsewhere // others of this trust domain
	Roles         map[string]Role
	ServiceGroups map[string][]string // services, and parts of them
	Parts         map[string]Part     // "shell@eu", as roles and groups name them
	Providers     map[string]Provider // by kind
	Secrets       map[string]Secret
}

// Host is a machine.
type Host struct {
	ID spiffe.ID
	// Addresses, SSHHostKey and ports tell whether two clusters mean the same machine, and can both be on it.
	Address                     []string
	SSHHostKey                  string
	ForwarderPort, ProviderPort int
	ProviderPorts               []int // of the kinds that it provides
	StorePorts                  []int // of the member of the shared store that it keeps
	// Instance names the directories, units and accounts that it has there.
	Instance hostdir.Instance
	Kind     string                   // "server" or "device"
	Group    string                   // of the host groups, "eu/fra"
	Roles    []string                 // of the node
	Until    map[string]unixtime.Time // when some of these end
	Services []string                 // that run here
	Users    []string                 // who may act here
	Kinds    []string                 // of need that it provides
	Tags     []string
	Facts    map[string]any // that others' configurations may read
	// Capabilities are what it can do; with "ingress" it takes in strangers.
	Capabilities []string
}

// Service is something that is reached, or that runs for its host alone.
type Service struct {
	IDs        []spiffe.ID // one, with scope "node" one for each host, with "both" all of them
	Hosts      []string
	Port       int
	ListenPort int             // that callers use; 0 where it has several
	Ports      map[string]Port // by name, where it has several
	Published  bool
	Scope      string
	Visibility string
	Protocol   string                          // "tcp", "http" or "udp"
	TLSName    string                          // what strangers know it by, where it is public
	TLSAliases []string                        // others, with "*." for one label
	Aliases    []string                        // other names below the trust domain, with "*." for one label
	Outside    string                          // host:port outside the cluster that it leads to; empty for most
	Roles      []string                        // what the service itself may reach
	Until      map[string]unixtime.Time        // when some of these end
	Replicas   any                             // how many hosts it runs on, or "all"; nil where they are named
	Placement  struct{ Capabilities []string } // of those hosts
	Facts      map[string]any                  // that others' configurations may read
}

// Scoped is whether it has an identity of its own on each host.
func (s Service) Scoped() bool { return s.Scope == "node" || s.Scope == "both" }

// User is a person. Without hosts there is nowhere to act.
type User struct {
	ID    spiffe.ID
	Roles []string                 // those of the teams too
	Until map[string]unixtime.Time // when some of these end
	Hosts []string
	Teams []string // that lead to the user, from the one that names the user outwards
}

// Team is people who may reach the same.
type Team struct {
	Roles []string
	Until map[string]unixtime.Time // roles, and when they end
}

// Port is one of several of a service.
type Port struct {
	ListenPort int      // that callers use
	Protocols  []string // "tcp", "udp", or both
	Upstream   string
	Outside    string // as of the service
}

// Entrance is the port of a service with several at which an ingress passes strangers on.
const Entrance = "http"

// Face is what access is to: a service under one of its identities, and, where it has several
// ports, at one of them.
type Face struct {
	ID   spiffe.ID
	Port string
}

// MarshalText is a face for people and programs: an ID, and ":" and a port's name.
func (f Face) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSuffix(f.ID.String()+":"+f.Port, ":")), nil
}

// Faces are all that a service has.
func (s Service) Faces() (faces []Face) {
	for _, id := range s.IDs {
		if s.Ports == nil {
			faces = append(faces, Face{ID: id})
		}
		for _, port := range slices.Sorted(maps.Keys(s.Ports)) {
			faces = append(faces, Face{id, port})
		}
	}
	return faces
}

// Part is a service on some of its hosts, of which each has its own, or one of its several
// ports.
type Part struct {
	Service string
	Hosts   []string
	IDs     []spiffe.ID // where it has a Port
	Port    string
}

// Role is what its holders reach, and the capabilities that their hosts must have; with all
// of that of the roles in it.
type Role struct {
	Services, ServiceGroups, Requires []string
	Except                            []string               // what it does not lead to all the same
	Reach                             []spiffe.ID            // what is left, where that is not all of each service; else nil
	Ports                             map[spiffe.ID][]string // of these at which ports, where they have several
	Roles                             []string               // in it, and in those
	// Own is what it names itself, where there are roles in it; nil for all.
	Own *struct{ Services, ServiceGroups []string }
}

// Names are the services and groups that a role names itself.
func (r Role) Names() (services, groups []string) {
	if r.Own != nil {
		return r.Own.Services, r.Own.ServiceGroups
	}
	return r.Services, r.ServiceGroups
}

// Leads is what a role leads to of published services, by service.
func (t Topology) Leads(role string) map[string][]Face {
	r, leads := t.Roles[role], map[string][]Face{}
	names := slices.Clone(r.Services)
	for _, g := range r.ServiceGroups {
		names = append(names, t.ServiceGroups[g]...)
	}
	for _, name := range names {
		service, faces := t.Named(name)
		if !t.Services[service].Published {
			continue
		}
		if r.Reach == nil {
			leads[service] = faces
			continue
		}
		for _, f := range faces {
			left := slices.Contains(r.Reach, f.ID) && (f.Port == "" || slices.Contains(r.Ports[f.ID], f.Port))
			if left && !slices.Contains(leads[service], f) {
				leads[service] = append(leads[service], f)
			}
		}
	}
	return leads
}

// Named is what a name in a role or a group means, and the service that it is of.
func (t Topology) Named(name string) (service string, faces []Face) {
	part, is := t.Parts[name]
	if !is {
		return name, t.Services[name].Faces()
	}
	for _, f := range t.Services[part.Service].Faces() {
		among := slices.Contains(part.Hosts, f.ID.Node())
		if part.Port != "" {
			among = slices.Contains(part.IDs, f.ID) && f.Port == part.Port
		}
		if among {
			faces = append(faces, f)
		}
	}
	return part.Service, faces
}

// Secret is one that a provider makes.
type Secret struct {
	Generate   string
	Generation int
	Readers    []string // service/NAME or node/NAME
	Public     bool     // its public half is recorded in the flake
}

// Federated is a foreign trust domain, some of whose identities have roles.
type Federated struct {
	TrustDomain, Endpoint, EndpointID, Profile, Bundle string
	Elsewhere
}

// Elsewhere is what another cluster has that has to do with this one.
type Elsewhere struct {
	Identities map[spiffe.ID][]string // their roles
	Services   map[spiffe.ID][]string // roles that reach them
}

// Others are the other clusters, of foreign trust domains and of this one, by the place where
// they are declared.
func (t Topology) Others() map[string]Elsewhere {
	all := map[string]Elsewhere{}
	for name, f := range t.Federated {
		all["federated."+name] = f.Elsewhere
	}
	for name, c := range t.Clusters {
		all["clusters."+name] = c
	}
	return all
}

// Origin is where something is that another cluster has, declared at a place: a trust domain, or
// a cluster of this one.
func (t Topology) Origin(place string) string {
	if name, foreign := strings.CutPrefix(place, "federated."); foreign {
		return t.Federated[name].TrustDomain
	}
	return "cluster " + strings.TrimPrefix(place, "clusters.")
}

// Provider is who answers needs of one kind.
type Provider struct{ Hosts, Requires []string }

// ReadTopology returns the topology of a cluster without faults.
func ReadTopology(ctx context.Context, src Source) (Topology, error) {
	a, err := ask(ctx, src, "topology = true;")
	return a.Topology, err
}

// Snapshot is a whole cluster as one evaluation gave it.
type Snapshot struct {
	Topology  Topology
	Documents map[string]map[string]Raw // by host, then kind
	Warnings  []Fault
	Inputs    map[string]string // of the flake, as ReadInputs returns them; nil where nobody read them
}

// Raw is a document that nobody looked into yet.
type Raw struct{ Body, Envelope string }

// Head is the document's envelope.
func (r Raw) Head() (document.Envelope, error) { return document.ParseEnvelope([]byte(r.Envelope)) }

// Open checks the document.
func (r Raw) Open() (document.Document, error) {
	d, err := document.Open([]byte(r.Envelope), []byte(r.Body), "")
	if err != nil {
		return d, fmt.Errorf("the compiler's own output: %w", err)
	}
	return d, nil
}

// Read returns all there is to know about a cluster without faults.
func Read(ctx context.Context, src Source) (Snapshot, error) {
	a, err := ask(ctx, src, "topology = true; documents = true;")
	return Snapshot{Topology: a.Topology, Documents: a.Documents, Warnings: a.Faults}, err
}
