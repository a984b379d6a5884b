package plan

import (
	"cmp"
	"strings"
	"time"
)

// ending returns the end of a right as a fact. A later end, or no end, permits more, as for limits.
func (a at) ending(of Right) []fact {
	end, ok := a.v.(float64)
	if !ok {
		a.loosen(a.path, a.v)
		return nil
	}
	return []fact{{Right: Right{Who: of.Who, May: of.May + " " + of.What + until}, seconds: int64(end), bounds: []Right{of}}}
}

// endless marks the rights that have no end although they could have one, according to the value
// that gives them.
func (a at) endless(facts []fact) []fact {
	for i := range facts {
		facts[i].endless = a.up[0]["until"] == nil
	}
	return facts
}

func writeUntil(may, what string) func(at) []fact {
	return func(a at) []fact {
		return a.ending(Right{a.id(a.up[0]["id"]), may, what + a.host()})
	}
}

const until = " until"

// end formats the end of a right for people. For numbers that are not the end of a right, it
// returns "".
func end(may string, n int64) string {
	switch {
	case !strings.HasSuffix(may, until):
		return ""
	case n == ever:
		return "further notice"
	}
	return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 MST")
}

// ends returns the end in a change, or the ends before and after the change, as text. If there is
// none, the text is empty.
func ends(c Change) string {
	at := func(v any) string {
		if n, ok := v.(float64); ok {
			return end(until, int64(n))
		}
		return end(until, ever)
	}
	if c.Path[len(c.Path)-1] == until[1:] {
		return until + " " + at(c.Before) + " → " + at(c.After)
	}
	if v := cmp.Or(object(c.Before)["until"], object(c.After)["until"]); v != nil {
		return until + " " + at(v)
	}
	return ""
}
