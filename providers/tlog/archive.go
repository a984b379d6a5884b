package tlog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/florete/florete/providers/store"
)

// archived is a line of the archive.
type archived struct {
	Key string          `json:"key"`
	Row json.RawMessage `json:"row"`
}

// Archive writes rows that leave the store to "archive/<year>-<month>.jsonl", and returns when
// they are on disk. One that is archived again, after a crash, is there twice.
func (l *Log) Archive(rows []store.Entry) error {
	months := map[string][]byte{}
	for _, r := range rows {
		line, err := json.Marshal(archived{r.Key, r.Value})
		if err != nil {
			return err
		}
		month := timeOf(r.Key).Format("2006-01")
		months[month] = append(append(months[month], line...), '\n')
	}
	dir := filepath.Join(l.Config.Dir, "archive")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for month, lines := range months {
		f, err := os.OpenFile(filepath.Join(dir, month+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(lines)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
