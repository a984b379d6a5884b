package hostdir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/unixtime"
)

// Witnessed is what a host knows of the audit log of one process of a provider.
type Witnessed struct {
	Provider string `json:"provider"` // host name
	Kind     string `json:"kind"`     // of need
	Key      string `json:"key"`      // of the log, in the form of a signed note's

	// Checkpoint is the newest that the host has seen and that extends all before, with how many
	// rows the log had then, and when that was.
	Checkpoint string        `json:"checkpoint"`
	Size       int64         `json:"size"`
	Seen       unixtime.Time `json:"seen"`

	// Fault is why the log is not what it was, or how it differs from the provider's rows, empty
	// where it is right.
	Fault string        `json:"fault,omitempty"`
	Since unixtime.Time `json:"since"` // of the fault

	// Refused is the checkpoint that does not extend Checkpoint, with the key that signed it.
	// While there is one, the fault stays.
	Refused    string `json:"refused,omitempty"`
	RefusedKey string `json:"refusedKey,omitempty"`

	// Withheld is since when the process returns no checkpoint although it answers; zero where
	// it returned one, or is down.
	Withheld unixtime.Time `json:"withheld,omitzero"`
}

// ReportedAudit is what is wrong with the audit log of a provider, as a host sees it.
type ReportedAudit struct {
	Provider string        `json:"provider"`
	Kind     string        `json:"kind"`
	Fault    string        `json:"fault"`
	Since    unixtime.Time `json:"since"`
}

// WitnessedFile is where activation keeps what it knows of providers' audit logs.
func (l Layout) WitnessedFile() string { return filepath.Join(string(l), "witnessed.json") }

// Witnessed is what is known of providers' audit logs.
func (l Layout) Witnessed() (all []Witnessed, err error) {
	b, err := os.ReadFile(l.WitnessedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(b, &all)
	return all, err
}

// AuditFaults are those of all logs that nobody accepted. What cannot be read has none.
func (l Layout) AuditFaults() (found []ReportedAudit) {
	all, _ := l.Witnessed()
	accepted := l.Accepted()
	for _, w := range all {
		if w.Fault != "" && !Accepts(accepted, w) {
			found = append(found, ReportedAudit{w.Provider, w.Kind, w.Fault, w.Since})
		}
	}
	return found
}

// AcceptedAudit is a person's word that what is wrong with an audit log is known: it is reported
// no more, and the log goes on from what the provider returned.
type AcceptedAudit struct {
	ReportedAudit
	At     unixtime.Time `json:"at"`
	By     string        `json:"by"`     // account on the host
	Reason string        `json:"reason"` // as that wrote it
}

// MaxAccepted is how many of those words a host keeps.
const MaxAccepted = 16

// WitnessFile is the file, among the requests to activation, that has it witness the audit logs
// of its providers at once. No need has its name.
const WitnessFile = "audit.witness"

// AcceptedFile is where such words are kept, the newest last.
func (l Layout) AcceptedFile() string { return filepath.Join(string(l), "accepted.json") }

// Accepted are those words. What cannot be read has none: the alarm is raised again.
func (l Layout) Accepted() (all []AcceptedAudit) {
	b, err := os.ReadFile(l.AcceptedFile())
	if err != nil || json.Unmarshal(b, &all) != nil {
		return nil
	}
	return all
}

// Accepts is whether a person accepted what is wrong with a log, as it is now.
func Accepts(all []AcceptedAudit, w Witnessed) bool {
	return slices.ContainsFunc(all, func(a AcceptedAudit) bool {
		return a.Provider == w.Provider && a.Kind == w.Kind && a.Fault == w.Fault && a.Since.Seconds() == w.Since.Seconds()
	})
}
