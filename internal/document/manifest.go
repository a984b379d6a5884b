package document

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Manifest is the document that configures one host. It contains the facts about the cluster that
// this host needs, and no others.
type Manifest struct {
	Cluster     string   `json:"cluster"`
	Host        string   `json:"host"`
	TrustDomain string   `json:"trustDomain"`
	Trust       Trust    `json:"trust"`
	Identity    Identity `json:"identity"`
	Roles       []string `json:"roles"` // roles of the node, sorted
	// Providers describes the providers that answer this host's needs. The keys are the name of the
	// provider's host, and then the kind of need.
	Providers map[string]map[string]Provider `json:"providers"`
	Needs     []Need                         `json:"needs"` // sorted by ID
	Forwarder Forwarder                      `json:"forwarder"`
	// Units lists the systemd units that should be running on the host. The key is the name of a
	// unit without the prefix of the host's instance. The value is true if the unit must be
	// installed already, because documents from the network do not install units.
	Units map[string]bool `json:"units,omitempty"`
	// Requests says how this host verifies grants, by the name of the role that a grant gives. It
	// contains the roles that Published.Latent names.
	Requests map[string]Request `json:"requests,omitempty"`
	// Federation lists the foreign trust domains that have identities which may connect to this
	// host.
	Federation []Foreign `json:"federation,omitempty"` // sorted by trust domain
}

// Trust contains the keys that the hosts of a cluster trust. Roots are the X.509 root certificates
// of the trust domain, in PEM. SigningKeys are the public keys that verify documents from the
// network, in Nix format ("name:base64").
type Trust struct {
	Roots       []string `json:"roots"`
	SigningKeys []string `json:"signingKeys"`
	// Threshold is the number of different signing keys that must sign each document, revocation
	// list and admission. Zero stands for one.
	Threshold int `json:"threshold,omitempty"`
}

// Signers returns the signing keys and their threshold as a signers.Set.
func (t Trust) Signers() signers.Set { return signers.Set{Keys: t.SigningKeys, Threshold: t.Threshold} }

