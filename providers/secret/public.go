package secret

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/store"
)

// Public describes a generated secret without its value, for operators. If the secret is a key
// pair, it includes the public keys.
type Public struct {
	Secret     string        `json:"secret"`
	Generate   string        `json:"generate"`
	Generation int           `json:"generation"` // generation of the newest value
	Made       unixtime.Time `json:"made"`       // time at which the newest value was made
	Public     []string      `json:"public"`     // public keys: the one in use, then the next or the former one
}

// Publics is the answer to GET /v1/secrets. It describes all secrets that exist, without their
// values.
type Publics struct {
	Secrets []Public `json:"secrets"` // secrets that exist, sorted by name
}

// Run answers requests of operators, and deletes secrets that no policy names any more, until ctx
// ends. The requests arrive through the process of kind "config", which serves the operators' API.
func (s *Secrets) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	var owned sync.WaitGroup
	defer owned.Wait()
	owned.Go(func() { s.retain(ctx) })
	announced.RunOperators(ctx, s.relay, announced.Endpoint{Method: "GET", Path: "/v1/secrets", Access: document.AccessRead, Answer: func(c *announced.Call) (any, error) {
		all, err := s.publics(c.R.Context(), time.Now())
		return Publics{all}, err
	}})
	return nil
}

// publics returns the public halves of all existing secrets.
func (v values) publics(ctx context.Context, now time.Time) ([]Public, error) {
	all := []Public{}
	for e, err := range store.All(ctx, v.db, prefix, "", store.MaxOps) {
		if err != nil {
			return nil, err
		}
		var r ring
		if err := v.key.Decode(e, &r); err != nil {
			return nil, err
		}
		newest := r[len(r)-1]
		p := Public{
			Secret: strings.TrimPrefix(e.Key, prefix), Generate: newest.Generate, Generation: newest.Generation, Made: unixtime.Unix(newest.Made), Public: []string{},
		}
		for _, half := range []string{r[r.at(now)].Public, r.other(now).Public} {
			if half != "" {
				p.Public = append(p.Public, strings.TrimSuffix(half, "\n"))
			}
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Public) int { return strings.Compare(a.Secret, b.Secret) })
	return all, nil
}
