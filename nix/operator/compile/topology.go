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

// Topology is the declaration of a cluster in the flake, with all references resolved. The file
// nix/resolve/export defines its form. All lists are sorted, except the hosts of a provider,
// which are in order of preference.
type Topology struct {
	Name          string
	TrustDomain   string
	Trust         document.Trust
	Hosts         map[string]Host
	Services      map[string]Service
	Users         map[string]User
	Teams         map[string]Team
	Federated     map[string]Federated // foreign trust domains
	Clusters      map[string]Elsewhere // other clusters of this trust domain
	Outside       map[string]Outside   // machines without an agent
	Roles         map[string]Role
	ServiceGroups map[string][]string // services and parts of them
	Parts         map[string]Part     // such as "shell@eu", as named in roles and groups
	Providers     map[string]Provider // by kind of need
	Secrets       map[string]Secret
	Budgets       []document.Budget // disruption budgets
}

// Host is a host of the cluster.
type Host struct {
	ID spiffe.ID
	// The following fields show whether hosts of two clusters are the same machine, and whether
	// both clusters can be on it.
	Address                     []string
	Networks                    map[string][]string // addresses within each of its networks
	SSHHostKey                  string
	ForwarderPort, ProviderPort int
	ProviderPorts               []int // ports of the kinds that it provides
	StorePorts                  []int // ports of its member of the shared store
	// Instance determines the names of the host's directories, units and accounts for this cluster.
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
	// Capabilities lists the capabilities of the host. A host with the capability "ingress" serves
	// public names.
	Capabilities []string
	// Hidden is set if other hosts know no address of the host.
	Hidden bool
	Relay  bool     // it forwards connections between other hosts
	Relays []string // hosts through which others reach it, beside its addresses
}

// OnlyRelayed reports whether other hosts can reach the host only through relays.
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

// Service is a service of the cluster, such as a web server, that runs on one or several hosts.
// Other hosts can use it only if it is published.
type Service struct {
	IDs          []spiffe.ID // one ID; with scope "node" one ID for each host; with "both" all of these
	Hosts        []string
	Port         int
	ListenPort   int             // port that callers use; 0 if it has several ports
	Ports        map[string]Port // by name, if it has several
	Upstream     string          // where it listens on its hosts; empty if it has several ports
	Published    bool
	Scope        string
	Visibility   string
	Protocol     string               // "tcp", "http", "ssh", "rdp", "vnc" or "udp"
	TLSName      string               // public name, if it is public
	TLSAliases   []string             // additional public names, with "*." for one label
	Ingress      document.PublicRules // rules for strangers at the public names
	IngressHosts []string             // hosts that serve the public names; empty for all that reach the service
	Redirects    map[string]string    // further public names, with the names to which they are redirected
	SSO          SSO
	// PublicPorts lists the ports at which strangers reach the service, by the name of the port of
	// the service. If the service has one port, the names have no meaning.
	PublicPorts map[string]PublicPort
	Record      document.Record                 // how SSH sessions are recorded; the zero value if they are not
	Aliases     []string                        // additional names below the trust domain, with "*." for one label
	Outside     string                          // host:port outside of the cluster to which the service leads; usually empty
	Roles       []string                        // roles of the service itself
	Until       map[string]unixtime.Time        // ends of some of the roles
	Replicas    any                             // number of hosts on which it runs, or "all"; nil if the hosts are named
	Placement   struct{ Capabilities []string } // capabilities that these hosts need
	Facts       map[string]any                  // values that configurations of other hosts may read
}

// SSO contains the settings of a service for the sign-in of people.
type SSO struct {
	Mode          string              // "none", "oidc" or "gate"
	Cluster       string              // other cluster at whose issuer people sign in; empty for this one
	AllowedGroups []string            // groups whose people may sign in; empty for everybody
	Groups        map[string][]string // groups of the issuer, by the name that the service knows
	Claims        map[string]string   // further claims in tokens, with the claims that they copy
}

