// Package replay plays a recorded SSH session in a browser of this machine. It decrypts the
// recording in memory, each time that the browser loads it.
package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/terminal"
)

// Recording is a recorded session in a file, with the keys that decrypt it.
type Recording struct {
	recording.Read
	SHA256 string // digest of the file, in hexadecimal
	Damage error  // names the first piece that cannot be read; nil if all can

	file       *os.File
	size       int64
	identities []age.Identity
}

// Open opens a recording, and reads it once. If a piece other than the first cannot be read, Open
// sets Damage, and the Recording consists of the pieces before it. If the file is no recording, or
// no identity decrypts it, Open returns an error. A recording that grows afterwards keeps the length
// that it has now. The caller must call Close.
func Open(path string, identities []age.Identity) (*Recording, error) {
	// A pipe would make os.Open wait, and could not be read twice.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file, want a recording (*%s)", path, recording.Suffix)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{file: file, identities: identities}
	if err := r.read(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *Recording) read() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	r.size = info.Size()
	digest := sha256.New()
	content := io.TeeReader(r.content(), digest)
	r.Read, err = recording.Open(content, r.identities, io.Discard)
	var piece *recording.PieceError
	var other *age.NoIdentityMatchError
	switch {
	case errors.As(err, &piece) && piece.Piece > 1:
		r.Damage = err
	case errors.As(err, &other):
		return fmt.Errorf("%w, want a key of record.recipients of the service, as they were when it was recorded", r.unopened())
	case err != nil:
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil { // what follows a damaged piece
		return err
	}
	r.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return nil
}

// unopened returns the error for a recording that is encrypted to others. It names the public keys of
// the identities, which a person can compare with the flake.
func (r *Recording) unopened() error {
	var keys []string
	for _, i := range r.identities {
		if i, ok := i.(*age.X25519Identity); ok {
			keys = append(keys, i.Recipient().String())
		}
	}
	if keys == nil {
		return errors.New("the identity does not open it")
	}
	return fmt.Errorf("not encrypted to %s", strings.Join(keys, ", "))
}

// content returns a reader of the file from its beginning.
func (r *Recording) content() io.Reader { return io.NewSectionReader(r.file, 0, r.size) }

// WriteCast writes the session to w as an asciicast file, as far as it can be read.
func (r *Recording) WriteCast(w io.Writer) error {
	_, err := recording.Open(r.content(), r.identities, w)
	if piece := (*recording.PieceError)(nil); r.Damage != nil && errors.As(err, &piece) {
		return nil
	}
	return err
}

// Close closes the file.
func (r *Recording) Close() error { return r.file.Close() }

// fact is a line of the description of a recording.
type fact struct{ Name, Value string }

func (r *Recording) facts() []fact {
	s := r.Session
	command := cmp.Or(r.Command, "none: a login shell")
	if !s.Terminal {
		command += fmt.Sprintf(" (without a terminal: at most %d MiB of its output are recorded)", recording.MaxPlain>>20)
	}
	return []fact{
		{"caller", s.Caller.ShortIn(s.Service.TrustDomain())},
		{"account", s.Account},
		{"service", s.Service.Short()},
		{"begin", time.Unix(r.Timestamp, 0).UTC().Format(time.RFC3339)},
		{"end", r.end()},
		{"command", command},
		{"SHA-256", r.SHA256},
	}
}

// end describes the last event that can be read.
func (r *Recording) end() string {
	switch {
	case r.Damage != nil:
		return "missing: " + r.Damage.Error()
	case r.Cut:
		return "missing: the last piece of the recording is incomplete"
	case !r.Ended:
		return "missing: the session goes on, or was cut off"
	}
	return "recorded"
}

// Print describes the recording on a terminal.
func (r *Recording) Print(w io.Writer) error {
	t := terminal.NewTable(w)
	for _, f := range r.facts() {
		t.Row(f.Name, f.Value)
	}
	return t.Flush()
}
