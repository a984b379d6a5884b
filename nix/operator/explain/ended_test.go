package explain

import (
	"strings"
	"testing"
	"time"
)

// TestEnded checks that a role whose end has passed opens nothing, although Nix compiled the
// topology earlier, and that it is named as ended.
func TestEnded(t *testing.T) {
	top := read(t, "testdata/links").t
	end := time.Unix(1780272000, 0)
	for now, reaches := range map[time.Time]bool{end.Add(-time.Second): true, end: false, end.Add(time.Hour): false} {
		a := At(top, now)
		fay, err := a.Principal("fay")
		if err != nil {
			t.Fatal(err)
		}
		e := a.Explain(fay, "wiki")
		if e.Allowed != reaches || strings.Contains(a.WhoCan("wiki").String(), "user/fay") != reaches {
			t.Errorf("at %s: %s%s", now, e, a.WhoCan("wiki"))
		}
		if said := strings.Contains(e.String(), "role reader until 2026-06-01 00:00 UTC → service/wiki, but that has ended"); said == reaches {
			t.Errorf("at %s: %s", now, e)
		}
	}
}
