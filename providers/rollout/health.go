package rollout

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
)

// Problems is the set of a host's problems, by their names in hostreport.Problem.Name. The value is
// true for a problem that lasts until somebody acts.
type Problems map[string]bool

// silent is the problem of a host that does not report.
const silent = "does not report"

// ProblemsOf returns the problems in the last report of a host. It counts as a problem as well if
// the report is older than the given duration and older than hostreport.Silence. If the host never
// reported, pass the zero report.
func ProblemsOf(r hostreport.Kept, within time.Duration, now time.Time) Problems {
	found := Problems{}
	if now.Sub(r.Received.Time) > max(within, hostreport.Silence) {
		found[silent] = false
	}
	h, err := r.Decode()
	if err != nil {
		if len(r.Report) > 0 {
			found["its report cannot be read"] = false
		}
		return found
	}
	for _, p := range hostreport.Problems(h) {
		found[p.Name] = p.Lasting
	}
	return found
}

// judge returns two lists of a host's problems: those for which the rollout stops, and those for
// which it waits.
func (s State) judge(now time.Time, h Host, r hostreport.Kept) (fails, waits []string) {
	report, _ := r.Decode()
	if u := report.Undone; u != nil && serialOf(u.Documents, h.document()) == h.Serial {
		return []string{h.Name + ": went back by itself"}, nil
	}
	if !h.InForce(r) {
		// A host that could not be reached before is not waited for.
		if h.excuses(silent, false) || h.excuses(hostreport.NoDocuments, false) {
			return nil, nil
		}
		return nil, []string{fmt.Sprintf("%s: has not put serial %d in force", h.Name, h.Serial)}
	}
	if p := report.Pending; p != nil && serialOf(p.Documents, h.document()) == h.Serial {
		return nil, []string{fmt.Sprintf("%s: has not confirmed serial %d", h.Name, h.Serial)}
	}
	if h.Wave == 0 {
		return nil, nil
	}
	for problem, lasting := range ProblemsOf(r, time.Duration(s.Within)*time.Second, now) {
		switch {
		case h.excuses(problem, lasting):
		case lasting:
			fails = append(fails, h.Name+": "+problem)
		default:
			waits = append(waits, h.Name+": "+problem)
		}
	}
	return fails, waits
}

// InForce reports whether a host uses the documents of the rollout, according to its last report.
func (h Host) InForce(r hostreport.Kept) bool {
	report, err := r.Decode()
	return err == nil && serialOf(report.Documents, h.document()) >= h.Serial
}

func (h Host) document() string {
	if h.Wave == 0 {
		return document.DocPolicy
	}
	return document.DocManifest
}

// excuses reports whether the host already had a problem before the rollout, at least as badly. The
// rollout does not stop for such a problem.
func (h Host) excuses(problem string, lasting bool) bool {
	was, had := h.Before[problem]
	return had && (was || !lasting)
}

func serialOf(documents []document.Reported, kind string) int64 {
	for _, d := range documents {
		if d.Kind == kind {
			return d.Serial
		}
	}
	return 0
}
