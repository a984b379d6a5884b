package recorder

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/unixtime"
)

// directory contains the recordings of a host. Beside each recording that is under way, there is a
// file with its summary, from which the next process finishes it if this one is killed.
type directory struct {
	layout hostdir.Layout
	log    *slog.Logger
	mu     sync.Mutex // held while the file of finished recordings changes
}

// openSuffix is the end of the name of the summary of a recording that is under way.
const openSuffix = ".open"

func (d *directory) path(name string) string { return filepath.Join(d.layout.Recordings(), name) }

// file is a recording that is under way.
type file struct {
	*os.File
	dir    *directory
	name   string
	about  recording.Summary
	writer *recording.Writer
	once   sync.Once
}

// begin creates the file of a recording.
func (d *directory) begin(s recording.Session, now time.Time) (*file, error) {
	name := fmt.Sprintf("%s-%s-%s", now.UTC().Format("20060102T150405Z"), s.Caller.Name(), strings.ToLower(rand.Text()[:6]))
	f := &file{dir: d, name: name, about: recording.Summary{
		File: name + recording.Suffix, Service: s.Service, Caller: s.Caller, Account: s.Account, Begun: unixtime.Of(now),
	}}
	b, err := json.Marshal(f.about)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.File(d.path(name+openSuffix), b, 0o640); err != nil {
		return nil, err
	}
	f.File, err = os.OpenFile(d.path(f.about.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err == nil {
		err = atomicfile.SyncDir(d.layout.Recordings())
	}
	return f, err
}

// end finishes the recording, once.
func (f *file) end(cut bool, now time.Time) {
	f.once.Do(func() {
		defer f.Close()
		var err error
		if f.writer == nil {
			err = f.dir.measure(&f.about)
		} else {
			f.about.Bytes, f.about.SHA256 = f.writer.Written()
		}
		f.about.Ended, f.about.Cut = unixtime.Of(now), cut
		if err == nil {
			err = f.dir.finish(f.about)
		}
		if err != nil {
			f.dir.log.Error("recording not finished: the next start of the recorder tries again", "file", f.name, "err", err)
		}
	})
}

// finish adds a recording to the finished ones.
func (d *directory) finish(s recording.Summary) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := recording.ReadFinished(d.layout.FinishedRecordings())
	if err != nil { // the file is damaged
		d.log.Error("recordings that no provider has confirmed yet are not reported", "err", err)
	}
	confirmed := d.layout.ConfirmedRecordings()
	if !slices.ContainsFunc(all.Summaries, func(old recording.Summary) bool { return old.File == s.File }) {
		all.Last = max(all.Last, confirmed) + 1
		s.Number = all.Last
		all.Summaries = slices.DeleteFunc(all.Summaries, func(old recording.Summary) bool { return old.Number <= confirmed })
		all.Summaries = append(all.Summaries, s)
		b, err := json.Marshal(all)
		if err != nil {
			return err
		}
		if err := atomicfile.File(d.layout.FinishedRecordings(), b, 0o640); err != nil {
			return err
		}
	}
	return os.Remove(d.path(strings.TrimSuffix(s.File, recording.Suffix) + openSuffix))
}

// recover finishes the recordings that an earlier process left under way.
func (d *directory) recover() {
	open, _ := filepath.Glob(d.path("*" + openSuffix)) // the pattern is valid
	for _, path := range open {
		var s recording.Summary
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err == nil {
			err = d.measure(&s)
		}
		if err == nil {
			s.Cut = true
			err = d.finish(s)
		}
		if err != nil {
			d.log.Error("recording not finished: it stays, and is not reported", "file", path, "err", err)
		}
	}
}

// measure fills in the size, the digest and the end of a recording. A recording may have been created
// without a file, or without anything in it.
func (d *directory) measure(s *recording.Summary) error {
	s.Ended = s.Begun
	f, err := os.Open(d.path(s.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	digest := sha256.New()
	s.Bytes, err = io.Copy(digest, f)
	s.Ended, s.SHA256 = unixtime.Of(info.ModTime()), hex.EncodeToString(digest.Sum(nil))
	return err
}

// removeOld removes the recordings that ended before a time.
func (d *directory) removeOld(before time.Time) {
	entries, err := os.ReadDir(d.layout.Recordings())
	if err != nil {
		d.log.Error("old recordings not removed", "err", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), recording.Suffix) || !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(d.path(e.Name())); err != nil {
			d.log.Error("old recording not removed", "err", err)
		}
	}
}
