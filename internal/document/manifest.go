package document

import (
	"net/netip"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Manifest contains everything that one host needs to know, and nothing else.
type Manifest struct {
	Cluster     string   `json:"cluster"`
	Host        string   `json:"host"`
	TrustDomain string   `json:"trustDomain"`
	Trust       Trust    `json:"trust"`
	Identity    Identity `json:"identity"`
	Roles       []string `json:"roles"` // of the node, sorted
	// Providers lists the providers of the host's needs by host name and kind of need.
	Providers map[string]map[string]Provider `json:"providers"`
	Needs     []Need                         `json:"needs"` // sorted by ID
	Forwarder Forwarder                      `json:"forwarder"`
	// Units lists the systemd units that should be running, by name without the prefix of the
	// host's instance. The value is true if the unit must already be installed; documents from the
	// network do not install units.
	Units map[string]bool `json:"units,omitempty"`
	// Federation lists the foreign trust domains from which this host accepts named identities.
	Federation []Foreign `json:"federation,omitempty"` // sorted by trust domain
}

// Trust contains the X.509 roots of a trust domain (PEM), and the public keys, in Nix format
// "name:base64", that sign documents for the network.
type Trust struct {
	Roots       []string `json:"roots"`
	SigningKeys []string `json:"signingKeys"`
}

// Identity is the node's SPIFFE ID and the SSH host key (authorized_keys form, without comment)
// that proves it at enrolment. The key is empty if Joins is set.
type Identity struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`

	// Joins means that the node is proved by a device key, which an operator admitted.
	Joins bool `json:"joins,omitempty"`
}

// Provider gives the addresses of the process that answers a kind of need (TLS 1.3 over TCP), and
// the SPIFFE ID that it must present.
type Provider struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Addresses lists the addresses, host:port, of one program, in the order in which they are tried.
type Addresses []string

// Forwarder configures the forwarder of a host.
type Forwarder struct {
	Listen  []string    `json:"listen"`  // host:port, or :port for all addresses; empty if nothing is published
	Publish []Published `json:"publish"` // sorted by ID, port and protocol
	Reach   []Reachable `json:"reach"`   // sorted by ID, port and protocol
	Callers []Caller    `json:"callers"` // the first entry that matches a process gives its identity
	SOCKS   []SOCKS     `json:"socks"`   // sorted by ID
	// Limits apply to callers, over all services published here; sorted by ID.
	Limits []CallerLimits `json:"limits,omitempty"`
	// Transport says whether Listen is for UDP, TCP or both.
	Transport Transport `json:"transport,omitempty"`
	// Drain is the time in seconds that connections have to end after a restart of the forwarder;
	// zero for 600.
	Drain int `json:"drain,omitempty"`
	// Relays lists, by host name, the relays that this host calls: the first ones of its paths, and
	// its uplinks.
	Relays map[string]Relay `json:"relays,omitempty"`
	// Uplinks names the relays to which this host keeps a connection, through which others reach it.
	Uplinks []string `json:"uplinks,omitempty"` // sorted
	// Relay is set if this host is a relay.
	Relay *Relaying `json:"relay,omitempty"`
}

// Relay gives the addresses of the forwarder of a relay, and the SPIFFE ID that it must present.
type Relay struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Relaying configures the forwarder of a relay. It names nodes and other relays only: a relay does
// not learn which users and services talk through it.
type Relaying struct {
	ID     spiffe.ID    `json:"id"`     // of this relay, with the name of the host
	Routes []RelayRoute `json:"routes"` // sorted by label
}

// RelayRoute leads the connections that ask for a label to a node that has an uplink here, or to
// another relay.
type RelayRoute struct {
	// Label stands for the rest of the path. It is 32 lower-case hex digits, which do not tell where
	// the path leads.
	Label string    `json:"label"`
	To    spiffe.ID `json:"to"` // a node, or the vertex of the next relay
	// Next is the label that the next relay knows. It is empty if To is a node.
	Next string `json:"next,omitempty"`
	// From lists the nodes and relays that may use the label, sorted.
	From []spiffe.ID `json:"from"`
}

// Protocol is the transport protocol of a service.
type Protocol string

const (
	TCP Protocol = "" // any protocol over TCP
	UDP Protocol = "udp"
)

// Transport is the transport between forwarders.
type Transport string

const (
	AnyTransport Transport = "" // QUIC, or TCP where UDP does not pass
	OverQUIC     Transport = "quic"
	OverTCP      Transport = "tcp" // TLS 1.3
)

// Published is a service of this host, or one port of it: who may connect, and where connections
// are sent.
type Published struct {
	ID spiffe.ID `json:"id"`
	// Port is the name of the port if the service has several. Each port has an entry of its own.
	Port     string   `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	Upstream string   `json:"upstream"` // host:port, or for TCP also "unix:" and the path of a socket
	// User is the account on this host that must own the upstream's socket. If it is empty, any
	// system account may own it, but no login account.
	User string `json:"user,omitempty"`
	// Identity selects how the upstream learns the identity of its callers.
	Identity Announcement `json:"identity,omitempty"`
	Limits   Limits       `json:"limits,omitzero"` // for all callers together
	// AccessLog selects the connections that are logged.
	AccessLog AccessLog `json:"accessLog,omitempty"`
	Allow     []Allow   `json:"allow"` // sorted by ID
	// OpaqueName is the name of the service in handshakes that pass a relay, 32 lower-case hex
	// digits. It is empty if this host has no uplinks.
	OpaqueName string `json:"opaqueName,omitempty"`
}

