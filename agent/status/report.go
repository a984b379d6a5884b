package status

import (
	"net/netip"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Report is the state of a forwarder and its host. The forwarder returns it as JSON for GET
// /status, so fields may be added but not removed.
type Report struct {
	Process         int                        `json:"process,omitempty"` // PID of the process that answers
	Host            string                     `json:"host"`
	Cluster         string                     `json:"cluster"`
	State           string                     `json:"state"` // "waiting" until the node's SVID is delivered, then "running"
	Manifest        *Version                   `json:"manifest,omitempty"`
	Problems        []string                   `json:"problems"`              // parts of the configuration that could not be applied
	Stale           int64                      `json:"stale,omitempty"`       // seconds since a provider answered about the documents, if too long
	Withheld        *trust.Withheld            `json:"withheld,omitempty"`    // document that is older than the revocation list allows
	Revocations     *trust.ReportedRevocations `json:"revocations,omitempty"` // revocation list in force
	Roots           []string                   `json:"roots,omitempty"`       // roots that verify peers, by trust.Fingerprint
	Anchors         []string                   `json:"anchors,omitempty"`     // roots to which the certificates of connected peers lead
	Pending         *hostdir.Change            `json:"pending,omitempty"`     // change that is undone unless it is confirmed
	Undone          *hostdir.Change            `json:"undone,omitempty"`      // change that was undone, while no newer change is in force
	Audit           []hostdir.ReportedAudit    `json:"audit,omitempty"`       // faults of providers' audit logs that nobody acknowledged
	Ending          []trust.EndingCertificate  `json:"ending,omitempty"`      // certificates that a person must renew
	Fallbacks       []hostreport.Fallback      `json:"fallbacks,omitempty"`
	DeviceKey       string                     `json:"deviceKey,omitempty"`  // storage of the device key of a host that joins: hostdir.InTPM or InFile
	Unconfined      string                     `json:"unconfined,omitempty"` // reason why Landlock does not restrict the forwarder
	Identities      []Identity                 `json:"identities"`
	Needs           []Need                     `json:"needs"`
	Listen          []string                   `json:"listen"`
	Published       []Published                `json:"published"`
	Reachable       []Reachable                `json:"reachable"`
	Entries         []Entry                    `json:"entries,omitempty"`
	SOCKS           []SOCKS                    `json:"socks"`
	Connections     int64                      `json:"connections"`         // open connections and UDP sessions, incoming and outgoing
	PeerConnections []usage.Row                `json:"peerConnections"`     // connections between forwarders
	Sessions        []sessions.Session         `json:"sessions,omitempty"`  // open sessions over SSH, RDP and VNC, also of draining processes
	Uplinks         []Uplink                   `json:"uplinks,omitempty"`   // sorted by the name of the relay
	NAT             transport.NAT              `json:"nat,omitempty"`       // NAT in front of this host, as its relays see it
	RelayedTo       []Path                     `json:"relayedTo,omitempty"` // paths to services that relays forward to
	Draining        []Draining                 `json:"draining,omitempty"`
	Handshakes      []usage.Handshakes         `json:"handshakes"` // handshakes since the forwarder started
	telemetry.Summary
}

// Draining is an older process of the forwarder that has been replaced in an upgrade and still
// carries connections.
type Draining struct {
	Process         int                `json:"process,omitempty"` // PID; 0 if the process did not report it
	Connections     int64              `json:"connections"`
	PeerConnections []usage.Row        `json:"peerConnections"`
	Sessions        []sessions.Session `json:"-"` // in Report.Sessions
}

// Version identifies the manifest that a host has in force.
type Version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
	// Signing describes which keys signed the manifest and how many must sign. It is empty if one
	// key is enough.
	Signing string `json:"signing,omitempty"`
}

// Identity is a SPIFFE ID that this host may use. Expires is the expiry of its SVID, or nil if no
// SVID was delivered yet.
type Identity struct {
	ID      spiffe.ID  `json:"id"`
	Expires *time.Time `json:"expires,omitempty"`
	// Workload reports whether processes may get the SVID and its key through the Workload API.
	Workload bool `json:"workload,omitempty"`
}

// Need describes files that this host must fetch from a provider, such as a certificate, and the
// progress that activation has recorded for them.
type Need struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	hostdir.NeedState
}

// Published is a service that this host publishes. The forwarder serves it only while its SVID is
// valid.
type Published struct {
	ID       spiffe.ID         `json:"id"`
	Port     string            `json:"port,omitempty"` // name of the port, if the service has several
	Protocol document.Protocol `json:"protocol,omitempty"`
	Upstream string            `json:"upstream"`
	Allow    []spiffe.ID       `json:"allow"`
	Serving  bool              `json:"serving"`
}

// Reachable is a service to which an identity of this host may connect.
type Reachable struct {
	ID        spiffe.ID            `json:"id"`
	Port      string               `json:"port,omitempty"` // name of the port, if the service has several
	Protocol  document.Protocol    `json:"protocol,omitempty"`
	Name      string               `json:"name"` // host name for SOCKS5 clients
	Listen    string               `json:"listen"`
	Callers   []spiffe.ID          `json:"callers"`
	Endpoints []document.Addresses `json:"endpoints"`
	Via       []document.Via       `json:"via,omitempty"` // paths to the service through relays
}

// Uplink is a connection of this host to a relay, through which callers that cannot reach the host
// directly connect to it.
type Uplink struct {
	Relay     spiffe.ID          `json:"relay"`
	Transport document.Transport `json:"transport,omitempty"` // empty while the relay is not connected
	Since     time.Time          `json:"since"`               // time of the last change of Transport
	Error     string             `json:"error,omitempty"`     // last error, while the relay is not connected
}

// Path is the path that new connections from a caller to a service take. Reports contain the paths
// to services that can be reached through relays.
type Path struct {
	Target spiffe.ID `json:"target"`
	Caller spiffe.ID `json:"caller"`
	Path   string    `json:"path"` // "direct", "direct (punched)", or "by" with the relays: "by gate, gate2"
	Since  time.Time `json:"since"`
	Why    string    `json:"why,omitempty"` // reason why the path is not direct
}

// Entry is a listener of this host for callers without an identity, inside or outside the cluster.
type Entry struct {
	ID          spiffe.ID         `json:"id"`
	Port        string            `json:"port,omitempty"`
	Protocol    document.Protocol `json:"protocol,omitempty"`
	Listen      string            `json:"listen"`
	ServerNames []string          `json:"serverNames,omitempty"`
	From        []netip.Prefix    `json:"from,omitempty"`
	Outside     string            `json:"outside,omitempty"`
	Caller      spiffe.ID         `json:"caller,omitzero"` // that the callers prove with a certificate; zero if they prove none
}

// SOCKS is a SOCKS5 listener of the forwarder, through which programs connect to services by name.
type SOCKS struct {
	ID     spiffe.ID `json:"id"`
	Listen string    `json:"listen"`
}
