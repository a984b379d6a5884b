package document

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/florete/florete/internal/release"
)

// Format is the version of the form that documents and requests have, as in "1.3". Each
// attribute of a document has the format that introduced it (nix/schema, "since"), and a
// document that of its newest attribute: one that uses nothing new stays byte for byte
// what it was. A major number changes when attributes go.
type Format struct{ Major, Minor int }

// NewestFormat is the newest one that this release understands.
var NewestFormat = Format{1, 0}

// HeaderFormat is the HTTP header in which hosts and providers announce the newest format
// that they understand; without it 1.0.
const HeaderFormat = "Florete-Format"

var format = regexp.MustCompile(`^([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ParseFormat reads "1.3".
func ParseFormat(text string) (Format, error) {
	part := format.FindStringSubmatch(text)
	if part == nil {
		return Format{}, fmt.Errorf("format %.20q: want two numbers such as %q", text, NewestFormat)
	}
	major, err := strconv.Atoi(part[1])
	minor, err2 := strconv.Atoi(part[2])
	return Format{major, minor}, errors.Join(err, err2)
}

func (f Format) String() string { return fmt.Sprintf("%d.%d", f.Major, f.Minor) }

// Newer reports whether f came after o.
func (f Format) Newer(o Format) bool {
	return f.Major > o.Major || f.Major == o.Major && f.Minor > o.Minor
}

// MarshalText writes "1.3".
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads "1.3".
func (f *Format) UnmarshalText(b []byte) (err error) {
	*f, err = ParseFormat(string(b))
	return err
}

// NewerFormatError is that of what only a newer release understands. Whoever has it keeps
// what is in force.
type NewerFormatError struct {
	What   string // "manifest of ursula, serial 17"
	Format Format
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("%s: has format %s, release %s understands formats up to %s: upgrade this host's programs",
		e.What, e.Format, release.Number, NewestFormat)
}
