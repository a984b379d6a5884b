package florete

import "net/netip"

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
}

// Trust is what a host trusts: X.509 roots of its trust domain (PEM) and the
// public keys, in Nix format "name:base64", that sign documents for the network.
type Trust struct {
	Roots       []string `json:"roots"`
	SigningKeys []string `json:"signingKeys"`
}

// Identity is the node's SPIFFE ID and the SSH host key (authorized_keys form,
// without comment) that proves it at enrolment.
type Identity struct {
	ID         ID     `json:"id"`
	SSHHostKey string `json:"sshHostKey"`
}

// Provider is where this host calls the process that answers a kind of need (TLS 1.3 over
// TCP), and the SPIFFE ID it must present.
type Provider struct {
	ID        ID        `json:"id"`
	Addresses Addresses `json:"addresses"`
}

// Addresses are all host:port of one program, in the order in which they are tried.
type Addresses []string

// Forwarder is the forwarder's part of the manifest.
type Forwarder struct {
	Listen  []string    `json:"listen"`  // UDP host:port, or :port of all addresses; none when nothing is published
	Publish []Published `json:"publish"` // sorted by ID
	Reach   []Reachable `json:"reach"`   // sorted by ID
	Callers []Caller    `json:"callers"` // the first that matches a uid is its identity
	SOCKS   []SOCKS     `json:"socks"`   // sorted by ID
}

// Protocol is what a service is carried as.
type Protocol string

const (
	TCP Protocol = "" // whatever is spoken over it
	UDP Protocol = "udp"
)

// Published is a service of this host: who may connect, and where its connections
// go.
type Published struct {
	ID       ID       `json:"id"`
	Protocol Protocol `json:"protocol,omitempty"`
	Upstream string   `json:"upstream"` // host:port, or, of TCP, unix: and the path of a socket
	// User is the account of this host that the upstream's socket must belong to. Without
	// one any account of the system will do, and none that people log in with.
	User  string  `json:"user,omitempty"`
	Allow []Allow `json:"allow"` // sorted by ID
}

// Allow lets one identity connect. Fingerprint, when set, is the lower-case hex
// SHA-256 of the only leaf certificate that will do.
type Allow struct {
	ID          ID     `json:"id"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Reachable is a service that identities of this host may connect to.
type Reachable struct {
	ID        ID             `json:"id"`
	Protocol  Protocol       `json:"protocol,omitempty"`
	Callers   []ID           `json:"callers"`   // the local identities that may, sorted
	Listen    netip.AddrPort `json:"listen"`    // loopback listener of this host
	Endpoints []Addresses    `json:"endpoints"` // UDP, of each forwarder that publishes it
	// TLSName is the name that strangers know it by, told to an ingress: a DNS name
	// (RFC 1035) for certificates and server name indication (RFC 6066).
	TLSName string `json:"tlsName,omitempty"`
}

// Caller says which local uids act under an identity.
type Caller struct {
	ID    ID       `json:"id"`
	Users []string `json:"users"` // account names of this host
	UIDs  []uint32 `json:"uids"`
}

// SOCKS is a SOCKS5 listener (RFC 1928) bound to one identity.
type SOCKS struct {
	ID     ID             `json:"id"`
	Listen netip.AddrPort `json:"listen"`
}
