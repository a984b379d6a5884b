package plan

import (
	"strings"
	"time"
)

// ending is when a right ends: a later end is wider, and so is none, as with limits.
func (a at) ending(of Right) []fact {
	end, ok := a.v.(float64)
	if !ok {
		a.loosen(a.path, a.v)
		return nil
	}
	return []fact{{Right: Right{Who: of.Who, May: of.May + " " + of.What + until}, seconds: int64(end), bounds: []Right{of}}}
}

func writeUntil(may, what string) func(at) []fact {
	return func(a at) []fact {
		return a.ending(Right{a.principal(a.up[0]["id"]), may, what + a.host()})
	}
}

const until = " until"

// end is the time up to which a right is there, for people; "" where it is for another length.
func end(may string, n int64) string {
	switch {
	case !strings.HasSuffix(may, until):
		return ""
	case n == ever:
		return "further notice"
	}
	return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 MST")
}
