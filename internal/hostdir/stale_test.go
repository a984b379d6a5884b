package hostdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

func TestStale(t *testing.T) {
	now := time.Now().Round(0)
	ago := func(d time.Duration) string {
		return fmt.Sprintf(`{"state":"fulfilled","fulfilled":%d}`, now.Add(-d).Unix())
	}
	hour := time.Hour
	for name, c := range map[string]struct {
		after     int
		state     string
		documents time.Duration // age of the generation of documents in force; 0 if there is none
		want      time.Duration
	}{
		"answered":                       {3600, ago(hour - time.Second), 99 * hour, 0},
		"no answer for too long":         {3600, ago(hour + time.Minute), 99 * hour, hour + time.Minute},
		"but deployed since":             {3600, ago(99 * hour), time.Minute, 0},
		"never answered":                 {3600, "", 2 * hour, 2 * hour},
		"never answered, deployed":       {3600, "", time.Minute, 0},
		"the clock was ahead":            {3600, ago(-hour), 99 * hour, 0},
		"documents of the future":        {3600, ago(2 * hour), -hour, 2 * hour},
		"state that cannot be read":      {3600, "{", 2 * hour, 2 * hour},
		"nothing known":                  {3600, "", 0, 0},
		"documents come with the system": {0, ago(99 * hour), 99 * hour, 0},
	} {
		l := hostdir.Layout(t.TempDir())
		gen := filepath.Join(l.Documents(), "gen-1")
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.MkdirAll(l.Need("config-documents"), 0o755))
		if c.state != "" {
			must(os.WriteFile(l.NeedStateFile("config-documents"), []byte(c.state), 0o644))
		}
		if c.documents != 0 {
			must(os.MkdirAll(gen, 0o755))
			must(os.Symlink("gen-1", hostdir.Current(l.Documents())))
			must(os.Chtimes(gen, time.Time{}, now.Add(-c.documents)))
		}
		m := document.Manifest{Needs: []document.Need{{ID: "cert-node"}, {ID: "config-documents", Renew: document.Renew{StaleAfter: c.after}}}}
		if got := l.Stale(m, now); (got - c.want).Abs() > time.Second {
			t.Errorf("%s: stale for %s, want %s", name, got, c.want)
		}
	}
}
