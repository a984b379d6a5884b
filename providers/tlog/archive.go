package tlog

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/florete/florete/providers/store"
)

// archiveDir is the directory of the archive, below that of the log.
const archiveDir = "archive"

// monthly is the layout of the name of a month's file, in the form of package time.
const monthly = "2006-01.jsonl"

// archived is a line of the archive.
type archived struct {
	Key string          `json:"key"`
	Row json.RawMessage `json:"row"`
}

// Archive appends audit rows to the monthly files archive/<year>-<month>.jsonl in the directory of
// the log. When it returns nil, the rows are on disk and may be deleted from the state store. If a
// row is archived twice, for example after a crash, the file contains it twice.
func (l *Log) Archive(rows []store.Entry) error {
	months := map[string][]byte{}
	for _, r := range rows {
		line, err := json.Marshal(archived{r.Key, r.Value})
		if err != nil {
			return err
		}
		month := timeOf(r.Key).Format(monthly)
		months[month] = append(append(months[month], line...), '\n')
	}
	dir := filepath.Join(l.Config.Dir, archiveDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for month, lines := range months {
		if err := appendLines(filepath.Join(dir, month), lines); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// appendLines appends lines to a file, and returns when they are on disk. If a crash left the last
// line incomplete, it starts a new line. The row of the incomplete line is archived again.
func appendLines(path string, lines []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if last := []byte{'\n'}; err == nil && end > 0 {
		if _, err = f.ReadAt(last, end-1); last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if err == nil {
		_, err = f.Write(lines)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
