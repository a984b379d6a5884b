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

// Commit is a change of the documents in force, or of the whole installation, that goes back
// by itself at its deadline, unless it is confirmed: by an operator, or by activation.
type Commit struct {
	ID        string              `json:"id"`
	Documents []document.Reported `json:"documents"` // that it puts in force
	Before    []document.Reported `json:"before"`    // that it goes back to

	// Generation is that of Before, below Layout.Documents; zero without documents.
	Generation int `json:"generation"`

	// System is what changes besides: nil where only documents do.
	System *System `json:"system,omitempty"`

	// Unattended is that activation put the documents in force, and confirms them once a
	// provider answers over a connection made since.
	Unattended bool `json:"unattended,omitempty"`

	// Answered is when a provider answered under Before, after an unattended commit went
	// back: that had cut the host off. It is zero until then.
	Answered unixtime.Time `json:"answered,omitzero"`

	Begun    unixtime.Time `json:"begun"`
	Deadline unixtime.Time `json:"deadline"` // by the wall clock

	// Boot is the kernel's boot_id, Ends the deadline in nanoseconds of CLOCK_BOOTTIME of
	// that boot: while it lasts, they alone count.
	Boot string `json:"boot"`
	Ends int64  `json:"ends"`
}

// System is the installation of a host, a NixOS system or a bundle, that a commit changes.
type System struct {
	Link   string `json:"link"`   // symlink to what is in force
	To     string `json:"to"`     // directory that the commit puts in force
	Before string `json:"before"` // that it goes back to, "" for none

	// Profile is the symlink to Generation of a NixOS system, "" where it does not change.
	Profile    string `json:"profile,omitempty"`
	Generation string `json:"generation,omitempty"`

	Undo    []string `json:"undo"`    // command that puts Before in force
	Closure string   `json:"closure"` // digest of the closure's documents that were accepted last
}

// InForce is the directory of what is in force, "" for none.
func (s System) InForce() string {
	path, err := filepath.EvalSymlinks(s.Link)
	if err != nil {
		return ""
	}
	return path
}

// String names a commit and what it puts in force.
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

// Missing is what did not come in time, when it went back.
func (c Commit) Missing() string {
	if c.Unattended {
		return "no provider answered under it"
	}
	return "nobody confirmed it"
}

// CommitFile is there while a commit is pending.
func (l Layout) CommitFile() string { return filepath.Join(string(l), "commit.json") }

// UndoneFile is the commit that went back last.
func (l Layout) UndoneFile() string { return filepath.Join(string(l), "undone.json") }

// HoldFile is there while an operator has documents from the network wait.
func (l Layout) HoldFile() string { return filepath.Join(string(l), "hold.json") }

// PendingCommit is the commit that goes back unless it is confirmed, nil without one.
func (l Layout) PendingCommit() (*Commit, error) { return readCommit(l.CommitFile()) }

// Undone is the commit that went back last, nil where there was none or what is in force is
// newer: documents that it brought are not put in force again.
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
