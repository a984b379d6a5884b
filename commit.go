package florete

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Commit is a change of the documents in force that goes back by itself at its deadline,
// unless an operator confirms it.
type Commit struct {
	ID        string             `json:"id"`
	Documents []ReportedDocument `json:"documents"` // that it puts in force
	Before    []ReportedDocument `json:"before"`    // that it goes back to

	// Generation is that of Before, below Layout.Documents.
	Generation int `json:"generation"`

	Begun    Time `json:"begun"`
	Deadline Time `json:"deadline"` // by the wall clock

	// Boot is the kernel's boot_id, Ends the deadline in nanoseconds of CLOCK_BOOTTIME of
	// that boot: while it lasts, they alone count.
	Boot string `json:"boot"`
	Ends int64  `json:"ends"`
}

// String names a commit and what it puts in force.
func (c Commit) String() string {
	text := "commit " + c.ID
	for _, d := range c.Documents {
		text += fmt.Sprintf(", %s %d", d.Kind, d.Serial)
	}
	return text
}

// CommitFile is there while a commit is pending.
func (l Layout) CommitFile() string { return filepath.Join(string(l), "commit.json") }

// UndoneFile is the commit that went back last.
func (l Layout) UndoneFile() string { return filepath.Join(string(l), "undone.json") }

// PendingCommit is the commit that goes back unless it is confirmed, nil without one.
func (l Layout) PendingCommit() (*Commit, error) { return readCommit(l.CommitFile()) }

// Undone is the commit that went back last, nil where there was none or documents in force
// are newer: what it brought is not put in force again.
func (l Layout) Undone() (*Commit, error) {
	c, err := readCommit(l.UndoneFile())
	if c == nil || err != nil {
		return nil, err
	}
	for _, d := range c.Documents {
		e, err := ReadEnvelope(Current(l.Documents()), d.Kind)
		if err != nil || (Envelope{Serial: d.Serial, Digest: d.Digest}).Newer(e) {
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
