package laws

import (
	"github.com/florete/florete/internal/document"
)

// cluster is a topology as people write it. The letter of a name shows its sort, so that a name in a
// document can be recognized: h3x is a host, s4x a service, n4x its public name, i5x a group of
// hosts, t6x a tag, k7x a capability, m8x an instance, w9x a team, q1x a secret, y1x a tenant, o2x an
// outside caller.
type cluster struct {
	Serial        int                 `json:"serial"`
	Name          string              `json:"name"`
	TrustDomain   string              `json:"trustDomain"`
	Trust         map[string][]string `json:"trust"`
	PathSalt      string              `json:"pathSalt,omitempty"`
	Hosts         map[string]*host    `json:"hosts"`
	HostGroups    map[string]*group   `json:"hostGroups,omitempty"`
	Services      map[string]*service `json:"services,omitempty"`
	Users         map[string]*holder  `json:"users,omitempty"`
	Teams         map[string]*team    `json:"teams,omitempty"`
	Roles         map[string]*role    `json:"roles,omitempty"`
	ServiceGroups map[string][]string `json:"serviceGroups,omitempty"`
	Providers     map[string]provider `json:"providers"`
	Rollout       *rollout            `json:"rollout,omitempty"`
	Outside       map[string]*outside `json:"outside,omitempty"`
	Redirects     map[string]string   `json:"redirects,omitempty"`

	Secrets   map[string]*generated `json:"secrets,omitempty"`
	Tenants   map[string]*tenant    `json:"tenants,omitempty"`
	Federated map[string]*federated `json:"federated,omitempty"`
	Clusters  map[string]*elsewhere `json:"clusters,omitempty"`
}

type host struct {
	group
	Address    string            `json:"address,omitempty"`
	Networks   map[string]string `json:"networks,omitempty"`
	Bind       string            `json:"bind,omitempty"`
	SSHHostKey string            `json:"sshHostKey,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Group      string            `json:"group,omitempty"`
	Callers    map[string][]any  `json:"callers,omitempty"`
	Loopback   string            `json:"loopback,omitempty"`
	Deploy     string            `json:"deploy,omitempty"`
	Instance   string            `json:"instance,omitempty"`
	Transport  string            `json:"transport,omitempty"`
	Cordon     bool              `json:"cordon,omitempty"`
	Keeps      []string          `json:"keeps,omitempty"`
	Drain      bool              `json:"drain,omitempty"`
	Weight     int               `json:"weight,omitempty"`
	Capacity   int               `json:"capacity,omitempty"`
	Facts      map[string]any    `json:"facts,omitempty"`
	Relay      bool              `json:"relay,omitempty"`
	Hidden     bool              `json:"hidden,omitempty"`
}

// group contains the attributes that hosts share with groups of hosts.
type group struct {
	Users        []string `json:"users,omitempty"`
	Roles        []string `json:"roles,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Relays       []string `json:"relays,omitempty"`

	Until map[string]string `json:"until,omitempty"`
}

type service struct {
	Host       string                  `json:"host,omitempty"`
	Hosts      []string                `json:"hosts,omitempty"`
	Replicas   any                     `json:"replicas,omitempty"`
	Placement  *placement              `json:"placement,omitempty"`
	Port       int                     `json:"port,omitempty"`
	ListenPort int                     `json:"listenPort,omitempty"`
	Upstream   string                  `json:"upstream,omitempty"`
	Ports      map[string]*servicePort `json:"ports,omitempty"`
	Protocol   string                  `json:"protocol,omitempty"`
	Identity   string                  `json:"identity,omitempty"`
	Transport  string                  `json:"transport,omitempty"`
	AccessLog  string                  `json:"accessLog,omitempty"`
	Visibility string                  `json:"visibility,omitempty"`
	TLSName    string                  `json:"tlsName,omitempty"`
	TLSAliases []string                `json:"tlsAliases,omitempty"`
	Aliases    []string                `json:"aliases,omitempty"`
	GRPC       bool                    `json:"grpc,omitempty"`
	Files      map[string]file         `json:"files,omitempty"`
	Scope      string                  `json:"scope,omitempty"`
	User       string                  `json:"user,omitempty"`
	Roles      []string                `json:"roles,omitempty"`
	Workload   bool                    `json:"workloadApi,omitempty"`
	Audiences  []string                `json:"jwtAudiences,omitempty"`
	Verifies   []string                `json:"verifies,omitempty"`
	Tokens     map[string]any          `json:"tokens,omitempty"`
	SSO        map[string]any          `json:"sso,omitempty"`
	Needs      map[string]need         `json:"needs,omitempty"`
	Limits     *document.Limits        `json:"limits,omitempty"`
	Facts      map[string]any          `json:"facts,omitempty"`
	Record     *record                 `json:"record,omitempty"`

	PublicPorts map[string]*publicPort `json:"publicPorts,omitempty"`
	Ingress     *publicRules           `json:"ingress,omitempty"`

	Databases map[string]database `json:"databases,omitempty"`
	Git       map[string]gitToken `json:"git,omitempty"`
	Until     map[string]string   `json:"until,omitempty"`

	placed []string // where the compiler placed its replicas
}

type record struct {
	Recipients []string `json:"recipients"`
	Days       int      `json:"days,omitempty"`
}

type file struct {
	Ref        string   `json:"ref"`
	Mode       string   `json:"mode,omitempty"`
	Generation int      `json:"generation,omitempty"`
	Restart    string   `json:"restart,omitempty"`
	After      []string `json:"dependsOn,omitempty"`
}

type holder struct {
	Roles  []string          `json:"roles"`
	Until  map[string]string `json:"until,omitempty"`
	Limits *document.Limits  `json:"limits,omitempty"`
}

type role struct {
	Services      []string `json:"services,omitempty"`
	ServiceGroups []string `json:"serviceGroups,omitempty"`
	Requires      []string `json:"requires,omitempty"`
	Roles         []string `json:"roles,omitempty"`
	Except        []string `json:"except,omitempty"`

	Logins     map[string][]string `json:"logins,omitempty"`
	Privileged bool                `json:"privileged,omitempty"`
}

type provider struct {
	Hosts    []string                   `json:"hosts"`
	Issuer   string                     `json:"issuer,omitempty"`
	Register string                     `json:"registration,omitempty"`
	How      string                     `json:"registrar,omitempty"`
	LDAP     any                        `json:"ldap,omitempty"`
	Upstream any                        `json:"upstream,omitempty"`
	Version  int                        `json:"generation,omitempty"` // of the keys of JWT-SVIDs
	Lifetime int                        `json:"lifetime,omitempty"`
	Every    int                        `json:"interval,omitempty"`
	Requires []string                   `json:"requires,omitempty"`
	Kind     string                     `json:"kind,omitempty"` // of the store
	From     []string                   `json:"from,omitempty"` // likewise
	Servers  map[string]*databaseServer `json:"servers,omitempty"`
	Forges   map[string]*forge          `json:"forges,omitempty"`
	Internal []string                   `json:"internal,omitempty"`  // domains in which the cluster's own CA issues certificates
	Wild     []string                   `json:"wildcards,omitempty"` // likewise
	own
}
