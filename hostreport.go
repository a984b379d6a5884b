package florete

import "encoding/json"

// HostReport is what a host reports of itself to the provider of its documents: its own
// facts, and no secret. Fields are only ever added, and readers ignore those that they do
// not know.
type HostReport struct {
	// Sequence is higher than that of every report before it: a provider keeps the
	// highest, whatever order they arrive in.
	Sequence int64 `json:"sequence"`

	Sent      Time               `json:"sent"`    // by the host's clock
	Release   string             `json:"release"` // of flor activate
	Format    Format             `json:"format"`  // the newest that it understands
	Documents []ReportedDocument `json:"documents"`
	Closure   *NeedError         `json:"closure,omitempty"` // why the closure is not in force
	Needs     []ReportedNeed     `json:"needs"`
	Forwarder *ReportedForwarder `json:"forwarder,omitempty"` // nil where it does not answer
	Units     []ReportedUnit     `json:"units"`
	Facts     Facts              `json:"facts"`

	Pending *Commit `json:"pending,omitempty"` // goes back unless it is confirmed
	Undone  *Commit `json:"undone,omitempty"`  // went back, and nothing newer is in force

	Revocations *ReportedRevocations `json:"revocations,omitempty"` // nil for none
	Roots       *ReportedRoots       `json:"roots,omitempty"`       // nil without documents

	Audit    []ReportedAudit `json:"audit,omitempty"`    // providers' logs that are not what they were
	Accepted []AcceptedAudit `json:"accepted,omitempty"` // what a person accepted of that, the newest last
}

// ReportedRoots are roots by Fingerprint, sorted.
type ReportedRoots struct {
	// Trusted are in force wherever the host verifies: in its documents, its forwarder and
	// the bundles that were delivered. Partly are in force in some of it.
	Trusted []string `json:"trusted"`
	Partly  []string `json:"partly"`

	// Anchors are those that the host's own SVIDs lead to, and those of the peers to which it
	// opens streams over connections that it has; AnchorUnknown is a root that it does not
	// trust. They are these since a time by its clock, or longer.
	Anchors []string `json:"anchors"`
	Since   Time     `json:"since"`
}

// ReportedNeed is how a need stands.
type ReportedNeed struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	State     NeedStatus `json:"state"`
	Since     Time       `json:"since"`
	Fulfilled Time       `json:"fulfilled"`           // when what is delivered came
	Expires   Time       `json:"expires"`             // when that ends
	Rotations int        `json:"rotations,omitempty"` // how often its secret was rotated
	Error     *NeedError `json:"error,omitempty"`
}

// ReportedForwarder is what the forwarder counts since it was started.
type ReportedForwarder struct {
	State       string           `json:"state"`
	Connections int64            `json:"connections"` // live
	Refusals    map[string]int64 `json:"refusals"`    // by reason
	Problems    []string         `json:"problems"`    // what could not be put in force

	Ending    []EndingCertificate `json:"ending,omitempty"` // what a person has to sign anew
	Fallbacks []Fallback          `json:"fallbacks,omitempty"`
}

// Fallback is a forwarder to which TCP leads, and UDP does not.
type Fallback struct {
	Forwarder Addresses `json:"forwarder"`
	Since     Time      `json:"since"`
	Reason    string    `json:"reason"` // what was measured
	Retry     Time      `json:"retry"`  // over UDP
}

// ReportedUnit is a unit that does not run as it should, or waits.
type ReportedUnit struct {
	Name   string `json:"name"`
	Active string `json:"active"` // as systemd has it
	Sub    string `json:"sub"`
	Text   string `json:"text,omitempty"` // what it reports of itself
}

// Facts are of the machine.
type Facts struct {
	System       string   `json:"system"` // os-release(5) PRETTY_NAME
	Kernel       string   `json:"kernel"`
	Architecture string   `json:"architecture"`
	CPUs         int      `json:"cpus"`
	Booted       Time     `json:"booted"`
	Memory       Capacity `json:"memory"`
	Disk         Capacity `json:"disk"`         // of the file system with the host's state
	Capabilities []string `json:"capabilities"` // that were found on it, sorted

	// DeviceKey is InTPM where a TPM holds the key of a host that joins: the host's own word.
	DeviceKey string `json:"deviceKey,omitempty"`
}

// FoundCapabilities are those that a host finds on the machine by itself, sorted. Whether
// it has any other is for its administrator to declare.
var FoundCapabilities = []string{"gpu", "kvm", "tpm"}

// Capacity is in bytes.
type Capacity struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"` // without what caches hold
}

// DiskFull is the number of bytes that a host's disk must have free for documents and needs to be written.
const DiskFull = 16 << 20

// ReceivedReport is the last report of a host as a provider keeps it.
type ReceivedReport struct {
	Received Time            `json:"received"` // by the provider's clock
	Sequence int64           `json:"sequence"`
	Report   json.RawMessage `json:"report"` // a HostReport, perhaps of a newer release

	// Rotate are the rotations of needs' secrets that an operator ordered and the host has
	// not reported yet, by need; 0 for the one after that of its next report.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// Decode reads the report. What a newer release has beside is left out.
func (r ReceivedReport) Decode() (h HostReport, err error) {
	err = json.Unmarshal(r.Report, &h)
	return h, err
}