// Gated reports whether people from outside the cluster (strangers) must sign in before an ingress
// host lets them reach the service.
func (s Service) Gated() bool { return s.SSO.Mode == "gate" }

// Scoped reports whether the service has a separate identity on each host.
func (s Service) Scoped() bool { return s.Scope == "node" || s.Scope == "both" }

// User is a person in the cluster, who acts on certain hosts. A user without hosts has no access.
type User struct {
	ID    spiffe.ID
	Roles []string                 // roles of the user, including the roles of teams
	Until map[string]unixtime.Time // ends of some of the roles
	Hosts []string
	Teams []string // teams through which the user has roles, beginning with the one that names the user

	ApprovalKeys []string // SSH public keys with which the user approves requests for roles
}

// Team is a named group of users who have the same roles.
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

// PublicPort is a port at which callers from outside the cluster (strangers) reach a service. The
// port is on hosts that act as an ingress.
type PublicPort struct {
	Port              int
	Hosts             []string // empty for all hosts with an ingress
	From, ServerNames []string // networks of callers, and names in the TLS handshake; empty for all
}

// Outside is a machine without an agent, such as a printer, that reaches services through a host of
// the cluster. That host recognizes the machine by a client certificate, or only by its addresses.
type Outside struct {
	ID        spiffe.ID // identity that its certificate proves; zero if it has none
	Addresses []string  // required of its connections; empty for all, if it has a certificate
	Via       string    // host
	Role      string    // role by which the node of the host reaches the services
}

// Entrance is the name of the port to which an ingress connects if a service has several ports.
const Entrance = "http"

// Face is the smallest part of a service to which access can be granted. If the service has several
// ports, it is one port of one identity of the service. Otherwise it is one identity.
type Face struct {
	ID   spiffe.ID
	Port string
}

// MarshalText returns the SPIFFE ID of the face. If the face has a port, ":" and the name of the
// port follow.
func (f Face) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSuffix(f.ID.String()+":"+f.Port, ":")), nil
}

// Faces returns all faces of the service, sorted by identity and then by the name of the port.
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

// Part is a part of a service to which a role can refer by its own name: the service on some of its
// hosts, or one of its ports.
type Part struct {
	Service string
	Hosts   []string
	IDs     []spiffe.ID // identities that it includes, if Port is set
	Port    string
}

// Role lists the services that its holders reach. It also lists the capabilities that the holders'
// hosts must have. If the role contains other roles, both lists include theirs.
type Role struct {
	Services, ServiceGroups, Requires []string
	Except                            []string               // services and parts that the role excludes
	Reach                             []spiffe.ID            // identities that remain after exceptions; nil if no identity is excluded
	Ports                             map[spiffe.ID][]string // ports at these identities, for services with several
	Roles                             []string               // roles that the role contains, directly and indirectly
	// Own contains the services and groups that the role names itself, without those of the roles
	// in it. It is nil if the role contains no other roles.
	Own *struct{ Services, ServiceGroups []string }
	// Logins lists the accounts as which users with the role may log in over SSH, by the ID of a
	// service.
	Logins map[spiffe.ID][]string
	// Request says who may request the role for some hours. It is nil if nobody may.
	Request *Request
}

// Request says who may request a role for some hours, and who may approve that.
type Request struct {
	By, Approve []string // teams
	Most        int      // longest time of a grant, in hours
	Users       []string // users who may request the role, sorted
	Approvers   []string // users who may approve a request, sorted
}

// Names returns the services and groups that a role names itself.
func (r Role) Names() (services, groups []string) {
	if r.Own != nil {
		return r.Own.Services, r.Own.ServiceGroups
	}
	return r.Services, r.ServiceGroups
}

// Leads returns the published services that holders of a role reach. For each service, it returns
// the faces that they reach.
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

