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
}

// ReportedDocument is a document in force.
type ReportedDocument struct {
	Kind   string `json:"kind"`
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// ReportedNeed is how a need stands.
type ReportedNeed struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	State   NeedStatus `json:"state"`
	Since   Time       `json:"since"`
	Expires Time       `json:"expires"`
	Error   *NeedError `json:"error,omitempty"`
}

// ReportedForwarder is what the forwarder counts since it was started.
type ReportedForwarder struct {
	State       string           `json:"state"`
	Connections int64            `json:"connections"` // live
	Refusals    map[string]int64 `json:"refusals"`    // by reason
	Problems    []string         `json:"problems"`    // what could not be put in force
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
}

// Capacity is in bytes.
type Capacity struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"` // without what caches hold
}

// ReceivedReport is the last report of a host as a provider keeps it.
type ReceivedReport struct {
	Received Time            `json:"received"` // by the provider's clock
	Sequence int64           `json:"sequence"`
	Report   json.RawMessage `json:"report"` // a HostReport, perhaps of a newer release
}

// Decode reads the report. What a newer release has beside is left out.
func (r ReceivedReport) Decode() (h HostReport, err error) {
	err = json.Unmarshal(r.Report, &h)
	return h, err
}
