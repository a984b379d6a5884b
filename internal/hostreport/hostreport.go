package hostreport

import (
	"encoding/json"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// Report is the report of a host on its own state, which it sends to the provider of its documents.
// It contains no secrets. Later releases may add fields but not remove them, and readers ignore
// unknown fields.
type Report struct {
	// Sequence is higher than in all earlier reports of the host. Reports may arrive in another
	// order, so a provider keeps the one with the highest Sequence.
	Sequence int64 `json:"sequence"`

	Sent      unixtime.Time       `json:"sent"`    // by the host's clock
	Release   string              `json:"release"` // release of flor activate
	Format    document.Format     `json:"format"`  // newest document format that this release understands
	Documents []document.Reported `json:"documents"`
	Closure   *hostdir.NeedError  `json:"closure,omitempty"` // reason why the closure is not in force
	Needs     []Need              `json:"needs"`
	Forwarder *Forwarder          `json:"forwarder,omitempty"` // nil if the forwarder does not answer
	Units     []Unit              `json:"units"`
	Facts     Facts               `json:"facts"`

	Pending *hostdir.Change `json:"pending,omitempty"` // change that is undone unless it is confirmed
	Undone  *hostdir.Change `json:"undone,omitempty"`  // last change that was undone, until a newer one is in force

	Revocations *trust.ReportedRevocations `json:"revocations,omitempty"` // nil for none
	Withheld    *trust.Withheld            `json:"withheld,omitempty"`    // document that is older than the revocation list allows
	Roots       *Roots                     `json:"roots,omitempty"`       // nil without documents

	Audit    []hostdir.ReportedAudit `json:"audit,omitempty"`    // unacknowledged faults of providers' audit logs
	Accepted []hostdir.AcceptedAudit `json:"accepted,omitempty"` // acknowledged faults, newest last

	// Recordings lists recorded sessions that have ended, by number, until a provider has confirmed
	// a report with them.
	Recordings []recording.Summary `json:"recordings,omitempty"`
}

// Standing returns the important parts of the report as text. When this text changes, the host
// sends a new report at once. It leaves out counters, measurements, attempts and renewals.
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

// Roots tells operators which root certificates a host trusts or uses, so that they know when an
// old root can be removed. Roots are given by their fingerprints, as trust.Fingerprint returns
// them, sorted.
type Roots struct {
	// Trusted lists the root certificates that are in force everywhere on the host: in its
	// documents, in its forwarder and in the delivered bundles. Partly lists the root certificates
	// that are in force in only some of these places.
	Trusted []string `json:"trusted"`
	Partly  []string `json:"partly"`

	// Anchors lists the root certificates to which the SVIDs in use lead. These are the host's own
	// SVIDs, and the SVIDs of peers to which the host opens streams over existing connections.
	// trust.AnchorUnknown stands for an untrusted root. Since is the time at which Anchors last
	// changed, by the host's clock.
	Anchors []string      `json:"anchors"`
	Since   unixtime.Time `json:"since"`
}

// Need is the part of a host's report about files that the host must fetch from a provider, such as
// a certificate. It says whether the host has them and, if not, why.
type Need struct {
	ID        string             `json:"id"`
	Kind      string             `json:"kind"`
	State     hostdir.NeedStatus `json:"state"`
	Since     unixtime.Time      `json:"since"`
	Fulfilled unixtime.Time      `json:"fulfilled"`           // time at which the delivered files were received
	Expires   unixtime.Time      `json:"expires"`             // expiry of the delivered files
	Rotations int                `json:"rotations,omitempty"` // number of rotations of the need's secret
	Error     *hostdir.NeedError `json:"error,omitempty"`
}

// Forwarder contains the state of a host's forwarder, and its counters since it was started.
type Forwarder struct {
	State       string           `json:"state"`
	Connections int64            `json:"connections"` // open connections
	Refusals    map[string]int64 `json:"refusals"`    // by reason
	Problems    []string         `json:"problems"`    // configuration that could not be applied

	Ending    []trust.EndingCertificate `json:"ending,omitempty"` // certificates that a person must renew
	Fallbacks []Fallback                `json:"fallbacks,omitempty"`
}

// Fallback is a forwarder of another host that this host can reach over TCP, but not over UDP.
type Fallback struct {
	Forwarder document.Addresses `json:"forwarder"`
	Since     unixtime.Time      `json:"since"`
	Reason    string             `json:"reason"` // measurement that led to the fallback
	Retry     unixtime.Time      `json:"retry"`  // next attempt over UDP
}

// Unit is a systemd unit of a host that needs attention, because it does not run or waits for an
// event.
type Unit struct {
	Name   string `json:"name"`
	Active string `json:"active"`         // ActiveState in systemd
	Sub    string `json:"sub"`            // SubState in systemd
	Text   string `json:"text,omitempty"` // StatusText in systemd
}

// Facts describes the machine on which a host runs.
type Facts struct {
	System       string        `json:"system"` // os-release(5) PRETTY_NAME
	Kernel       string        `json:"kernel"`
	Architecture string        `json:"architecture"`
	CPUs         int           `json:"cpus"`
	Booted       unixtime.Time `json:"booted"`
	Memory       Capacity      `json:"memory"`
	Disk         Capacity      `json:"disk"`         // file system with the host's state
	Capabilities []string      `json:"capabilities"` // capabilities found on the machine, sorted

	// DeviceKey is hostdir.InTPM if the host claims that a TPM holds its device key.
	DeviceKey string `json:"deviceKey,omitempty"`
}

// FoundCapabilities lists the capabilities that a host detects by itself, sorted. All other
// capabilities must be declared by an administrator.
var FoundCapabilities = []string{"gpu", "kvm", "tpm"}

// Capacity is the size of a memory or a disk, and how much of it is free, both in bytes.
type Capacity struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"` // not counting memory held by caches
}

// DiskFull is the number of bytes that must be free on a host's disk, so that the host can write
// documents and the files of needs.
const DiskFull = 16 << 20

// Kept is the last report that a provider has received from a host, as the provider stores it.
type Kept struct {
	Received unixtime.Time   `json:"received"` // by the provider's clock
	Sequence int64           `json:"sequence"`
	Report   json.RawMessage `json:"report"` // a Report, possibly of a newer release

	// Rotate contains the rotations of secrets that an operator ordered, and that the host has not
	// reported as done. It maps the ID of a need to the number of its rotation.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// NextRotation stands for the number of an ordered rotation while this number is not known. The
// number is then that in the host's next report plus one.
const NextRotation = 0

// Decode decodes the stored report, and ignores fields that newer releases have added.
func (r Kept) Decode() (h Report, err error) {
	err = json.Unmarshal(r.Report, &h)
	return h, err
}
