package status

import (
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Report is the answer to GET /status. Fields are only ever added.
type Report struct {
	Process         int                        `json:"process,omitempty"` // that answers
	Host            string                     `json:"host"`
	Cluster         string                     `json:"cluster"`
	State           string                     `json:"state"` // "waiting" until the node's identity is there, then "running"
	Manifest        *Version                   `json:"manifest,omitempty"`
	Problems        []string                   `json:"problems"`              // what could not be put in force
	Stale           int64                      `json:"stale,omitempty"`       // seconds without an answer about the documents, when too many
	Revocations     *trust.ReportedRevocations `json:"revocations,omitempty"` // in force
	Roots           []string                   `json:"roots,omitempty"`       // that verify peers, by trust.Fingerprint
	Anchors         []string                   `json:"anchors,omitempty"`     // roots that the peers of its connections lead to
	Pending         *hostdir.Commit            `json:"pending,omitempty"`     // goes back unless it is confirmed
	Undone          *hostdir.Commit            `json:"undone,omitempty"`      // went back, and nothing newer is in force
	Audit           []hostdir.ReportedAudit    `json:"audit,omitempty"`       // providers' logs that are not what they were
	Ending          []trust.EndingCertificate  `json:"ending,omitempty"`      // what a person has to sign anew
	Fallbacks       []hostreport.Fallback      `json:"fallbacks,omitempty"`
	DeviceKey       string                     `json:"deviceKey,omitempty"`  // what has it, where the host joins: hostdir.InTPM or InFile
	Unconfined      string                     `json:"unconfined,omitempty"` // why the agent could open other files than a forwarder's
	Identities      []Identity                 `json:"identities"`
	Needs           []Need                     `json:"needs"`
	Listen          []string                   `json:"listen"`
	Published       []Published                `json:"published"`
	Reachable       []Reachable                `json:"reachable"`
	SOCKS           []SOCKS                    `json:"socks"`
	Connections     int64                      `json:"connections"`     // live, and UDP sessions, both sides
	PeerConnections []usage.Row                `json:"peerConnections"` // between forwarders
	Draining        []Draining                 `json:"draining,omitempty"`
	Handshakes      []usage.Handshakes         `json:"handshakes"` // of those that there were
	telemetry.Summary
}

// Draining is a process that this one has taken over from, and what it carries still.
type Draining struct {
	Process         int         `json:"process,omitempty"` // its PID; 0 where it did not report that
	Connections     int64       `json:"connections"`
	PeerConnections []usage.Row `json:"peerConnections"`
}

// Version names the manifest in force.
type Version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// Identity is an SVID of this host. Expires is nil until it is delivered.
type Identity struct {
	ID      spiffe.ID  `json:"id"`
	Expires *time.Time `json:"expires,omitempty"`
	// Workload: processes may have it with its key, by the Workload API.
	Workload bool `json:"workload,omitempty"`
}

// Need is a need with its state as activation wrote it.
type Need struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	hostdir.NeedState
}

// Published is a service of this host. Without a valid SVID it is not served.
type Published struct {
	ID       spiffe.ID         `json:"id"`
	Port     string            `json:"port,omitempty"` // its name, where there are several
	Protocol document.Protocol `json:"protocol,omitempty"`
	Upstream string            `json:"upstream"`
	Allow    []spiffe.ID       `json:"allow"`
	Serving  bool              `json:"serving"`
}

// Reachable is a service that identities of this host may reach.
type Reachable struct {
	ID        spiffe.ID            `json:"id"`
	Port      string               `json:"port,omitempty"` // as of Published
	Protocol  document.Protocol    `json:"protocol,omitempty"`
	Name      string               `json:"name"` // for SOCKS5
	Listen    string               `json:"listen"`
	Callers   []spiffe.ID          `json:"callers"`
	Endpoints []document.Addresses `json:"endpoints"`
}

// SOCKS is a SOCKS5 listener.
type SOCKS struct {
	ID     spiffe.ID `json:"id"`
	Listen string    `json:"listen"`
}