// Named finds the service to which a name in a role or service group refers, and the faces of that
// service that the name includes. The name is that of a service, such as "shell", or of a part of
// one, such as "shell@eu".
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

// Secret is a secret that a provider generates for its readers.
type Secret struct {
	Generate   string
	Generation int
	Readers    []string // service/NAME, node/NAME, group/PATH or tags/TAG,…
	PerHost    bool     // each host has a secret of its own
	Public     bool     // the public half is recorded in the flake
}

// Federated is a foreign trust domain, some of whose identities have roles in this cluster.
type Federated struct {
	TrustDomain, Endpoint, EndpointID, Profile, Bundle string
	Elsewhere
}

// Elsewhere lists the identities and services of another cluster that have to do with this cluster:
// the identities have roles here, and roles of this cluster reach the services.
type Elsewhere struct {
	Identities map[spiffe.ID][]string // roles of these identities
	Services   map[spiffe.ID][]string // roles that reach these services

	// Entrances contains the nodes whose ingress serves the public name of a service. It has no entry
	// for a service without a public name in this cluster.
	Entrances map[spiffe.ID][]spiffe.ID

	// Clients contains the clients of the other cluster at the issuer of this cluster. SignIns
	// contains the requests of hosts of this cluster for clients at the issuer of the other one.
	Clients, SignIns []Client
}

// Client is a request for a client of an OpenID Connect issuer, which must equal the grant in the
// cluster of the issuer.
type Client struct {
	Caller     spiffe.ID // node that requests the client
	Need       string
	Generation int
	Request    map[string]any // the content of providers/oidc.Request
	SSHHostKey string         // proves the requests of the node
}

// Others returns all other clusters that the topology declares. The keys are the places of their
// declarations, such as "clusters.blue" or "federated.acme".
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

// Origin returns a name for people to read for another cluster, given the place of its declaration.
// For "clusters.blue" it is "cluster blue". For a foreign trust domain it is the name of the trust
// domain.
func (t Topology) Origin(place string) string {
	if name, foreign := strings.CutPrefix(place, "federated."); foreign {
		return t.Federated[name].TrustDomain
	}
	return "cluster " + strings.TrimPrefix(place, "clusters.")
}

// Provider lists the hosts that answer requests for one kind of need, and the capabilities that
// these hosts must have.
type Provider struct {
	Hosts, Requires []string
	Issuer          string // of kind oidc: where people sign in
}

// ReadTopology returns the topology of a cluster. If the cluster has faults, the error is a
// *FaultsError.
func ReadTopology(ctx context.Context, src Source) (Topology, error) {
	a, err := ask(ctx, src, "topology = true;")
	return a.Topology, err
}

// Snapshot contains the topology of a cluster and all its documents. Nix evaluated both at the same
// time, so they match.
type Snapshot struct {
	Topology  Topology
	Documents map[string]map[string]Raw // by host, then document kind
	Warnings  []Fault
	Inputs    map[string]string // inputs of the flake from ReadInputs; nil if they were not read
}

// Raw is a document whose envelope and body have not been decoded.
type Raw struct{ Body, Envelope string }

// Head decodes and returns the envelope of the document.
func (r Raw) Head() (document.Envelope, error) { return document.ParseEnvelope([]byte(r.Envelope)) }

// Open decodes the document and checks it, as document.Open does.
func (r Raw) Open() (document.Document, error) {
	d, err := document.Open([]byte(r.Envelope), []byte(r.Body), "")
	if err != nil {
		return d, fmt.Errorf("the compiler's own output: %w", err)
	}
	return d, nil
}

// Read returns the topology and all documents of a cluster. If the cluster has faults, the error is
// a *FaultsError.
func Read(ctx context.Context, src Source) (Snapshot, error) {
	a, err := ask(ctx, src, "topology = true; documents = true;")
	return Snapshot{Topology: a.Topology, Documents: a.Documents, Warnings: a.Faults}, err
}
