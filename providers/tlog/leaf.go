package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Leaf is the entry for one audit row in the tamper-evident log. It contains a hash of the row, but
// not the row itself.
type Leaf struct {
	Key      string // key of the row in the store
	Revision int64  // revision of the store; the log has all rows of earlier revisions
	Hash     [sha256.Size]byte
}

// NewLeaf returns the leaf for an audit row, given the row's key in the state store and the
// revision at which the row was stored.
func NewLeaf(key string, revision int64, row []byte) Leaf {
	return Leaf{key, revision, sha256.Sum256(row)}
}

// Of reports whether the hash in the leaf is that of the given row. If it is not, the row was
// changed, because rows are looked up by the key in the leaf.
func (l Leaf) Of(row []byte) bool { return l.Hash == sha256.Sum256(row) }

// String returns the text of the leaf in the log: "<key> <revision> <base64 of the hash>".
func (l Leaf) String() string {
	return fmt.Sprintf("%s %d %s", l.Key, l.Revision, base64.StdEncoding.EncodeToString(l.Hash[:]))
}

// ParseLeaf parses a leaf in the form that String returns.
func ParseLeaf(text string) (l Leaf, err error) {
	part := strings.Split(text, " ")
	if len(part) != 3 {
		return l, fmt.Errorf("leaf %.100q: want key, revision and hash", text)
	}
	l.Key = part[0]
	if l.Revision, err = strconv.ParseInt(part[1], 10, 64); err != nil {
		return l, fmt.Errorf("leaf %.100q: revision: %w", text, err)
	}
	hash, err := base64.StdEncoding.DecodeString(part[2])
	if err != nil || len(hash) != len(l.Hash) {
		return l, fmt.Errorf("leaf %.100q: hash: want %d bytes in base64", text, len(l.Hash))
	}
	copy(l.Hash[:], hash)
	if l.String() != text {
		return l, fmt.Errorf("leaf %.100q: want it as %.100q", text, l)
	}
	return l, nil
}

// Time returns the time of the row, which is a part of its key: "audit/<16 digits of
// nanoseconds>-…". If the key does not have this form, Time returns the zero time.
func (l Leaf) Time() time.Time { return timeOf(l.Key) }

func timeOf(key string) time.Time {
	_, at, _ := strings.Cut(key, "/")
	nanos, err := strconv.ParseInt(at[:min(16, len(at))], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// keyAt returns a key that sorts before the rows of a time.
func keyAt(prefix string, t time.Time) string {
	return fmt.Sprintf("%s%016x", prefix, max(0, t.UnixNano()))
}
