package hostreport

import (
	"encoding/json"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// Report has the facts that a host reports of itself to the provider of its documents, and
// no secret. Fields are only ever added, and readers ignore those that they do
// not know.
type Report struct {
	// Sequence is higher than that of every report before it: a provider keeps the
	// highest, whatever order they arrive in.
	Sequence int64 `json:"sequence"`

	Sent      unixtime.Time       `json:"sent"`    // by the host's clock
	Release   string              `json:"release"` // of flor activate
	Format    document.Format     `json:"format"`  // the newest that it understands
	Documents []document.Reported `json:"documents"`
	Closure   *hostdir.NeedError  `json:"closure,omitempty"` // why the closure is not in force
	Needs     []Need              `json:"needs"`
	Forwarder *Forwarder          `json:"forwarder,omitempty"` // nil where it does not answer
	Units     []Unit              `json:"units"`
	Facts     Facts               `json:"facts"`

	Pending *hostdir.Commit `json:"pending,omitempty"` // goes back unless it is confirmed
	Undone  *hostdir.Commit `json:"undone,omitempty"`  // went back, and nothing newer is in force

	Revocations *trust.ReportedRevocations `json:"revocations,omitempty"` // nil for none
	Roots       *Roots                     `json:"roots,omitempty"`       // nil without documents

	Audit    []hostdir.ReportedAudit `json:"audit,omitempty"`    // providers' logs that are not what they were
	Accepted []hostdir.AcceptedAudit `json:"accepted,omitempty"` // what a person accepted of that, the newest last
}

// Standing returns what of a report is news when it changes, as text to compare: not what is counted
// or measured, and neither attempts nor renewals.
func (r Report) Standing() string {
	r.Sequence, r.Sent = 0, unixtime.Time{}
	r.Facts.Booted, r.Facts.Memory, r.Facts.Disk = unixtime.Time{}, Capacity{}, Capacity{}
	r.Needs, r.Units = slices.Clone(r.Needs), slices.Clone(r.Units)
	for i, n := range r.Needs {
		r.Needs[i] = Need{ID: n.ID, State: n.State, Rotations: n.Rotations}
		if n.Error != nil {
			r.Needs[i].Error = &hostdir.NeedError{Code: n.Error.Code}
		}
	}
	for i, u := range r.Units {
		r.Units[i] = Unit{Name: u.Name, Active: u.Active, Sub: u.Sub}
	}
	if f := r.Forwarder; f != nil {
		r.Forwarder = &Forwarder{State: f.State, Problems: f.Problems, Ending: f.Ending}
	}
	b, _ := json.Marshal(r)
	return string(b)
}

// Roots are roots by Fingerprint, sorted.
type Roots struct {
	// Trusted are in force wherever the host verifies: in its documents, its forwarder and
	// the bundles that were delivered. Partly are in force in some of it.
	Trusted []string `json:"trusted"`
	Partly  []string `json:"partly"`

	// Anchors lists the roots to which the host's own SVIDs lead, and those of the peers to which it
	// opens streams over connections that it has; AnchorUnknown is a root that it does not
	// trust. They are these since a time by its clock, or longer.
	Anchors []string      `json:"anchors"`
	Since   unixtime.Time `json:"since"`
}

// Need is the standing of a need.
type Need struct {
	ID        string             `json:"id"`
	Kind      string             `json:"kind"`
	State     hostdir.NeedStatus `json:"state"`
	Since     unixtime.Time      `json:"since"`
	Fulfilled unixtime.Time      `json:"fulfilled"`           // when what is delivered came
	Expires   unixtime.Time      `json:"expires"`             // when that ends
	Rotations int                `json:"rotations,omitempty"` // how often its secret was rotated
	Error     *hostdir.NeedError `json:"error,omitempty"`
}

// Forwarder has the counts of the forwarder since it was started.
type Forwarder struct {
	State       string           `json:"state"`
	Connections int64            `json:"connections"` // live
	Refusals    map[string]int64 `json:"refusals"`    // by reason
	Problems    []string         `json:"problems"`    // what could not be put in force

	Ending    []trust.EndingCertificate `json:"ending,omitempty"` // what a person has to sign anew
	Fallbacks []Fallback                `json:"fallbacks,omitempty"`
}

// Fallback is a forwarder to which TCP leads, and UDP does not.
type Fallback struct {
	Forwarder document.Addresses `json:"forwarder"`
	Since     unixtime.Time      `json:"since"`
	Reason    string             `json:"reason"` // what was measured
	Retry     unixtime.Time      `json:"retry"`  // over UDP
}

// Unit is a unit that does not run as it should, or waits.
type Unit struct {
	Name   string `json:"name"`
	Active string `json:"active"` // as systemd has it
	Sub    string `json:"sub"`
	Text   string `json:"text,omitempty"` // what it reports of itself
}

// Facts are of the machine.
type Facts struct {
	System       string        `json:"system"` // os-release(5) PRETTY_NAME
	Kernel       string        `json:"kernel"`
	Architecture string        `json:"architecture"`
	CPUs         int           `json:"cpus"`
	Booted       unixtime.Time `json:"booted"`
	Memory       Capacity      `json:"memory"`
	Disk         Capacity      `json:"disk"`         // of the file system with the host's state
	Capabilities []string      `json:"capabilities"` // that were found on it, sorted

	// DeviceKey is InTPM where a TPM holds the key of a host that joins: the host's own word.
	DeviceKey string `json:"deviceKey,omitempty"`
}

// FoundCapabilities lists the capabilities that a host finds on the machine by itself, sorted. Whether
// it has any other is for its administrator to declare.
var FoundCapabilities = []string{"gpu", "kvm", "tpm"}

// Capacity is in bytes.
type Capacity struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"` // without what caches hold
}

// DiskFull is the number of bytes that a host's disk must have free for documents and needs to be written.
const DiskFull = 16 << 20

// Kept is the last report of a host as a provider keeps it.
type Kept struct {
	Received unixtime.Time   `json:"received"` // by the provider's clock
	Sequence int64           `json:"sequence"`
	Report   json.RawMessage `json:"report"` // a Report, perhaps of a newer release

	// Rotate are the rotations of needs' secrets that an operator ordered and the host has
	// not reported yet, by need.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// NextRotation stands for an ordered rotation whose number is not known: the one after that of
// the host's next report.
const NextRotation = 0

// Decode reads the report. What a newer release has beside is left out.
func (r Kept) Decode() (h Report, err error) {
	err = json.Unmarshal(r.Report, &h)
	return h, err
}
