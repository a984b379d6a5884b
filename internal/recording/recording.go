// Package recording is the file format of recorded SSH sessions.
//
// A recording is an asciicast file of version 2
// (https://docs.asciinema.org/manual/asciicast/v2/), cut into pieces. Each piece is compressed with
// gzip, and sealed with age in ASCII armor. The armored pieces follow each other in the file. So a
// session that is under way can be sealed as it goes: whatever is on disk can be read, even if the
// host loses power in the middle of a piece, and the host keeps no key.
package recording

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"time"
	"unicode/utf8"

	"filippo.io/age"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/spiffe"
)

// Suffix is the end of the name of a recording's file.
const Suffix = ".cast.age"

// Header is the first line of a recording, in the form of asciicast.
type Header struct {
	Version   int               `json:"version"` // always 2
	Width     int               `json:"width"`   // columns of the terminal
	Height    int               `json:"height"`  // rows of the terminal
	Timestamp int64             `json:"timestamp"`
	Command   string            `json:"command,omitempty"` // empty for a login shell
	Title     string            `json:"title"`
	Env       map[string]string `json:"env,omitempty"` // TERM
	Session   Session           `json:"florete"`
}

// Session says whose session a recording contains. Programs that play asciicast files ignore it.
type Session struct {
	Service spiffe.ID `json:"service"`
	Caller  spiffe.ID `json:"caller"`
	Account string    `json:"account"` // account on the host

	// Terminal is true if the session has a terminal. Otherwise the recording contains only the
	// first MaxPlain bytes that the command wrote.
	Terminal bool `json:"terminal"`
}

// MaxPlain is the number of bytes that are recorded of a command without a terminal. Such a command
// may be one end of a file transfer.
const MaxPlain = 1 << 20

// The size of a terminal for a session without one, or with a size that cannot be. Other programs
// cannot play more than maxSide columns or rows.
const (
	defaultWidth, defaultHeight = 80, 24
	maxSide                     = 1000
)

// Codes of events in asciicast. Players of version 2 ignore exit, which is of version 3.
const (
	output = "o"
	resize = "r"
	exit   = "x"
)

// MaxPending is the number of bytes of events after which a piece should be sealed without waiting.
const MaxPending = 256 << 10

// maxPiece is the maximum number of bytes of a piece before it is compressed. An event may exceed
// MaxPending by one read of a terminal, which JSON may make six times as long.
const maxPiece = 16 << 20

// Writer writes a recording. Events are in memory until Flush. A Writer must not be used by several
// goroutines at once.
type Writer struct {
	file   *os.File
	to     []age.Recipient
	begun  time.Time
	raw    bool         // whether the output goes to a terminal as it is
	plain  bytes.Buffer // events that are not sealed yet
	rest   []byte       // beginning of a character that the last output ended with
	size   int64
	digest hash.Hash
}

// NewWriter begins a recording for the recipients in an empty file, and writes its header to disk.
// It sets the fields of the header that depend on the format.
func NewWriter(file *os.File, to []age.Recipient, h Header, now time.Time) (*Writer, error) {
	w := &Writer{file: file, to: to, begun: now, raw: h.Session.Terminal, digest: sha256.New()}
	h.Version, h.Timestamp = 2, now.Unix()
	h.Width, h.Height = side(h.Width, defaultWidth), side(h.Height, defaultHeight)
	w.line(h)
	return w, w.Flush()
}

func side(n, without int) int {
	if n <= 0 {
		return without
	}
	return min(n, maxSide)
}

// Output adds bytes that the session wrote at the time now. Bytes that are no UTF-8 are replaced. In
// a session without a terminal, a newline becomes a carriage return and a newline, as on the terminal
// of whoever called.
func (w *Writer) Output(now time.Time, p []byte) {
	if !w.raw {
		p = bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
	}
	p = append(w.rest, p...)
	whole := len(p)
	// A character may be divided between two reads.
	for back := 1; back <= min(utf8.UTFMax-1, len(p)); back++ {
		if at := len(p) - back; utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				whole = at
			}
			break
		}
	}
	w.rest = bytes.Clone(p[whole:])
	if whole > 0 {
		w.event(now, output, string(p[:whole]))
	}
}

// Resize adds a new size of the terminal.
func (w *Writer) Resize(now time.Time, width, height int) {
	w.event(now, resize, fmt.Sprintf("%dx%d", side(width, defaultWidth), side(height, defaultHeight)))
}

// Exit adds the end of the session with its exit status. Nothing may be added afterwards.
func (w *Writer) Exit(now time.Time, status int) {
	if len(w.rest) > 0 {
		w.event(now, output, string(w.rest))
	}
	w.event(now, exit, fmt.Sprint(status))
}

func (w *Writer) event(now time.Time, code, data string) {
	at := max(now.Sub(w.begun), 0).Round(time.Microsecond).Seconds()
	w.line([]any{at, code, data})
}

func (w *Writer) line(v any) {
	b, err := json.Marshal(v)
	if err != nil { // impossible: no type above has a value without JSON
		panic(err)
	}
	w.plain.Write(append(b, '\n'))
}

// Pending returns the number of bytes of events that are not sealed yet.
func (w *Writer) Pending() int { return w.plain.Len() }

// Flush seals the events since the last Flush as one piece, and writes it to disk. After an error,
// the recording must be ended.
func (w *Writer) Flush() error {
	if w.plain.Len() == 0 {
		return nil
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(w.plain.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	piece, err := agefile.Seal(packed.Bytes(), w.to)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(piece); err != nil {
		return err
	}
	w.plain.Reset()
	w.size += int64(len(piece))
	w.digest.Write(piece)
	return w.file.Sync()
}

// Written returns the number of bytes in the file, and their SHA-256 digest in hexadecimal.
func (w *Writer) Written() (size int64, digest string) {
	return w.size, hex.EncodeToString(w.digest.Sum(nil))
}
