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

// Topology is a topology with all references resolved, see nix/resolve/export.nix. Lists are
// sorted, except for the hosts of a provider, which are in order of preference.
type Topology struct {
	Name          string
	TrustDomain   string
	Trust         struct{ SigningKeys, Roots []string } // roots in PEM
	Hosts         map[string]Host
	Services      map[string]Service
	Users         map[string]User
	Teams         map[string]Team
	Federated     map[string]Federated // foreign trust domains
	Clusters      map[string]Elsewhere // other clusters of this trust domain
	Roles         map[string]Role
	ServiceGroups map[string][]string // services and parts of them
	Parts         map[string]Part     // such as "shell@eu", as named in roles and groups
	Providers     map[string]Provider // by kind of need
	Secrets       map[string]Secret
}

// Host is a host of the cluster.
type Host struct {
	ID spiffe.ID
	// These fields determine whether two clusters mean the same machine, and whether both can be on
	// it.
	Address                     []string
	Networks                    map[string][]string // addresses within each of its networks
	SSHHostKey                  string
	ForwarderPort, ProviderPort int
	ProviderPorts               []int // ports of the kinds that it provides
	StorePorts                  []int // ports of its member of the shared store
	// Instance names its directories, units and accounts of this cluster.
	Instance hostdir.Instance
	Kind     string                   // "server" or "device"
	Group    string                   // host group, such as "eu/fra"
	Roles    []string                 // roles of the node
	Until    map[string]unixtime.Time // ends of some of the roles
	Services []string                 // services that run here
	Users    []string                 // users who may act here
	Kinds    []string                 // kinds of need that it provides
	Tags     []string
	Facts    map[string]any // values that configurations of other hosts may read
	// Capabilities lists its capabilities. A host with "ingress" serves public names.
	Capabilities []string
	// Hidden is set if the other hosts have no address of it.
	Hidden bool
	Relay  bool     // carries connections between other hosts
	Relays []string // hosts through which others reach it, beside its addresses
}

// OnlyRelayed reports whether other hosts reach the host through relays alone.
func (h Host) OnlyRelayed() bool {
	if h.Hidden {
		return true
	}
	for _, addresses := range h.Networks {
		if len(addresses) > 0 {
			return false
		}
	}
	return len(h.Address) == 0 && len(h.Relays) > 0
}

// Service is a service. An unpublished service can only be used on its own host.
type Service struct {
	IDs        []spiffe.ID // one; with scope "node" one for each host; with "both" all of them
	Hosts      []string
	Port       int
	ListenPort int             // port that callers use; 0 if it has several ports
	Ports      map[string]Port // by name, if it has several
	Published  bool
	Scope      string
	Visibility string
	Protocol   string                          // "tcp", "http" or "udp"
	TLSName    string                          // public name, if it is public
	TLSAliases []string                        // additional public names, with "*." for one label
	Aliases    []string                        // additional names below the trust domain, with "*." for one label
	Outside    string                          // host:port outside of the cluster to which it leads; usually empty
	Roles      []string                        // roles of the service itself
	Until      map[string]unixtime.Time        // ends of some of the roles
	Replicas   any                             // number of hosts on which it runs, or "all"; nil if the hosts are named
	Placement  struct{ Capabilities []string } // capabilities that these hosts need
	Facts      map[string]any                  // values that configurations of other hosts may read
}

// Scoped reports whether the service has a separate identity on each host.
func (s Service) Scoped() bool { return s.Scope == "node" || s.Scope == "both" }

// User is a person. A user without hosts cannot act anywhere.
type User struct {
	ID    spiffe.ID
	Roles []string                 // including those of teams
	Until map[string]unixtime.Time // ends of some of the roles
	Hosts []string
	Teams []string // teams through which the user has roles, beginning with the one that names the user
}

// Team is a group of people with the same roles.
type Team struct {
	Roles []string
	Until map[string]unixtime.Time // ends of roles
}

// Port is one of several ports of a service.
type Port struct {
	ListenPort int      // port that callers use
	Protocols  []string // "tcp", "udp" or both
	Upstream   string
	Outside    string // as in Service
}