// Limits bounds the use of a host by one caller or of one service; zero means no limit.
type Limits struct {
	Connections    int   `json:"connections,omitempty"`    // concurrent TCP connections and UDP sessions
	OpensPerSecond int   `json:"opensPerSecond,omitempty"` // new connections and sessions; also the size of a burst
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"` // in both directions together
}

// CallerLimits are the limits of one caller.
type CallerLimits struct {
	ID     spiffe.ID `json:"id"`
	Limits Limits    `json:"limits"`
}

// AccessLog selects how many of a service's connections are logged. Each logged connection has one
// line, with the caller.
type AccessLog string

const (
	AccessOff     AccessLog = ""
	AccessSampled AccessLog = "sampled" // some of them
	AccessFull    AccessLog = "full"
)

// Announcement is a way in which a service learns its caller's identity, in addition to flor whois.
type Announcement string

const (
	Unannounced Announcement = ""
	ProxyV2     Announcement = "proxy-v2" // a PROXY protocol header before the bytes of each connection
	HTTPHeaders Announcement = "http"     // headers of each request
)

// Allow lets one identity connect. Fingerprint, if set, is the lower-case hex SHA-256 of the only
// leaf certificate that is accepted.
type Allow struct {
	ID          spiffe.ID `json:"id"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	// Until is the end of the permission; zero for none.
	Until unixtime.Time `json:"until,omitzero"`
}

// Reachable is a service that identities of this host may connect to.
type Reachable struct {
	ID        spiffe.ID      `json:"id"`
	Port      string         `json:"port,omitempty"` // as in Published
	Protocol  Protocol       `json:"protocol,omitempty"`
	Callers   []spiffe.ID    `json:"callers"`   // local identities that may connect, sorted
	Listen    netip.AddrPort `json:"listen"`    // loopback listener of this host
	Endpoints []Addresses    `json:"endpoints"` // addresses of each forwarder that publishes it; empty if all are hidden
	// Aliases are additional names, beside the one that spiffe.Render returns.
	Aliases   []string  `json:"aliases,omitempty"` // sorted
	Transport Transport `json:"transport,omitempty"`
	// TLSName is the public DNS name (RFC 1035) of the service. An ingress uses it for certificates
	// and server name indication (RFC 6066).
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases are additional public names for an ingress; "*." stands for any one label.
	TLSAliases []string `json:"tlsAliases,omitempty"` // sorted
	// GRPC tells an ingress to pass HTTP/2 to the service, as gRPC needs.
	GRPC bool `json:"grpc,omitempty"`
	// Via lists the paths to the service through relays.
	Via []Via `json:"via,omitempty"` // sorted by relays and label
	// OpaqueName is the name of the service in handshakes that pass a relay, as in Published.
	OpaqueName string `json:"opaqueName,omitempty"`
}

// Via is a path to a host that publishes a service, through one relay or two.
type Via struct {
	By    []string `json:"by"`    // host names of the relays, in the order of the path
	Label string   `json:"label"` // known to the first relay
}

// Caller lists the local accounts and system units that act under an identity.
type Caller struct {
	ID    spiffe.ID `json:"id"`
	Users []string  `json:"users"` // account names of this host
	UIDs  []uint32  `json:"uids"`
	Units []string  `json:"units,omitempty"` // "wiki.service"
	// Workload lets these processes have the SVID and its private key through the SPIFFE Workload
	// API.
	Workload bool `json:"workload,omitempty"`
	// Federates lists the foreign trust domains whose bundles they receive with it.
	Federates []string `json:"federates,omitempty"` // sorted
}

// SOCKS is a SOCKS5 listener (RFC 1928) that connects under one identity.
type SOCKS struct {
	ID     spiffe.ID      `json:"id"`
	Listen netip.AddrPort `json:"listen"`
}

// Foreign is a foreign trust domain some of whose identities may reach this host.
type Foreign struct {
	TrustDomain string `json:"trustDomain"`
	Bundle      string `json:"bundle"` // initial bundle, so that trust never begins with data from the network
	Need        string `json:"need"`   // ID of the need that delivers later bundles
}
