package tlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
)

// TestArchived checks that archived rows are verified like rows of the store, even after a line
// that a crash left incomplete.
func TestArchived(t *testing.T) {
	t.Parallel()
	const year = 400 * 24 * time.Hour
	for name, c := range map[string]struct {
		change    func(text string) string // of an archive
		edited    uint64
		elsewhere uint64
		want      string // the first fault
	}{
		"as it was": {change: func(text string) string { return text }},
		"edited": {
			change: func(text string) string { return strings.Replace(text, `{"n":3}`, `{"n":33}`, 1) },
			edited: 1, want: "was edited in the archive",
		},
		"archived again": {change: func(text string) string { return strings.Replace(text, `{"n":3}`, `{"n":33}`, 1) + text }},
		"out of order": {change: func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			return lines[len(lines)-2] + strings.Join(lines[:len(lines)-2], "")
		}},
		"a line removed": {change: func(text string) string { return text[strings.Index(text, "\n")+1:] }, elsewhere: 1},
		"a line cut":     {change: func(text string) string { return text[:len(text)-3] }, elsewhere: 1},
		"nothing left":   {change: func(string) string { return "" }, elsewhere: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.rows(2, 0)
			l := e.log()
			var keys []string
			e.while(l, func() {
				e.has(l, 2)
				keys = e.rows(5, year)
				e.has(l, 7)
			})
			e.archive(l, keys[:2])
			e.tear(keys[2])
			e.archive(l, keys[2:])
			e.rewrite(c.change)
			v, err := Verify(t.Context(), l.Local(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Rows != 7 || v.Archived != 5 || v.Elsewhere != c.elsewhere || v.Edited != c.edited || v.Missing != 0 || (len(v.Faults) == 0) != (c.want == "") ||
				c.want != "" && !strings.Contains(v.Faults[0], c.want) {
				t.Errorf("%+v", v)
			}
			p, err := l.Local().Proof(t.Context(), keys[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(); (err == nil) != (c.want == "") || c.want != "" && !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

// archive moves rows out of the store.
func (e *env) archive(l *Log, keys []string) {
	e.Helper()
	var rows []store.Entry
	var gone []store.Op
	for _, k := range keys {
		row, err := e.db.Get(e.Context(), k)
		if err != nil {
			e.Fatal(err)
		}
		rows, gone = append(rows, row), append(gone, store.Delete(k))
	}
	if err := l.Archive(rows); err != nil {
		e.Fatal(err)
	}
	if _, err := e.db.Commit(e.Context(), store.Txn{Then: gone}); err != nil {
		e.Fatal(err)
	}
}

// archives are the files of the archive.
func (e *env) archives() []string {
	e.Helper()
	files, err := filepath.Glob(filepath.Join(e.dir, "log", archiveDir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		e.Fatal(files, err)
	}
	return files
}

// tear leaves a row half written at the end of the archive.
func (e *env) tear(key string) {
	e.rewrite(func(text string) string { return text + fmt.Sprintf(`{"key":%q,"ro`, key) })
}

func (e *env) rewrite(change func(string) string) {
	e.Helper()
	for _, f := range e.archives() {
		text, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(f, []byte(change(string(text))), 0o600)
		}
		if err != nil {
			e.Fatal(err)
		}
	}
}
