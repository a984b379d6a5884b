// Package backup writes and restores backups of a provider host: the state that the host must not
// lose, as one stream of JSON lines:
//
//	{"format":"florete.state/v1","trustDomain":"demo.flor","host":"forge","time":1784011430}
//	{"kind":"cert","revision":1204}
//	{"key":"audit/…","value":"eyJ0aW1lIjoi…"}
//	{"kind":"oidc","revision":311}
//	{"key":"oidc/registration/wiki.demo.flor.rete","value":"…"}
//	{"entries":2,"digest":"sha256-…"}
//
// The first line is the header. The last line has the number of entries, and the digest of all
// bytes before it. Between them is a section for each kind of need. The keys of a section are
// sorted and belong to one revision of the state store. Values are in base64.
//
// A backup contains only the keys that server.State declares as remembered. It contains no secrets,
// not even sealed ones, and no records that expire. A restore therefore brings none of these back.
package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/store"
)

const format = "florete.state/v1"

// maxLine is the largest length of a line, in bytes. It is larger than one transaction of a state
// store.
const maxLine = 4 << 20

// Header is the first line of a backup. It describes where and when the backup was made.
type Header struct {
	Format      string        `json:"format"`
	TrustDomain string        `json:"trustDomain"`
	Host        string        `json:"host"`
	Time        unixtime.Time `json:"time"`
}

// A Section is a line of a backup. The lines after it contain the keys and values of one kind of
// need.
type Section struct {
	Kind     string `json:"kind"`
	Revision int64  `json:"revision"` // revision of the kind's state store
}

type entry struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type end struct {
	Entries int    `json:"entries"`
	Digest  string `json:"digest"`
}

// line is any line of a backup after the header.
type line struct {
	Section
	entry
	end
}

// A Source is a state store from which Write copies keys into a backup. It contains the state of
// one kind of need. Keys for which Remembers returns false are left out.
type Source struct {
	Kind      string
	Store     store.Store
	Remembers func(key string) bool
}

// Write writes a backup of the sources, in the given order, and returns the number of keys in the
// backup. Write sets the field Format of the header.
func Write(ctx context.Context, to io.Writer, h Header, sources []Source) (int, error) {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(to, 64<<10)
	out := json.NewEncoder(io.MultiWriter(buffered, sum))
	out.SetEscapeHTML(false)
	h.Format = format
	if err := out.Encode(h); err != nil {
		return 0, err
	}
	n := 0
	for _, from := range sources {
		err := from.Store.Snapshot(ctx, "", func(revision int64, entries iter.Seq2[store.Entry, error]) error {
			if err := out.Encode(Section{from.Kind, revision}); err != nil {
				return err
			}
			for e, err := range entries {
				if err != nil {
					return err
				}
				if !from.Remembers(e.Key) {
					continue
				}
				if !utf8.ValidString(e.Key) {
					return fmt.Errorf("key %q: no text", e.Key)
				}
				if err := out.Encode(entry{e.Key, e.Value}); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			return n, fmt.Errorf("state of kind %q: %w", from.Kind, err)
		}
	}
	if err := out.Encode(end{n, digest(sum)}); err != nil {
		return n, err
	}
	return n, buffered.Flush()
}

func digest(h hash.Hash) string {
	return "sha256-" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// A Backup is a backup file that Read has found to be complete.
type Backup struct {
	Header
	Sections []Section
	Digest   string // digest of the content, which identifies the backup
	Entries  int

	from   io.ReadSeeker
	begins []int64 // offset of the first key of each section
}

// Read checks that a backup is complete and well-formed, by reading it to its end. The method Keys
// of the result reads from the same source again, so keep the source open and unchanged until then.
func Read(from io.ReadSeeker) (*Backup, error) {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	b := &Backup{from: from}
	r := newReader(from)
	first, err := r.next()
	if err == nil {
		err = strictjson.Decode(first, &b.Header)
	}
	switch {
	case err == nil && b.Format != format, errors.As(err, new(*json.SyntaxError)), errors.Is(err, io.ErrUnexpectedEOF) && r.offset == 0:
		return nil, fmt.Errorf("no backup of a provider's state: want what florctl state backup writes, of format %s", format)
	case err != nil:
		return nil, fmt.Errorf("header: %w", err)
	}
	for before := ""; ; {
		b.Digest = digest(r.sum)
		l, err := r.line()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.number, err)
		}
		switch {
		case l.Kind != "" && l.Key == "" && l.Digest == "" && !b.has(l.Kind):
			b.Sections, b.begins, before = append(b.Sections, l.Section), append(b.begins, r.offset), ""
		case l.Key > before && len(b.Sections) > 0 && l.Kind == "" && l.Digest == "":
			before = l.Key
			b.Entries++
		case l.end != end{}:
			if l.end != (end{b.Entries, b.Digest}) {
				return nil, fmt.Errorf("edited or damaged: %d entries of digest %s, want %d of %s: take another backup", b.Entries, b.Digest, l.Entries, l.Digest)
			}
			if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) || r.more {
				return nil, fmt.Errorf("line %d: comes after the end: take another backup", r.number)
			}
			return b, nil
		default:
			return nil, fmt.Errorf("line %d: edited or damaged: take another backup", r.number)
		}
	}
}

func (b *Backup) has(kind string) bool {
	return slices.ContainsFunc(b.Sections, func(s Section) bool { return s.Kind == kind })
}

// Keys yields the entries in the section of a kind.
func (b *Backup) Keys(kind string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		i := slices.IndexFunc(b.Sections, func(s Section) bool { return s.Kind == kind })
		if i < 0 {
			return
		}
		if _, err := b.from.Seek(b.begins[i], io.SeekStart); err != nil {
			yield(store.Entry{}, err)
			return
		}
		for r := newReader(b.from); ; {
			l, err := r.line()
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			// After the last entry comes another section, or the end.
			if l.Key == "" || !yield(store.Entry{Key: l.Key, Value: l.Value}, nil) {
				return
			}
		}
	}
}

// reader reads the lines of a backup. It computes the digest of all lines except the last.
type reader struct {
	lines  *bufio.Reader
	sum    hash.Hash
	offset int64
	number int  // number of the current line
	more   bool // bytes follow the last complete line
}

func newReader(r io.Reader) *reader {
	return &reader{lines: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
}

// line returns the next line after the header.
func (r *reader) line() (l line, err error) {
	text, err := r.next()
	if err != nil {
		return l, err
	}
	if err := strictjson.Decode(text, &l); err != nil {
		return l, fmt.Errorf("edited or damaged: %w", err)
	}
	return l, nil
}

// next returns the text of the next line. If there is no further line, the error is
// io.ErrUnexpectedEOF.
func (r *reader) next() ([]byte, error) {
	r.number++
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			r.offset += int64(len(line))
			r.sum.Write(line)
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, io.EOF):
			r.more = len(line) > 0
			return nil, fmt.Errorf("it is cut off: take another backup: %w", io.ErrUnexpectedEOF)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
	}
}
