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

// Change is a change on a host that takes effect for a limited time. It replaces the documents in
// force or the whole installation. If neither an operator nor activation confirms it before its
// deadline, the host undoes it.
type Change struct {
	ID        string              `json:"id"`
	Documents []document.Reported `json:"documents"` // documents that the change puts in force
	Before    []document.Reported `json:"before"`    // documents that are restored when the change is undone

	// Generation is the number of the directory below Layout.Documents that contains the documents
	// in the field Before. It is zero if there were no documents.
	Generation int `json:"generation"`

	// System is the change of the installation. It is nil if only the documents change.
	System *System `json:"system,omitempty"`

	// Unattended is true if activation put the documents in force without an operator. Activation
	// confirms such a change when a provider answers over a new connection.
	Unattended bool `json:"unattended,omitempty"`

	// Answered is the time at which a provider first answered after an unattended change was
	// undone. It is zero until then. If the provider answers once the documents in the field Before
	// are in force again, the change had cut the host off.
	Answered unixtime.Time `json:"answered,omitzero"`

	Begun    unixtime.Time `json:"begun"`
	Deadline unixtime.Time `json:"deadline"` // by the wall clock

	// Boot is the boot_id of the kernel when the change was made. Ends is the deadline in
	// nanoseconds of CLOCK_BOOTTIME. Until the host boots again, Ends applies instead of Deadline.
	Boot string `json:"boot"`
	Ends int64  `json:"ends"`
}

// System describes how a change alters the installed software, which is a NixOS system or a
// bundle: where the new and the old software are, and how the old one is restored.
type System struct {
	Link   string `json:"link"`   // symlink to the directory in force
	To     string `json:"to"`     // directory that the change puts in force
	Before string `json:"before"` // directory that is restored when the change is undone, "" for none

	// Profile is the path of the symbolic link that leads to Generation on a NixOS system. It is ""
	// if the link does not change.
	Profile    string `json:"profile,omitempty"`
	Generation string `json:"generation,omitempty"`

	Undo    []string `json:"undo"`    // command that puts Before in force
	Closure string   `json:"closure"` // digest of the closure's documents that were accepted last
}

// InForce returns the directory of the present installation, to which Link points. It returns "" if
// there is none.
func (s System) InForce() string {
	path, err := filepath.EvalSymlinks(s.Link)
	if err != nil {
		return ""
	}
	return path
}

// String describes the change for people, with the version that it puts in force.
func (c Change) String() string {
	text := "change " + c.ID
	for _, d := range c.Documents {
		text += fmt.Sprintf(", %s %d", d.Kind, d.Serial)
	}
	if c.System != nil {
		text += ", " + c.System.To
	}
	return text
}

// Missing returns the reason why a change was not confirmed before its deadline, as text for
// people, such as "nobody confirmed it".
func (c Change) Missing() string {
	if c.Unattended {
		return "no provider answered under it"
	}
	return "nobody confirmed it"
}

// ChangeFile returns the path of the file with the pending change. The file exists while a change
// waits for its confirmation.
func (l Layout) ChangeFile() string { return filepath.Join(string(l), "change.json") }

// UndoneFile returns the path of the file with the last change that was undone.
func (l Layout) UndoneFile() string { return filepath.Join(string(l), "undone.json") }

// HoldFile returns the path of the file with which an operator suspends documents from the network
// until a time that the file contains.
func (l Layout) HoldFile() string { return filepath.Join(string(l), "hold.json") }

// PendingChange returns the change that waits for its confirmation, or nil if there is none.
func (l Layout) PendingChange() (*Change, error) { return readCommit(l.ChangeFile()) }

// Undone returns the last change that was undone. The host does not put its documents in force
// again. Undone returns nil if no change was undone, or if newer documents or another installation
// have come into force since.
func (l Layout) Undone() (*Change, error) {
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

func readCommit(path string) (*Change, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c := new(Change)
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to keep the documents in force", path, err)
	}
	return c, nil
}
