package document

import (
	"net/netip"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Manifest is what one host needs to know and nothing else.
type Manifest struct {
	Cluster     string   `json:"cluster"`
	Host        string   `json:"host"`
	TrustDomain string   `json:"trustDomain"`
	Trust       Trust    `json:"trust"`
	Identity    Identity `json:"identity"`
	Roles       []string `json:"roles"` // of the node, sorted
	// Providers are those that needs refer to, by host name and kind of need.
	Providers map[string]map[string]Provider `json:"providers"`
	Needs     []Need                         `json:"needs"` // sorted by ID
	Forwarder Forwarder                      `json:"forwarder"`
	// Units has the units of systemd that should run, by name without the prefix of the host's
	// instance. The value tells whether the unit must be installed: documents from the network install none.
	Units map[string]bool `json:"units,omitempty"`
	// Federation are the foreign trust domains that this host accepts named identities of.
	Federation []Foreign `json:"federation,omitempty"` // sorted by trust domain
}

// Trust is what a host trusts: X.509 roots of its trust domain (PEM) and the
// public keys, in Nix format "name:base64", that sign documents for the network.
type Trust struct {
	Roots       []string `json:"roots"`
	SigningKeys []string `json:"signingKeys"`
}

// Identity is the node's SPIFFE ID and the SSH host key (authorized_keys form,
// without comment) that proves it at enrolment; none where it Joins.
type Identity struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`

	// Joins is that a device key proves it, which an operator admitted.
	Joins bool `json:"joins,omitempty"`
}

// Provider is where this host calls the process that answers a kind of need (TLS 1.3 over
// TCP), and the SPIFFE ID it must present.
type Provider struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Addresses are all host:port of one program, in the order in which they are tried.
type Addresses []string

// Forwarder is the forwarder's part of the manifest.
type Forwarder struct {
	Listen  []string    `json:"listen"`  // host:port, or :port of all addresses; none when nothing is published
	Publish []Published `json:"publish"` // sorted by ID, port and protocol
	Reach   []Reachable `json:"reach"`   // likewise
	Callers []Caller    `json:"callers"` // the first that matches a process is its identity
	SOCKS   []SOCKS     `json:"socks"`   // sorted by ID
	// Limits are of callers, for all that is published here; sorted by ID.
	Limits []CallerLimits `json:"limits,omitempty"`
	// Transport is what Listen is for: UDP, TCP, or both.
	Transport Transport `json:"transport,omitempty"`
	// Drain is how many seconds connections have when the next process takes over; zero for
	// 600.
	Drain int `json:"drain,omitempty"`
}

// Protocol is what a service is carried as.
type Protocol string

const (
	TCP Protocol = "" // whatever is spoken over it
	UDP Protocol = "udp"
)

// Transport is what connections between forwarders go over.
type Transport string

const (
	AnyTransport Transport = "" // QUIC, and TCP where UDP does not pass
	OverQUIC     Transport = "quic"
	OverTCP      Transport = "tcp" // TLS 1.3
)

// Published is a service of this host: who may connect, and where its connections
// go.
type Published struct {
	ID spiffe.ID `json:"id"`
	// Port is the name of one of several ports of the service, each of which is an entry of its own.
	Port     string   `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	Upstream string   `json:"upstream"` // host:port, or, of TCP, unix: and the path of a socket
	// User is the account of this host that the upstream's socket must belong to. Without
	// one any account of the system will do, and none that people log in with.
	User string `json:"user,omitempty"`
	// Identity is how the upstream learns who calls.
	Identity Announcement `json:"identity,omitempty"`
	Limits   Limits       `json:"limits,omitzero"` // of all its callers together
	// AccessLog is which of its connections are logged.
	AccessLog AccessLog `json:"accessLog,omitempty"`
	Allow     []Allow   `json:"allow"` // sorted by ID
}

// Limits are what somebody may have at one host; zero is no limit.
type Limits struct {
	Connections    int   `json:"connections,omitempty"`    // TCP connections and UDP sessions at a time
	OpensPerSecond int   `json:"opensPerSecond,omitempty"` // of both, and as many at once
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"` // in both directions together
}

// CallerLimits are those of one caller.
type CallerLimits struct {
	ID     spiffe.ID `json:"id"`
	Limits Limits    `json:"limits"`
}

// AccessLog is how many of a service's connections have a line each, with who called.
type AccessLog string

const (
	AccessOff     AccessLog = ""
	AccessSampled AccessLog = "sampled" // some
	AccessFull    AccessLog = "full"
)

// Announcement is how a service learns who calls, besides flor whois.
type Announcement string

const (
	Unannounced Announcement = ""
	ProxyV2     Announcement = "proxy-v2" // a PROXY protocol header before the bytes of each connection
	HTTPHeaders Announcement = "http"     // headers of each request
)

// Allow lets one identity connect. Fingerprint, when set, is the lower-case hex
// SHA-256 of the only leaf certificate that will do.
type Allow struct {
	ID          spiffe.ID `json:"id"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	// Until is when that ends; zero for never.
	Until unixtime.Time `json:"until,omitzero"`
}

// Reachable is a service that identities of this host may connect to.
type Reachable struct {
	ID        spiffe.ID      `json:"id"`
	Port      string         `json:"port,omitempty"` // as of Published
	Protocol  Protocol       `json:"protocol,omitempty"`
	Callers   []spiffe.ID    `json:"callers"`   // the local identities that may, sorted
	Listen    netip.AddrPort `json:"listen"`    // loopback listener of this host
	Endpoints []Addresses    `json:"endpoints"` // of each forwarder that publishes it
	// Aliases are other names of it, beside that of Render.
	Aliases   []string  `json:"aliases,omitempty"` // sorted
	Transport Transport `json:"transport,omitempty"`
	// TLSName is its public name, for an ingress: a DNS name
	// (RFC 1035) for certificates and server name indication (RFC 6066).
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases are others, for an ingress; "*." stands for one label.
	TLSAliases []string `json:"tlsAliases,omitempty"` // sorted
	// GRPC is that an ingress passes it HTTP/2, of gRPC.
	GRPC bool `json:"grpc,omitempty"`
}

// Caller lists the local accounts, and units of the system, that act under an identity.
type Caller struct {
	ID    spiffe.ID `json:"id"`
	Users []string  `json:"users"` // account names of this host
	UIDs  []uint32  `json:"uids"`
	Units []string  `json:"units,omitempty"` // "wiki.service"
	// Workload lets them have the SVID with its key, by the SPIFFE Workload API.
	Workload bool `json:"workload,omitempty"`
	// Federates are the foreign trust domains whose bundles they have with it.
	Federates []string `json:"federates,omitempty"` // sorted
}

// SOCKS is a SOCKS5 listener (RFC 1928) bound to one identity.
type SOCKS struct {
	ID     spiffe.ID      `json:"id"`
	Listen netip.AddrPort `json:"listen"`
}

// Foreign is a trust domain whose identities may reach something on this host.
type Foreign struct {
	TrustDomain string `json:"trustDomain"`
	Bundle      string `json:"bundle"` // the first one, so that trust never begins on the wire
	Need        string `json:"need"`   // that delivers the ones after it
}
