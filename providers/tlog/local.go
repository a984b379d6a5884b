package tlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/providers/store"
)

// Head is the newest checkpoint of a log, which is a signed hash of all its rows, with the key that
// verifies the signature.
type Head struct {
	Key        string    `json:"key"` // key that verifies the checkpoint
	Checkpoint string    `json:"checkpoint"`
	Kept       time.Time `json:"kept"`            // rows from before this time may have been archived
	Fault      string    `json:"fault,omitempty"` // difference that the process found between its rows and the log
}

// Logged is an entry of the log together with its audit row. If neither the state store nor the
// archive contains the row any more, Row is nil.
type Logged struct {
	Leaf     string  `json:"leaf"`
	Row      *string `json:"row,omitempty"`
	Archived bool    `json:"archived,omitempty"` // only the archive contains the row
}

// Proof proves that the log with this checkpoint contains an audit row.
type Proof struct {
	Head
	Logged
	Index  uint64   `json:"index"`
	Hashes [][]byte `json:"hashes,omitempty"`
}

// Source is an interface for reading a tamper-evident log and its audit rows. The log is on this
// host or on another one.
type Source interface {
	Head(ctx context.Context) (Head, error)

	// Rows returns rows of the log, starting at the index given by from. The argument size is the
	// number of rows that the log has or had. At the end of the log there are no rows.
	Rows(ctx context.Context, from, size uint64) ([]Logged, error)

	// Proof returns the proof that the log contains an audit row. The argument row is the key of
	// the row, or a time. A time stands for the first row with that time.
	Proof(ctx context.Context, row string) (Proof, error)
}

// PageSize is the maximum number of audit rows that Rows returns.
const PageSize = 200

// Local reads a tamper-evident log from files on this host. It implements Source.
type Local struct {
	Reader
	Store  store.Store
	Prefix string
	Kept   func(now time.Time) time.Time
	Fault  func() string // nil where none is known
	shelf  *shelf
}

// NewLocal returns a Source for the log in a directory. It reads the audit rows from a state store,
// under keys with the given prefix, and from the archive in the directory. The function kept
// returns the time since which rows must be in the store. No process needs to be appending to the
// log.
func NewLocal(dir string, rows store.Store, prefix string, kept func(now time.Time) time.Time) Local {
	return Local{Reader: Reader{dir}, Store: rows, Prefix: prefix, Kept: kept, shelf: newShelf(dir)}
}

// Local returns a Source for reading the log.
func (l *Log) Local() Local { return Local{l.Reader, l.Store, l.Prefix, l.Kept, l.Fault, l.shelf} }

// Head returns the newest checkpoint of the log.
func (l Local) Head(ctx context.Context) (Head, error) {
	key, c, err := l.Checkpoint(ctx)
	h := Head{Key: key, Checkpoint: c.Text, Kept: l.Kept(time.Now()).UTC()}
	if l.Fault != nil {
		h.Fault = l.Fault()
	}
	return h, err
}

// Rows returns at most PageSize rows of the log, beginning at the given index. The log is read as
// it was when it had the given size, in rows.
func (l Local) Rows(ctx context.Context, from, size uint64) (rows []Logged, err error) {
	for leaf, err := range l.Leaves(ctx, from, size) {
		if err != nil {
			return nil, err
		}
		r, err := l.row(ctx, leaf)
		if err != nil {
			return nil, err
		}
		if rows = append(rows, r); len(rows) == PageSize {
			break
		}
	}
	return rows, nil
}

func (l Local) row(ctx context.Context, leaf Leaf) (Logged, error) {
	r := Logged{Leaf: leaf.String()}
	e, err := l.Store.Get(ctx, leaf.Key)
	if errors.Is(err, store.ErrNotFound) {
		r.Row, err = l.shelf.row(leaf)
		r.Archived = r.Row != nil
		return r, err
	}
	text := string(e.Value)
	r.Row = &text
	return r, err
}

// ErrNoRow is the error of a request for an audit row that the log does not contain.
var ErrNoRow = errors.New("no such row in the audit log: want the time of one, as --json prints it, or its key")

// Proof returns the proof that the log contains a row.
func (l Local) Proof(ctx context.Context, row string) (p Proof, err error) {
	key := row
	if t, err := time.Parse(time.RFC3339Nano, row); err == nil {
		key = keyAt(l.Prefix, t) + "-"
	}
	if !strings.HasPrefix(key, l.Prefix) {
		return p, fmt.Errorf("%.100q: %w", row, ErrNoRow)
	}
	if p.Head, err = l.Head(ctx); err != nil {
		return p, err
	}
	_, c, err := l.Checkpoint(ctx)
	if err != nil {
		return p, err
	}
	p.Head.Checkpoint = c.Text
	for leaf, err := range l.Leaves(ctx, 0, c.Size) {
		if err != nil {
			return p, err
		}
		if strings.HasPrefix(leaf.Key, key) {
			if p.Logged, err = l.row(ctx, leaf); err != nil {
				return p, err
			}
			p.Hashes, err = l.Inclusion(ctx, p.Index, c.Size)
			return p, err
		}
		p.Index++
	}
	return p, fmt.Errorf("%.100q: %w", row, ErrNoRow)
}
