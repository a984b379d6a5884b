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

// Witnessed is a host's record of the audit log that one provider process keeps. With it, the host
// detects if rows of the log are later changed or removed.
type Witnessed struct {
	Provider string `json:"provider"` // host name
	Kind     string `json:"kind"`     // kind of need
	Key      string `json:"key"`      // verifier key of the log, in the form used by signed notes

	// Checkpoint is the newest checkpoint of the log that extends all earlier checkpoints. Size is
	// the number of rows in it. Seen is the time at which the host received it.
	Checkpoint string        `json:"checkpoint"`
	Size       int64         `json:"size"`
	Seen       unixtime.Time `json:"seen"`

	// Fault describes how the log was found to be altered: why it does not extend the earlier
	// checkpoint, or how it differs from the provider's rows. It is empty if there is no fault.
	Fault string        `json:"fault,omitempty"`
	Since unixtime.Time `json:"since"` // beginning of the fault

	// Refused is a newer checkpoint that does not extend Checkpoint. RefusedKey is the key that
	// signed Refused. The fault lasts as long as these fields are set.
	Refused    string `json:"refused,omitempty"`
	RefusedKey string `json:"refusedKey,omitempty"`

	// Withheld is the time since when the provider process has answered requests without a
	// checkpoint. It is zero if the process returned a checkpoint or is down.
	Withheld unixtime.Time `json:"withheld,omitzero"`
}

// ReportedAudit is the part of a host's report that names a fault which the host has found in a
// provider's audit log, such as a removed row.
type ReportedAudit struct {
	Provider string        `json:"provider"`
	Kind     string        `json:"kind"`
	Fault    string        `json:"fault"`
	Since    unixtime.Time `json:"since"`
}

// WitnessedFile returns the path of the file with activation's records of the providers' audit
// logs.
func (l Layout) WitnessedFile() string { return filepath.Join(string(l), "witnessed.json") }

// Witnessed reads the host's records of all audit logs. It returns none if the file does not exist
// yet.
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

// AuditFaults returns the faults of audit logs that nobody has acknowledged. If the records cannot
// be read, it returns none.
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

// AcceptedAudit records that a person has acknowledged a fault of an audit log. The host then no
// longer reports the fault, and continues to check the log from the checkpoint that the provider
// returned.
type AcceptedAudit struct {
	ReportedAudit
	At     unixtime.Time `json:"at"`
	By     string        `json:"by"`     // account on the host
	Reason string        `json:"reason"` // reason given by that person
}

// MaxAccepted is the maximum number of acknowledged audit faults that a host keeps.
const MaxAccepted = 16

// WitnessFile is the name of the file with which a program requests an immediate check of the
// providers' audit logs. The program creates the file in the directory Instance.Refetch. No need
// can have this name.
const WitnessFile = "audit.witness"

// AcceptedFile returns the path of the file with the acknowledged faults of audit logs, the newest
// last.
func (l Layout) AcceptedFile() string { return filepath.Join(string(l), "accepted.json") }

// Accepted reads the acknowledged faults of audit logs. If the file cannot be read, it returns
// none, and the host raises the alarms again.
func (l Layout) Accepted() (all []AcceptedAudit) {
	b, err := os.ReadFile(l.AcceptedFile())
	if err != nil || json.Unmarshal(b, &all) != nil {
		return nil
	}
	return all
}

// Accepts reports whether a person has acknowledged the present fault of an audit log. It looks for
// that fault among the given acknowledgements.
func Accepts(all []AcceptedAudit, w Witnessed) bool {
	return slices.ContainsFunc(all, func(a AcceptedAudit) bool {
		return a.Provider == w.Provider && a.Kind == w.Kind && a.Fault == w.Fault && a.Since.Seconds() == w.Since.Seconds()
	})
}
