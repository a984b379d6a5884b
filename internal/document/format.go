package document

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/florete/florete/internal/release"
)

// Format is the version of the format of documents and requests, such as "1.3". A release that adds
// attributes raises the minor number, and a release that removes attributes raises the major
// number. The format of a document is the highest format in which any of its attributes was added,
// as recorded in nix/schema. A document that uses no new attributes therefore does not change when
// the release changes.
type Format struct{ Major, Minor int }

// NewestFormat is the newest format of documents and requests that this release understands.
var NewestFormat = Format{1, 1}

// HeaderFormat is the name of the HTTP header in which hosts and providers tell each other the
// newest format that they understand. A message without the header stands for format 1.0.
const HeaderFormat = "Florete-Format"

var format = regexp.MustCompile(`^([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ParseFormat parses the text of a format, such as "1.3".
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

// MarshalText implements encoding.TextMarshaler. It returns a text such as "1.3".
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts a text such as "1.3".
func (f *Format) UnmarshalText(b []byte) (err error) {
	*f, err = ParseFormat(string(b))
	return err
}

// NewerFormatError is the error for a document or a request with a format that only a newer release
// understands. A host that receives such a document continues to use the version in force.
type NewerFormatError struct {
	What   string // "manifest of ursula, serial 17"
	Format Format
}

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("%s: has format %s, release %s understands formats up to %s: upgrade this host's programs",
		e.What, e.Format, release.Number, NewestFormat)
}