// Identity contains the SPIFFE ID of the host's node, and the SSH host key with which the node
// proves its identity when it enrols. The key is in authorized_keys form without a comment. It is
// empty if Joins is set.
type Identity struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`

	// Joins is true if the node proves its identity with a device key that an operator admitted,
	// instead of an SSH host key.
	Joins bool `json:"joins,omitempty"`
}

// Provider says how to call one provider process, which answers one kind of need. It contains the
// addresses of the process, which serves TLS 1.3 over TCP, and the SPIFFE ID that the process must
// prove.
type Provider struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Addresses contains the addresses (host:port) of one program. Clients try them in this order.
type Addresses []string

// Forwarder configures the forwarder of a host, which connects the users and services of the host
// to the services of the cluster.
type Forwarder struct {
	Listen  []string    `json:"listen"`  // host:port, or :port for all addresses; empty if nothing is published
	Publish []Published `json:"publish"` // sorted by ID, port and protocol
	Reach   []Reachable `json:"reach"`   // sorted by ID, port and protocol
	Callers []Caller    `json:"callers"` // a process gets the identity of the first entry that matches
	SOCKS   []SOCKS     `json:"socks"`   // sorted by ID
	// Limits bounds how much of this host each caller may use, in all published services together.
	// The list is sorted by ID.
	Limits []CallerLimits `json:"limits,omitempty"`
	// Transport selects whether the forwarder listens on UDP, on TCP, or on both.
	Transport Transport `json:"transport,omitempty"`
	// Drain is the time in seconds for which existing connections may continue after the forwarder
	// restarts. Zero stands for 600.
	Drain int `json:"drain,omitempty"`
	// Relays describes the relays to which this host connects, by host name. These are the first
	// relay of each path to a service, and the relays in Uplinks.
	Relays map[string]Relay `json:"relays,omitempty"`
	// Uplinks lists the relays to which this host keeps a connection open, so that other hosts can
	// reach this host through them.
	Uplinks []string `json:"uplinks,omitempty"` // sorted
	// Meet permits relays to tell this host's address to the hosts that communicate with it through
	// a relay, so that the two hosts can connect directly. It is false for hidden hosts.
	Meet bool `json:"meet,omitempty"`
	// Relay configures this host as a relay. It is nil if the host is not a relay.
	Relay *Relaying `json:"relay,omitempty"`
	// Entries lists the listeners for callers that have no identity in the cluster.
	Entries []Entry `json:"entries,omitempty"` // sorted by address and protocol
}

// Relay says how to connect to a relay. It contains the addresses of the relay's forwarder, and the
// SPIFFE ID that this forwarder must prove.
type Relay struct {
	ID        spiffe.ID `json:"id"`
	Addresses Addresses `json:"addresses"`
	Transport Transport `json:"transport,omitempty"` // transport that both this host and the relay allow
}

// Relaying configures the forwarder of a relay. It names only nodes and other relays, so that a
// relay does not learn which users and services communicate through it.
type Relaying struct {
	ID     spiffe.ID    `json:"id"`              // ID of this relay, with the name of the host
	Routes []RelayRoute `json:"routes"`          // sorted by label
	Limits Limits       `json:"limits,omitzero"` // for each node and relay that connects through this one
}

// RelayRoute tells a relay where to forward streams. A stream names a route by its label, and the
// route leads either to a node that keeps a connection open to this relay, or to another relay.
type RelayRoute struct {
	// Label stands for the rest of the path, after this relay. It consists of 32 lower-case hex
	// digits, and does not reveal where the path leads.
	Label string    `json:"label"`
	To    spiffe.ID `json:"to"` // a node, or the vertex of the next relay
	// Next is the label that the next relay uses for this path. It is empty if To is a node.
	Next string `json:"next,omitempty"`
	// From lists the nodes and relays that may use this label, sorted.
	From []spiffe.ID `json:"from"`
}

// Protocol is the protocol that callers use to connect to a service, either TCP or UDP.
type Protocol string

const (
	TCP Protocol = "" // any protocol over TCP
	UDP Protocol = "udp"
)

// Remote is the protocol in which people open sessions at a service, such as a desktop.
type Remote string

const (
	NotRemote Remote = ""
	RemoteSSH Remote = "ssh"
	RemoteRDP Remote = "rdp"
	RemoteVNC Remote = "vnc"
)

// Transport selects the transport protocol of connections between two forwarders.
type Transport string

const (
	AnyTransport Transport = "" // QUIC, or TLS over TCP where UDP is blocked
	OverQUIC     Transport = "quic"
	OverTCP      Transport = "tcp" // TLS 1.3
)

// Published configures a service that this host publishes, or one port of such a service. It lists
// the identities that may connect, and the upstream to which the forwarder sends their connections.
type Published struct {
	ID spiffe.ID `json:"id"`
	// Port is the name of the port, if the service has several ports. Each port has its own
	// Published.
	Port     string   `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	Remote   Remote   `json:"remote,omitempty"`
	Upstream string   `json:"upstream"` // host:port, or for TCP also "unix:" and the path of a socket
	// User is the account on this host that must own the socket of the upstream. If User is empty,
	// the owner may be any system account, but not a login account.
	User string `json:"user,omitempty"`
	// Identity selects how the forwarder tells the upstream the identities of its callers.
	Identity Announcement `json:"identity,omitempty"`
	Limits   Limits       `json:"limits,omitzero"` // for all callers together
	// AccessLog selects which connections to the service are written to the log.
	AccessLog AccessLog `json:"accessLog,omitempty"`
	Allow     []Allow   `json:"allow"` // sorted by ID
	// Latent lists the identities that may connect while a grant is in force.
	Latent []Latent `json:"latent,omitempty"` // sorted by ID and role
	// OpaqueName replaces the name of the service in handshakes through a relay, so that the relay
	// does not learn the name. It consists of 32 lower-case hex digits. It is empty if this host
	// has no uplinks.
	OpaqueName string `json:"opaqueName,omitempty"`
	// Entrances lists the nodes whose forwarders may state the address of a caller that has no
	// identity in the cluster. See Entry.
	Entrances []spiffe.ID `json:"entrances,omitempty"` // sorted
	// Gate restricts the service to people. It is nil if all callers in Allow may connect.
	Gate *InnerGate `json:"gate,omitempty"`
	// Record makes this host record the SSH sessions. It is nil if they are not recorded.
	Record *Record `json:"record,omitempty"`
}

