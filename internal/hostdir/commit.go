package hostdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
)

// Commit is a change of the documents in force, or of the whole installation, that is undone
// automatically at its deadline unless an operator or activation confirms it.
type Commit struct {
	ID        string              `json:"id"`
	Documents []document.Reported `json:"documents"` // documents that it puts in force
	Before    []document.Reported `json:"before"`    // documents that are restored when it is undone

	// Generation is the generation of Before, below Layout.Documents; zero without documents.
	Generation int `json:"generation"`

	// System is the change of the installation; nil if only documents change.
	System *System `json:"system,omitempty"`

	// Unattended means that activation put the documents in force. It confirms them once a provider
	// answers over a new connection.
	Unattended bool `json:"unattended,omitempty"`

	// Answered is the time at which a provider answered under Before, after an unattended commit
	// was undone. It shows that the commit had cut the host off. It is zero until then.
	Answered unixtime.Time `json:"answered,omitzero"`

	Begun    unixtime.Time `json:"begun"`
	Deadline unixtime.Time `json:"deadline"` // by the wall clock

	// Boot is the kernel's boot_id. Ends is the deadline in nanoseconds of CLOCK_BOOTTIME of that
	// boot. During that boot only Ends counts.
	Boot string `json:"boot"`
	Ends int64  `json:"ends"`
}

// System is a change of a host's installation, which is a NixOS system or a bundle.
type System struct {
	Link   string `json:"link"`   // symlink to the directory in force
	To     string `json:"to"`     // directory that the commit puts in force
	Before string `json:"before"` // directory that is restored when the commit is undone, "" for none

	// Profile is the symlink to Generation, for a NixOS system; "" if it does not change.
	Profile    string `json:"profile,omitempty"`
	Generation string `json:"generation,omitempty"`

	Undo    []string `json:"undo"`    // command that puts Before in force
	Closure string   `json:"closure"` // digest of the closure's documents that were accepted last
}

// InForce returns the directory in force, "" for none.
func (s System) InForce() string {
	path, err := filepath.EvalSymlinks(s.Link)
	if err != nil {
		return ""
	}
	return path
}

// String describes a commit and what it puts in force.
func (c Commit) String() string {
	text := "commit " + c.ID
	for _, d := range c.Documents {
		text += fmt.Sprintf(", %s %d", d.Kind, d.Serial)
	}
	if c.System != nil {
		text += ", " + c.System.To
	}
	return text
}

// Missing returns the condition that was not met before the deadline.
func (c Commit) Missing() string {
	if c.Unattended {
		return "no provider answered under it"
	}
	return "nobody confirmed it"
}

// CommitFile returns the file that exists while a commit is pending.
func (l Layout) CommitFile() string { return filepath.Join(string(l), "commit.json") }

// UndoneFile returns the file with the last commit that was undone.
func (l Layout) UndoneFile() string { return filepath.Join(string(l), "undone.json") }

// HoldFile returns the file that exists while an operator holds back documents from the network.
func (l Layout) HoldFile() string { return filepath.Join(string(l), "hold.json") }

// PendingCommit returns the commit that waits for confirmation, or nil.
func (l Layout) PendingCommit() (*Commit, error) { return readCommit(l.CommitFile()) }

// Undone returns the last commit that was undone. It returns nil if there was none, or if something
// newer is in force. The documents of an undone commit are not put in force again.
func (l Layout) Undone() (*Commit, error) {
	c, err := readCommit(l.UndoneFile())
	if c == nil || err != nil {
		return nil, err
	}
	if c.System != nil {
		if c.System.InForce() != c.System.Before {
			return nil, nil
		}
		return c, nil
	}
	for _, d := range c.Documents {
		e, err := document.ReadEnvelope(Current(l.Documents()), d.Kind)
		if err != nil || (document.Envelope{Serial: d.Serial, Digest: d.Digest}).Newer(e) {
			return c, nil
		}
	}
	return nil, nil
}

func readCommit(path string) (*Commit, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c := new(Commit)
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to keep the documents in force", path, err)
	}
	return c, nil
}
