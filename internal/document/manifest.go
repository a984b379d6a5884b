package document

import (
	"net/netip"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Manifest is the document with everything that one host needs to know about its cluster, and
// nothing else.
type Manifest struct {
	Cluster     string   `json:"cluster"`
	Host        string   `json:"host"`
	TrustDomain string   `json:"trustDomain"`
	Trust       Trust    `json:"trust"`
	Identity    Identity `json:"identity"`
	Roles       []string `json:"roles"` // roles of the node, sorted
	// Providers lists the providers of the host's needs, by host name and then by kind of need.
	Providers map[string]map[string]Provider `json:"providers"`
	Needs     []Need                         `json:"needs"` // sorted by ID
	Forwarder Forwarder                      `json:"forwarder"`
	// Units lists the systemd units that should be running, by name without the prefix of the
	// host's instance. The value is true if the unit must already be installed, because documents
	// from the network do not install units.
	Units map[string]bool `json:"units,omitempty"`
	// Federation lists the foreign trust domains of which some identities may reach this host.
	Federation []Foreign `json:"federation,omitempty"` // sorted by trust domain
}

// Trust contains the X.509 roots of a trust domain (PEM), and the public keys that verify documents
// from the network (Nix format, "name:base64").
type Trust struct {
	Roots       []string `json:"roots"`
	SigningKeys []string `json:"signingKeys"`
	// Threshold is the number of different signing keys that must sign each document, revocation
	// list and admission. Zero stands for one.
	Threshold int `json:"threshold,omitempty"`
}

// Signers returns the signing keys with their threshold.
func (t Trust) Signers() signers.Set { return signers.Set{Keys: t.SigningKeys, Threshold: t.Threshold} }

// Identity is the node's SPIFFE ID, and the SSH host key (authorized_keys form, without comment)
// with which the node proves itself at enrolment. The key is empty if Joins is set.
type Identity struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`

	// Joins means that the node proves itself with a device key that an operator admitted, instead
	// of an SSH host key.
	Joins bool `json:"joins,omitempty"`
}

// Provider gives the addresses of a provider process that answers one kind of need (TLS 1.3 over
// TCP), and the SPIFFE ID that the process must present.
type Provider struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Addresses lists the addresses (host:port) of one program, in the order in which clients try them.
type Addresses []string

// Forwarder configures the forwarder of a host.
type Forwarder struct {
	Listen  []string    `json:"listen"`  // host:port, or :port for all addresses; empty if nothing is published
	Publish []Published `json:"publish"` // sorted by ID, port and protocol
	Reach   []Reachable `json:"reach"`   // sorted by ID, port and protocol
	Callers []Caller    `json:"callers"` // the first entry that matches a process gives its identity
	SOCKS   []SOCKS     `json:"socks"`   // sorted by ID
	// Limits bounds each caller's use of all services together that this host publishes. It is
	// sorted by ID.
	Limits []CallerLimits `json:"limits,omitempty"`
	// Transport selects whether the forwarder listens on UDP, TCP or both.
	Transport Transport `json:"transport,omitempty"`
	// Drain is the time in seconds for which existing connections may continue after a restart of
	// the forwarder. Zero stands for 600.
	Drain int `json:"drain,omitempty"`
	// Relays lists the relays to which this host connects, by host name: the first relay of each
	// path to a service, and the relays in Uplinks.
	Relays map[string]Relay `json:"relays,omitempty"`
	// Uplinks names the relays to which this host keeps a connection. Other hosts reach this host
	// through them.
	Uplinks []string `json:"uplinks,omitempty"` // sorted
	// Meet permits relays to tell the address of this host to hosts with which it communicates
	// through them, so that the two hosts can connect directly. It is false for hidden hosts.
	Meet bool `json:"meet,omitempty"`
	// Relay configures this host as a relay; nil if it is none.
	Relay *Relaying `json:"relay,omitempty"`
	// Entries lists the listeners for callers without an identity.
	Entries []Entry `json:"entries,omitempty"` // sorted by address and protocol
}

// Relay gives the addresses of a relay's forwarder, and the SPIFFE ID that the forwarder must
// present.
type Relay struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
	Transport Transport `json:"transport,omitempty"` // that both this host and the relay allow
}

// Relaying configures the forwarder of a relay. It names only nodes and other relays, so a relay
// does not learn which users and services communicate through it.
type Relaying struct {
	ID     spiffe.ID    `json:"id"`              // ID of this relay, with the name of the host
	Routes []RelayRoute `json:"routes"`          // sorted by label
	Limits Limits       `json:"limits,omitzero"` // for each node and relay that connects through this one
}

// RelayRoute tells a relay where to forward connections that name a label: to a node that has an
// uplink to this relay, or to another relay.
type RelayRoute struct {
	// Label identifies the rest of the path. It consists of 32 lower-case hex digits and does not
	// reveal where the path leads.
	Label string    `json:"label"`
	To    spiffe.ID `json:"to"` // a node, or the vertex of the next relay
	// Next is the label of this path at the next relay. It is empty if To is a node.
	Next string `json:"next,omitempty"`
	// From lists the nodes and relays that may use the label. It is sorted.
	From []spiffe.ID `json:"from"`
}

// Protocol is the transport protocol of a service.
type Protocol string

const (
	TCP Protocol = "" // any protocol over TCP
	UDP Protocol = "udp"
)

// Transport is the transport protocol between two forwarders.
type Transport string

const (
	AnyTransport Transport = "" // QUIC, or TLS over TCP where UDP is blocked
	OverQUIC     Transport = "quic"
	OverTCP      Transport = "tcp" // TLS 1.3
)

// Published configures one service of this host, or one port of the service. It lists the
// identities that may connect and the upstream to which their connections are sent.
type Published struct {
	ID spiffe.ID `json:"id"`
	// Port is the name of the port if the service has several. Each port has an entry of its own.
	Port     string   `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	Upstream string   `json:"upstream"` // host:port, or for TCP also "unix:" and the path of a socket
	// User is the account on this host that must own the upstream's socket. If User is empty, any
	// system account may own the socket, but no login account.
	User string `json:"user,omitempty"`
	// Identity selects the way in which the upstream learns the identity of its callers.
	Identity Announcement `json:"identity,omitempty"`
	Limits   Limits       `json:"limits,omitzero"` // for all callers together
	// AccessLog selects which connections to the service are logged.
	AccessLog AccessLog `json:"accessLog,omitempty"`
	Allow     []Allow   `json:"allow"` // sorted by ID
	// OpaqueName replaces the name of the service in handshakes through a relay, so that the relay
	// does not learn it. It is 32 lower-case hex digits, or empty if this host has no uplinks.
	OpaqueName string `json:"opaqueName,omitempty"`
	// Entrances lists the nodes whose forwarders may state the address of a caller without an
	// identity. See Entry.
	Entrances []spiffe.ID `json:"entrances,omitempty"` // sorted
}