// Limits bounds the connections and the bytes of a caller or a service. A limit of zero means no
// limit.
type Limits struct {
	Connections    int   `json:"connections,omitempty"`    // concurrent TCP connections and UDP sessions
	OpensPerSecond int   `json:"opensPerSecond,omitempty"` // new connections and sessions; also the size of a burst
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"` // in both directions together
}

// CallerLimits contains the limits of one caller, which apply to all services of this host
// together.
type CallerLimits struct {
	ID     spiffe.ID `json:"id"`
	Limits Limits    `json:"limits"`
}

// AccessLog selects for how many connections to a service the access log gets a line. A line names
// the caller.
type AccessLog string

const (
	AccessOff     AccessLog = ""
	AccessSampled AccessLog = "sampled" // a sample of the connections
	AccessFull    AccessLog = "full"
)

// Announcement selects how the forwarder tells a service who its callers are. In addition, every
// service can run flor whois to find out.
type Announcement string

const (
	Unannounced Announcement = ""
	ProxyV2     Announcement = "proxy-v2" // a PROXY protocol header before the bytes of each connection
	HTTPHeaders Announcement = "http"     // headers of each request
)

// Allow permits one identity to connect to a service. If Fingerprint is set, the identity must
// present the leaf certificate with this SHA-256, in lower-case hex.
type Allow struct {
	ID          spiffe.ID `json:"id"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	// Until is the time at which the permission ends. Zero means that it does not end.
	Until unixtime.Time `json:"until,omitzero"`
	// Logins lists the accounts of this host as which the identity may log in over SSH. Only the
	// sshd behind a service reads it; the forwarder ends the connections of an identity that loses
	// a login.
	Logins []Login `json:"logins,omitempty"` // sorted by account
}

// Latent permits one identity to connect to a service while a grant for a role is in force. Logins
// lists the accounts as which the identity may then log in over SSH.
type Latent struct {
	ID     spiffe.ID `json:"id"`
	Role   string    `json:"role"`
	Logins []string  `json:"logins,omitempty"` // sorted
}

// Request describes a role that users may request for some hours. A grant is in force for at most
// Most hours, and must be signed with a key of one of the approvers, who may not be the user of the
// grant.
type Request struct {
	Most      int        `json:"most"`
	Approvers []Approver `json:"approvers"` // sorted by ID
}

// Approver is a user who may approve requests for a role. The keys are SSH public keys in
// authorized_keys form, without comments.
type Approver struct {
	ID   spiffe.ID `json:"id"`
	Keys []string  `json:"keys"`
}

// Login permits an identity to log in as an account of this host.
type Login struct {
	Account string `json:"account"`
	// Until is the time at which the permission ends. Zero means that it does not end.
	Until unixtime.Time `json:"until,omitzero"`
}

// Reachable is a service, or one port of a service, to which users, services or the node of this
// host may connect.
type Reachable struct {
	ID       spiffe.ID   `json:"id"`
	Port     string      `json:"port,omitempty"` // as in Published
	Protocol Protocol    `json:"protocol,omitempty"`
	Remote   Remote      `json:"remote,omitempty"`
	Callers  []spiffe.ID `json:"callers"` // local identities that may connect, sorted
	// Latent lists local identities whose connections the other end refuses unless a grant is in
	// force.
	Latent    []spiffe.ID    `json:"latent,omitempty"` // sorted
	Listen    netip.AddrPort `json:"listen"`           // loopback listener of this host
	Endpoints []Addresses    `json:"endpoints"`        // addresses of each forwarder that publishes the service; empty if all are hidden
	// Aliases lists additional DNS names of the service. Its main name is the result of
	// spiffe.Render.
	Aliases   []string  `json:"aliases,omitempty"` // sorted
	Transport Transport `json:"transport,omitempty"`
	// TLSName is the public DNS name (RFC 1035) of the service. An ingress requests a certificate
	// for it, and recognizes connections by it (server name indication, RFC 6066).
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases lists additional public names at which an ingress offers the service. A name that
	// begins with "*." matches any single label in that place.
	TLSAliases []string `json:"tlsAliases,omitempty"` // sorted
	// GRPC makes an ingress forward requests to the service over HTTP/2, which gRPC needs.
	GRPC bool `json:"grpc,omitempty"`
	// Ingress restricts the requests that an ingress passes to the service at its public names.
	Ingress PublicRules `json:"ingress,omitzero"`
	// Gate requires strangers to sign in before they reach the service at its public names.
	Gate *Gate `json:"gate,omitempty"`
	// Redirects maps further public names to public names of the service. If a browser visits a
	// further name, an ingress redirects the browser to the public name for it.
	Redirects map[string]string `json:"redirects,omitempty"`
	// Via lists the paths on which this host can reach the service through relays.
	Via []Via `json:"via,omitempty"` // sorted by relays and label
	// OpaqueName replaces the name of the service in handshakes through a relay, as in Published.
	OpaqueName string `json:"opaqueName,omitempty"`
	// HostKeys lists the SSH host keys of the hosts that publish the service (authorized_keys form,
	// without comment), if its protocol is SSH.
	HostKeys []string `json:"hostKeys,omitempty"` // sorted
	// Recorded is true if the hosts that publish the service record the SSH sessions there.
	Recorded bool `json:"recorded,omitempty"`
}

// Acting returns the local identities that connect to the service, including those that the other
// end refuses unless a grant is in force. The result is sorted.
func (r Reachable) Acting() []spiffe.ID {
	if len(r.Latent) == 0 {
		return r.Callers
	}
	all := slices.Concat(r.Callers, r.Latent)
	slices.SortFunc(all, func(a, b spiffe.ID) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// Via is a path through one or two relays to a host that publishes a service.
type Via struct {
	By    []string `json:"by"`    // host names of the relays, in the order of the path
	Label string   `json:"label"` // label of the path at the first relay
}

// Caller gives an identity to processes of this host. It lists the accounts and the systemd system
// units whose processes connect to services under this identity.
type Caller struct {
	ID    spiffe.ID `json:"id"`
	Users []string  `json:"users"` // account names of this host
	UIDs  []uint32  `json:"uids"`
	Units []string  `json:"units,omitempty"` // "wiki.service"
	// Workload permits these processes to fetch the SVID of the identity and its private key,
	// through the SPIFFE Workload API.
	Workload bool `json:"workload,omitempty"`
	// Federates lists foreign trust domains. The processes receive the bundles of these domains
	// together with the SVID.
	Federates []string `json:"federates,omitempty"` // sorted
}

// SOCKS is a local SOCKS5 listener (RFC 1928). Connections through it are made under the identity
// ID.
type SOCKS struct {
	ID     spiffe.ID      `json:"id"`
	Listen netip.AddrPort `json:"listen"`
}

// Foreign is a trust domain other than that of the host. Some of its identities may connect to
// services of the host.
type Foreign struct {
	TrustDomain string `json:"trustDomain"`
	Bundle      string `json:"bundle"` // initial bundle from the flake, so that trust never begins with data from the network
	Need        string `json:"need"`   // ID of the need that delivers later bundles
}
