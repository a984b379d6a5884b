package status

import (
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Report is the answer to GET /status. Fields may be added but not removed.
type Report struct {
	Process         int                        `json:"process,omitempty"` // PID of the answering process
	Host            string                     `json:"host"`
	Cluster         string                     `json:"cluster"`
	State           string                     `json:"state"` // "waiting" until the node's SVID is delivered, then "running"
	Manifest        *Version                   `json:"manifest,omitempty"`
	Problems        []string                   `json:"problems"`              // configuration that could not be applied
	Stale           int64                      `json:"stale,omitempty"`       // time in seconds without an answer about the documents, if it is too long
	Withheld        *trust.Withheld            `json:"withheld,omitempty"`    // document that is older than the revocation list allows
	Revocations     *trust.ReportedRevocations `json:"revocations,omitempty"` // list in force
	Roots           []string                   `json:"roots,omitempty"`       // roots that verify peers, by trust.Fingerprint
	Anchors         []string                   `json:"anchors,omitempty"`     // roots to which the peers of its connections lead
	Pending         *hostdir.Commit            `json:"pending,omitempty"`     // change that is undone unless it is confirmed
	Undone          *hostdir.Commit            `json:"undone,omitempty"`      // change that was undone, while nothing newer is in force
	Audit           []hostdir.ReportedAudit    `json:"audit,omitempty"`       // unacknowledged faults of providers' audit logs
	Ending          []trust.EndingCertificate  `json:"ending,omitempty"`      // certificates that a person must renew
	Fallbacks       []hostreport.Fallback      `json:"fallbacks,omitempty"`
	DeviceKey       string                     `json:"deviceKey,omitempty"`  // storage of the device key, hostdir.InTPM or InFile, if the host joins
	Unconfined      string                     `json:"unconfined,omitempty"` // reason why Landlock does not confine the forwarder
	Identities      []Identity                 `json:"identities"`
	Needs           []Need                     `json:"needs"`
	Listen          []string                   `json:"listen"`
	Published       []Published                `json:"published"`
	Reachable       []Reachable                `json:"reachable"`
	SOCKS           []SOCKS                    `json:"socks"`
	Connections     int64                      `json:"connections"`         // open connections and UDP sessions of both sides
	PeerConnections []usage.Row                `json:"peerConnections"`     // connections between forwarders
	Uplinks         []Uplink                   `json:"uplinks,omitempty"`   // sorted by relay
	NAT             transport.NAT              `json:"nat,omitempty"`       // in front of this host, as relays see it
	RelayedTo       []Path                     `json:"relayedTo,omitempty"` // paths to services that relays lead to
	Draining        []Draining                 `json:"draining,omitempty"`
	Handshakes      []usage.Handshakes         `json:"handshakes"` // handshakes since the start
	telemetry.Summary
}

// Draining is an older process that still carries connections.
type Draining struct {
	Process         int         `json:"process,omitempty"` // PID; 0 if the process did not report it
	Connections     int64       `json:"connections"`
	PeerConnections []usage.Row `json:"peerConnections"`
}

// Version identifies the manifest in force.
type Version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// Identity is an SVID of this host. Expires is nil until it is delivered.
type Identity struct {
	ID      spiffe.ID  `json:"id"`
	Expires *time.Time `json:"expires,omitempty"`
	// Workload means that processes may have the SVID and its key through the Workload API.
	Workload bool `json:"workload,omitempty"`
}

// Need is a need with its state as recorded by activation.
type Need struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	hostdir.NeedState
}

// Published is a service of this host. It is not served without a valid SVID.
type Published struct {
	ID       spiffe.ID         `json:"id"`
	Port     string            `json:"port,omitempty"` // name of the port if the service has several
	Protocol document.Protocol `json:"protocol,omitempty"`
	Upstream string            `json:"upstream"`
	Allow    []spiffe.ID       `json:"allow"`
	Serving  bool              `json:"serving"`
}

// Reachable is a service that identities of this host may reach.
type Reachable struct {
	ID        spiffe.ID            `json:"id"`
	Port      string               `json:"port,omitempty"` // as in Published
	Protocol  document.Protocol    `json:"protocol,omitempty"`
	Name      string               `json:"name"` // name for SOCKS5
	Listen    string               `json:"listen"`
	Callers   []spiffe.ID          `json:"callers"`
	Endpoints []document.Addresses `json:"endpoints"`
	Via       []document.Via       `json:"via,omitempty"` // paths through relays
}

// Uplink is a connection of this host to a relay, through which callers reach it.
type Uplink struct {
	Relay     spiffe.ID          `json:"relay"`
	Transport document.Transport `json:"transport,omitempty"` // empty while there is no connection
	Since     time.Time          `json:"since"`               // time since which Transport has its value
	Error     string             `json:"error,omitempty"`     // last failure, while there is no connection
}

// Path is the path to a service that new connections of a caller use, where relays are one.
type Path struct {
	Target spiffe.ID `json:"target"`
	Caller spiffe.ID `json:"caller"`
	Path   string    `json:"path"` // "direct", "direct (punched)", or "by gate, gate2"
	Since  time.Time `json:"since"`
	Why    string    `json:"why,omitempty"` // reason why the path is not a direct one
}

// SOCKS is a SOCKS5 listener.
type SOCKS struct {
	ID     spiffe.ID `json:"id"`
	Listen string    `json:"listen"`
}