// Limits bounds the connections and bytes of one caller at a host, or of one service. Zero means no
// limit.
type Limits struct {
	Connections    int   `json:"connections,omitempty"`    // concurrent TCP connections and UDP sessions
	OpensPerSecond int   `json:"opensPerSecond,omitempty"` // new connections and sessions; also the size of a burst
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"` // in both directions together
}

// CallerLimits are the limits of one caller at this host.
type CallerLimits struct {
	ID     spiffe.ID `json:"id"`
	Limits Limits    `json:"limits"`
}

// AccessLog selects how many of a service's connections are logged. Each logged connection has one
// line, which names the caller.
type AccessLog string

const (
	AccessOff     AccessLog = ""
	AccessSampled AccessLog = "sampled" // a sample of the connections
	AccessFull    AccessLog = "full"
)

// Announcement is a way in which a forwarder tells a service the identity of its caller. A service
// can also use flor whois.
type Announcement string

const (
	Unannounced Announcement = ""
	ProxyV2     Announcement = "proxy-v2" // a PROXY protocol header before the bytes of each connection
	HTTPHeaders Announcement = "http"     // headers of each request
)

// Allow permits one identity to connect to a service. If Fingerprint is set, only the leaf
// certificate with this SHA-256 in lower-case hex is accepted.
type Allow struct {
	ID          spiffe.ID `json:"id"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	// Until is the time at which the permission ends; zero for never.
	Until unixtime.Time `json:"until,omitzero"`
}

// Reachable is a service, or one of its ports, to which identities of this host may connect.
type Reachable struct {
	ID        spiffe.ID      `json:"id"`
	Port      string         `json:"port,omitempty"` // as in Published
	Protocol  Protocol       `json:"protocol,omitempty"`
	Callers   []spiffe.ID    `json:"callers"`   // local identities that may connect, sorted
	Listen    netip.AddrPort `json:"listen"`    // loopback listener of this host
	Endpoints []Addresses    `json:"endpoints"` // addresses of each forwarder that publishes the service; empty if all are hidden
	// Aliases are additional names of the service, besides the name that spiffe.Render returns.
	Aliases   []string  `json:"aliases,omitempty"` // sorted
	Transport Transport `json:"transport,omitempty"`
	// TLSName is the public DNS name (RFC 1035) of the service. An ingress uses it for certificates
	// and server name indication (RFC 6066).
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases are additional public names for an ingress. A name that begins with "*." matches
	// any one label in that place.
	TLSAliases []string `json:"tlsAliases,omitempty"` // sorted
	// GRPC tells an ingress to forward requests to the service over HTTP/2, which gRPC needs.
	GRPC bool `json:"grpc,omitempty"`
	// Ingress restricts what an ingress passes to the service at its public names.
	Ingress PublicRules `json:"ingress,omitzero"`
	// Redirects maps further public names to the public names of the service to which an ingress
	// redirects their visitors.
	Redirects map[string]string `json:"redirects,omitempty"`
	// Via lists the paths to the service through relays.
	Via []Via `json:"via,omitempty"` // sorted by relays and label
	// OpaqueName replaces the name of the service in handshakes through a relay, as in Published.
	OpaqueName string `json:"opaqueName,omitempty"`
}

// Via is a path to a host that publishes a service, through one relay or two.
type Via struct {
	By    []string `json:"by"`    // host names of the relays, in the order of the path
	Label string   `json:"label"` // known to the first relay
}

// Caller lists the local accounts and systemd system units whose processes connect to services
// under an identity.
type Caller struct {
	ID    spiffe.ID `json:"id"`
	Users []string  `json:"users"` // account names of this host
	UIDs  []uint32  `json:"uids"`
	Units []string  `json:"units,omitempty"` // "wiki.service"
	// Workload lets these processes fetch the SVID and its private key through the SPIFFE Workload
	// API.
	Workload bool `json:"workload,omitempty"`
	// Federates lists the foreign trust domains whose bundles these processes receive with the
	// SVID.
	Federates []string `json:"federates,omitempty"` // sorted
}

// SOCKS is a SOCKS5 listener (RFC 1928) that connects under one identity.
type SOCKS struct {
	ID     spiffe.ID      `json:"id"`
	Listen netip.AddrPort `json:"listen"`
}

// Foreign is a foreign trust domain. Some of its identities may connect to services of this host.
type Foreign struct {
	TrustDomain string `json:"trustDomain"`
	Bundle      string `json:"bundle"` // initial bundle from the flake, so that trust never begins with data from the network
	Need        string `json:"need"`   // ID of the need that delivers later bundles
}
