package document

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/florete/florete/internal/release"
)

// Format is the version of the form of documents and requests, such as "1.3". A new minor number
// adds attributes; nix/schema records for each attribute the format since which it exists. A
// document has the highest format of the attributes in it, so a document without new attributes
// stays the same byte for byte. The major number changes when attributes are removed.
type Format struct{ Major, Minor int }

// NewestFormat is the newest format of documents and requests that this release understands.
var NewestFormat = Format{1, 1}

// HeaderFormat is the HTTP header in which hosts and providers announce the newest format that they
// understand. A missing header stands for format 1.0.
const HeaderFormat = "Florete-Format"

var format = regexp.MustCompile(`^([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ParseFormat parses a format such as "1.3".
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

// Newer reports whether the format f is newer than the format o.
func (f Format) Newer(o Format) bool {
	return f.Major > o.Major || f.Major == o.Major && f.Minor > o.Minor
}

// MarshalText implements encoding.TextMarshaler. The form is "1.3".
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Format) UnmarshalText(b []byte) (err error) {
	*f, err = ParseFormat(string(b))
	return err
}

// NewerFormatError is the error for a document or request that only a newer release understands. A
// reader of documents then keeps the version that is in force.
type NewerFormatError struct {
	What   string // "manifest of ursula, serial 17"
	Format Format
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("%s: has format %s, release %s understands formats up to %s: upgrade this host's programs",
		e.What, e.Format, release.Number, NewestFormat)
}
