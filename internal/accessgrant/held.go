package accessgrant

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// Held contains the grants that a host received, and those that are over. A grant that is over is
// never in force again on this host, also if a provider offers it again or the clock is set back.
// The zero Held is ready for use.
type Held struct {
	Grants []Signed `json:"grants"` // grants that are not over, sorted by ID
	Over   []Over   `json:"over"`   // sorted by ID

	// Lost is the time at which the host noticed that it had lost its grants, or zero. It cannot
	// know which of the earlier grants are over, so it refuses all of them.
	Lost unixtime.Time `json:"lost,omitzero"`
}

// Over is a grant that has ended or was ended.
type Over struct {
	ID    string        `json:"id"`
	Until unixtime.Time `json:"until"` // time at which the grant would have ended
}

// remembered is the time for which a host remembers that a grant is over. A clock that is set back
// further than this refuses all certificates too.
const remembered = 30 * 24 * time.Hour

// Read reads grants from the file that Write has written. If the file does not exist, the result is
// the zero Held.
func Read(path string) (h Held, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil {
		err = strictjson.Decode(b, &h)
	}
	if err != nil {
		return Held{}, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// Encode returns the content of the file that Read reads.
func (h Held) Encode() []byte {
	if h.Grants == nil {
		h.Grants = []Signed{}
	}
	if h.Over == nil {
		h.Over = []Over{}
	}
	b := strictjson.Encode(h)
	return append(b, '\n')
}

// Merge returns h with the statements that a provider offers to the host of the manifest m, and an
// error for each statement that the host refuses. A grant that ends before the time now, or that a
// statement ends, is over.
func (h Held) Merge(m document.Manifest, offered []Signed, now time.Time) (next Held, refused []error) {
	grants, over := map[string]Signed{}, map[string]unixtime.Time{}
	if h.Lost.Add(remembered).After(now) {
		next.Lost = h.Lost
	}
	for _, o := range h.Over {
		if o.Until.Add(remembered).After(now) {
			over[o.ID] = o.Until
		}
	}
	keep := func(s Signed, g Grant) {
		switch _, isOver := over[g.ID]; {
		case isOver:
		case g.Ends, !now.Before(g.Until.Time):
			over[g.ID] = g.Until
			delete(grants, g.ID)
		default:
			if _, known := grants[g.ID]; !known { // the first one stays
				grants[g.ID] = s
			}
		}
	}
	for _, s := range h.Grants {
		if g, err := s.Open(); err == nil {
			keep(s, g)
		}
	}
	for _, s := range offered {
		g, err := s.Verify(m.Cluster, m.Requests)
		if err == nil && !g.Ends && len(grants) >= MaxKnown {
			err = fmt.Errorf("access grant %s: this host has %d grants already, which is the most", g.ID, MaxKnown)
		}
		if err == nil && !g.Ends && !next.Lost.IsZero() && !g.From.After(next.Lost.Time) {
			err = fmt.Errorf("access grant %s: approved before %s, when this host found its grants damaged: request access again", g.ID, next.Lost.UTC().Format(time.RFC3339))
		}
		if err != nil {
			refused = append(refused, err)
			continue
		}
		keep(s, g)
	}
	for _, id := range sortedKeys(grants) {
		next.Grants = append(next.Grants, grants[id])
	}
	for _, id := range sortedKeys(over) {
		next.Over = append(next.Over, Over{id, over[id]})
	}
	return next, refused
}

// isOver reports whether a grant is over on this host.
func (h Held) isOver(id string) bool {
	_, found := slices.BinarySearchFunc(h.Over, id, func(o Over, id string) int { return cmp.Compare(o.ID, id) })
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
