package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
)

// Head is the first line of a stream, which is the format in which an operator sends documents to a
// provider. One line for each host follows, sorted by name. All documents belong to the cluster in
// Head and have its serial. For a rollout, two more streams follow: the policies of provider hosts
// during the rollout, and the documents with which hosts return to the former version.
//
//	{"cluster":"demo","serial":1784011430,"hosts":5}
//	{"host":"drhorrible","documents":[{"envelope":"…","body":"…","signature":"…"}, …]}
type Head struct {
	Cluster string `json:"cluster"`
	Serial  int64  `json:"serial"`
	Hosts   int    `json:"hosts"`

	// Follow is the number of further streams that come after this stream.
	Follow int `json:"follow,omitempty"`
}

// StreamHost is one line of a stream. It contains the documents of one host, byte for byte.
type StreamHost struct {
	Name      string                   `json:"host"`
	Documents []hostapi.SignedDocument `json:"documents"`
}

// maxFollow is the largest number of streams that can follow a stream.
const maxFollow = 2

// wantStream is the end of the error for a stream that cannot be read.
const wantStream = "want what florctl publish of the same release writes, whole"

// Encode writes the tree as a stream that NewStreamReader can read. The further trees are written
// after it as further streams.
func (t SignedTree) Encode(w io.Writer, follow ...SignedTree) error {
	head := t.Head()
	head.Follow = len(follow)
	if err := t.encode(w, head); err != nil || len(follow) == 0 {
		return err
	}
	return follow[0].Encode(w, follow[1:]...)
}

func (t SignedTree) encode(w io.Writer, head Head) error {
	return EncodeStream(w, head, func(yield func(StreamHost, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(t)) {
			h := StreamHost{Name: name}
			for _, d := range t[name] {
				envelope, body, signature := d.Bytes()
				h.Documents = append(h.Documents, hostapi.SignedDocument{Envelope: string(envelope), Body: string(body), Signature: signature})
			}
			if !yield(h, nil) {
				return
			}
		}
	})
}

// EncodeStream writes one stream: its first line, head, and then one line for each host that the
// sequence yields. The hosts must be sorted by name, and their number must be head.Hosts. At the
// first error in the sequence, EncodeStream stops and returns that error.
func EncodeStream(w io.Writer, head Head, hosts iter.Seq2[StreamHost, error]) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(head); err != nil {
		return err
	}
	for h, err := range hosts {
		if err == nil {
			err = lines.Encode(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A StreamReader reads a stream of documents, one host after the other.
type StreamReader struct {
	Head
	lines *bufio.Reader
}

// NewStreamReader reads the first line of r, which begins the first stream. The returned
// StreamReader yields the hosts of that stream.
func NewStreamReader(r io.Reader) (*StreamReader, error) {
	return readHead(bufio.NewReaderSize(r, 1<<16))
}

func readHead(lines *bufio.Reader) (*StreamReader, error) {
	s := &StreamReader{lines: lines}
	line, err := s.line()
	if err == nil {
		err = strictjson.Decode(line, &s.Head)
	}
	switch {
	case err != nil:
	case s.Hosts < 1:
		err = errors.New("no host in it")
	case s.Follow < 0 || s.Follow > maxFollow:
		err = fmt.Errorf("%d streams follow", s.Follow)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, wantStream)
	}
	return s, nil
}

// Next returns a StreamReader for the stream after this one, or nil after the last. Call it after
// All has yielded all hosts.
func (r *StreamReader) Next() (*StreamReader, error) {
	if r.Follow == 0 {
		return nil, nil
	}
	next, err := readHead(r.lines)
	if err == nil && next.Follow != r.Follow-1 {
		err = fmt.Errorf("%d streams follow, want %d: %s", next.Follow, r.Follow-1, wantStream)
	}
	return next, err
}

func (r *StreamReader) line() ([]byte, error) {
	line, err := r.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return line, err
}

// All yields the hosts of the stream with their documents, and ends at the first error. It is an
// error if a document has too few valid signatures by the given keys, if the stream is cut short,
// or if other data follows the last stream.
func (r *StreamReader) All(by signers.Set) iter.Seq2[StreamHost, error] {
	return func(yield func(StreamHost, error) bool) {
		before := ""
		for n := range r.Hosts {
			h, err := r.next(before, by)
			if err != nil {
				yield(h, fmt.Errorf("host %d of %d: %w", n+1, r.Hosts, err))
				return
			}
			if !yield(h, nil) {
				return
			}
			before = h.Name
		}
		if r.Follow > 0 {
			return
		}
		if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
			yield(StreamHost{}, fmt.Errorf("more follows the %d hosts: %s", r.Hosts, wantStream))
		}
	}
}

func (r *StreamReader) next(before string, by signers.Set) (h StreamHost, err error) {
	line, err := r.line()
	if err == nil {
		err = strictjson.Decode(line, &h)
	}
	switch {
	case err != nil:
		return h, fmt.Errorf("%w: %s", err, wantStream)
	case h.Name != filepath.Base(h.Name):
		return h, fmt.Errorf("%q: not a name", h.Name)
	case h.Name <= before:
		return h, fmt.Errorf("%q comes after %q, want names in order: %s", h.Name, before, wantStream)
	case len(h.Documents) == 0:
		return h, fmt.Errorf("%q: has no documents: %s", h.Name, wantStream)
	}
	kinds := map[string]bool{}
	for _, raw := range h.Documents {
		d, err := document.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
		// Hosts may be ahead of their provider: its own documents alone are for it.
		if newer := new(document.NewerFormatError); err == nil || errors.As(err, &newer) {
			err = d.Verify(by)
		}
		e := d.Envelope
		switch {
		case err != nil:
			return h, fmt.Errorf("%q: %w", h.Name, err)
		case e.Host != h.Name:
			return h, fmt.Errorf("%q: the %s is of host %q", h.Name, e.Kind, e.Host)
		case e.Cluster != r.Cluster || e.Serial != r.Serial:
			return h, fmt.Errorf("%q: the %s is of cluster %s and serial %d, the stream of %s and %d", h.Name, e.Kind, e.Cluster, e.Serial, r.Cluster, r.Serial)
		case kinds[e.Kind]:
			return h, fmt.Errorf("%q: two documents of kind %s", h.Name, e.Kind)
		}
		kinds[e.Kind] = true
	}
	return h, nil
}