// Entrance is the name of the port to which an ingress connects, for a service with several ports.
const Entrance = "http"

// Face is a target of access: a service under one of its identities, and one of its ports if it has
// several.
type Face struct {
	ID   spiffe.ID
	Port string
}

// MarshalText returns the ID, followed by ":" and the name of the port if there is one.
func (f Face) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSuffix(f.ID.String()+":"+f.Port, ":")), nil
}

// Faces returns all faces of a service.
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

// Part is a part of a service: the service on some of its hosts, or one of its ports.
type Part struct {
	Service string
	Hosts   []string
	IDs     []spiffe.ID // identities that it includes, if Port is set
	Port    string
}

// Role contains the services that its holders reach and the capabilities that their hosts need,
// including those of the roles in it.
type Role struct {
	Services, ServiceGroups, Requires []string
	Except                            []string               // services and parts to which it does not lead
	Reach                             []spiffe.ID            // identities that remain after exceptions, if not all of each service; otherwise nil
	Ports                             map[spiffe.ID][]string // ports at these identities, for services with several
	Roles                             []string               // roles in it, directly and indirectly
	// Own contains the services and groups that the role names itself, if it contains other roles;
	// nil for all.
	Own *struct{ Services, ServiceGroups []string }
}

// Names returns the services and groups that a role names itself.
func (r Role) Names() (services, groups []string) {
	if r.Own != nil {
		return r.Own.Services, r.Own.ServiceGroups
	}
	return r.Services, r.ServiceGroups
}

// Leads returns the published services to which a role leads, with their faces.
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

// Named returns the service and faces that a name in a role or group stands for.
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

// Secret is a secret that a provider generates.
type Secret struct {
	Generate   string
	Generation int
	Readers    []string // service/NAME or node/NAME
	Public     bool     // the public half is recorded in the flake
}

// Federated is a foreign trust domain with identities that have roles here.
type Federated struct {
	TrustDomain, Endpoint, EndpointID, Profile, Bundle string
	Elsewhere
}

// Elsewhere contains the identities and services of another cluster that are related to this one.
type Elsewhere struct {
	Identities map[spiffe.ID][]string // roles of these identities
	Services   map[spiffe.ID][]string // roles that reach these services
}

// Others returns the other clusters, of foreign trust domains and of this one, by the place of
// their declaration.
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

// Origin describes the cluster that is declared at a place: its trust domain, or its name if it has
// the same trust domain.
func (t Topology) Origin(place string) string {
	if name, foreign := strings.CutPrefix(place, "federated."); foreign {
		return t.Federated[name].TrustDomain
	}
	return "cluster " + strings.TrimPrefix(place, "clusters.")
}

// Provider contains the hosts that answer needs of one kind.
type Provider struct{ Hosts, Requires []string }

// ReadTopology returns the topology of a cluster without faults.
func ReadTopology(ctx context.Context, src Source) (Topology, error) {
	a, err := ask(ctx, src, "topology = true;")
	return a.Topology, err
}

// Snapshot is a complete cluster from one evaluation.
type Snapshot struct {
	Topology  Topology
	Documents map[string]map[string]Raw // by host, then document kind
	Warnings  []Fault
	Inputs    map[string]string // inputs of the flake from ReadInputs; nil if they were not read
}

// Raw is a document that has not been decoded.
type Raw struct{ Body, Envelope string }

// Head returns the envelope of the document.
func (r Raw) Head() (document.Envelope, error) { return document.ParseEnvelope([]byte(r.Envelope)) }

// Open decodes and checks the document.
func (r Raw) Open() (document.Document, error) {
	d, err := document.Open([]byte(r.Envelope), []byte(r.Body), "")
	if err != nil {
		return d, fmt.Errorf("the compiler's own output: %w", err)
	}
	return d, nil
}

// Read returns the topology and all documents of a cluster without faults.
func Read(ctx context.Context, src Source) (Snapshot, error) {
	a, err := ask(ctx, src, "topology = true; documents = true;")
	return Snapshot{Topology: a.Topology, Documents: a.Documents, Warnings: a.Faults}, err
}
