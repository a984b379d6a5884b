package tlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// shelf finds rows in an archive. It remembers the positions of the rows of one month, because rows
// are looked up roughly in the order in which they were archived.
type shelf struct {
	dir string

	mu     sync.Mutex
	month  string
	size   int64   // of the month's file, when it was read
	lines  []place // by time
	forget *time.Timer
}

// place is the position of a line in the archive.
type place struct{ time, offset int64 }

func newShelf(log string) *shelf { return &shelf{dir: filepath.Join(log, archiveDir)} }

// idle is the time for which a shelf remembers the positions of a month. They take 16 bytes of
// memory for each row.
const idle = time.Minute

// row returns the archived row of a leaf. It returns nil if the archive does not contain the row.
func (s *shelf) row(leaf Leaf) (row *string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.Open(filepath.Join(s.dir, leaf.Time().Format(monthly)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.read(f); err != nil {
		return nil, err
	}
	at := leaf.Time().UnixNano()
	i, _ := slices.BinarySearchFunc(s.lines, at, func(p place, t int64) int { return cmp.Compare(p.time, t) })
	for ; i < len(s.lines) && s.lines[i].time == at; i++ {
		line, err := bufio.NewReader(io.NewSectionReader(f, s.lines[i].offset, s.size-s.lines[i].offset)).ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) { // at the end no line is left, whoever changed that since
			return nil, err
		}
		var a archived
		if json.Unmarshal(line, &a) != nil || a.Key != leaf.Key {
			continue
		}
		text := string(a.Row)
		if row = &text; leaf.Of(a.Row) {
			break // of one that was archived twice either will do
		}
	}
	return row, nil
}

// read records the positions of new lines in the file of a month. It skips a line that is not a
// row. The row of such a line then counts as missing.
func (s *shelf) read(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s.forget != nil {
		s.forget.Stop()
	}
	s.forget = time.AfterFunc(idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.month, s.lines = "", nil
	})
	if s.month == f.Name() && s.size == info.Size() {
		return nil
	}
	s.month, s.size, s.lines = f.Name(), info.Size(), nil
	lines := bufio.NewReaderSize(io.NewSectionReader(f, 0, s.size), 1<<20)
	for offset := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.month = ""
			return err
		}
		if rest, ok := bytes.CutPrefix(line, []byte(`{"key":"`)); ok {
			key, _, _ := bytes.Cut(rest, []byte(`"`))
			s.lines = append(s.lines, place{timeOf(string(key)).UnixNano(), offset})
		}
		offset += int64(len(line))
	}
	slices.SortStableFunc(s.lines, func(a, b place) int { return cmp.Compare(a.time, b.time) })
	return nil
}
