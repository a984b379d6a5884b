package git

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/providers/serveraccount"
)

// token is the record of an account's token. The name of the token contains the time at which the
// token ends, in case the state is lost.
type token struct {
	Name       string `json:"name"`
	Generation int    `json:"generation"`
	Access     string `json:"access"`
	Made       int64  `json:"made"` // Unix seconds
	Ends       int64  `json:"ends"` // likewise

	// Found reports whether the token was found at the forge while the state had no record of it.
	// Hosts may have such a token.
	Found bool `json:"found,omitempty"`
}

const prefix = "florete-"

// fresh returns the record of a new token.
func fresh(now time.Time, want Request) token {
	ends := now.Unix() + want.Lifetime
	name := fmt.Sprintf("%s%d-%s", prefix, ends, strings.ToLower(rand.Text()[:8]))
	return token{Name: name, Generation: want.Generation, Access: want.Access, Made: now.Unix(), Ends: ends}
}

// found returns the tokens of a lost state, which it reads from their names at the forge. A name
// may come from somebody else. Therefore no found token lasts longer than a token that is made now.
func found(names map[string]string, now time.Time, want Request) (all []token) {
	for _, name := range names {
		ends, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
		if at, err := strconv.ParseInt(ends, 10, 64); err == nil && strings.HasPrefix(name, prefix) {
			all = append(all, token{Name: name, Ends: min(at, now.Unix()+want.Lifetime), Found: true})
		}
	}
	slices.SortFunc(all, func(a, b token) int { return strings.Compare(b.Name, a.Name) })
	return all
}

// record is the stored record of an account and its tokens.
type record struct {
	Tokens []token `json:"tokens"` // token in use, then former tokens while they work
	Rights []right `json:"rights"` // rights that it may have; stored before they are given

	// ID is the number that the forge assigned to the account when the provider made it.
	ID int64 `json:"id,omitempty"`

	serveraccount.Kept // secrets of tokens, by name; a token without a secret is made again
}

// next returns the record that is due at a time.
//
// A token is replaced after two thirds of its lifetime and works until it ends. If a need has
// another generation than the token, the token ends after the time in which each host makes one
// request.
func (r record) next(now time.Time, want Request) record {
	at := now.Unix()
	r.Rights = distinct(slices.Concat(r.Rights, want.rights()))
	r.Tokens = slices.DeleteFunc(slices.Clone(r.Tokens), func(t token) bool { return t.Ends <= at })
	generation := 0
	if len(r.Tokens) > 0 && !r.Tokens[0].Found {
		current := r.Tokens[0]
		if current.Generation >= want.Generation && current.Access == want.Access && current.Ends <= current.Made+want.Lifetime && at < current.renewal() {
			return r
		}
		generation = current.Generation
	}
	if generation < want.Generation && generation > 0 {
		for i := range r.Tokens {
			r.Tokens[i].Ends = min(r.Tokens[i].Ends, at+want.Lifetime/12)
		}
	}
	r.Tokens = append([]token{fresh(now, want)}, r.Tokens...)
	return r
}

// renewal returns the time at which a token is replaced, in Unix seconds.
func (t token) renewal() int64 { return t.Made + (t.Ends-t.Made)*2/3 }

// right is the access of an account to a repository.
type right struct {
	Repository string `json:"repository"`
	Access     string `json:"access"`
}

// rights returns the rights that the account of a token needs at the forge.
func (r Request) rights() (all []right) {
	for _, name := range r.Repositories {
		all = append(all, right{name, r.Access})
	}
	return distinct(all)
}

// others returns the same rights with the other access. The account may have them although the
// state does not record them.
func (r Request) others() []right {
	r.Access = map[string]string{read: write, write: read}[r.Access]
	return r.rights()
}

func distinct(all []right) []right {
	slices.SortFunc(all, func(a, b right) int {
		return cmp.Or(strings.Compare(a.Repository, b.Repository), strings.Compare(a.Access, b.Access))
	})
	return slices.Compact(all)
}

// is reports whether two records are equal in their stored form. It ignores the secrets of the
// records.
func (r record) is(other record) bool {
	return r.ID == other.ID && slices.Equal(r.Rights, other.Rights) && slices.Equal(r.Tokens, other.Tokens)
}

// until returns the time at which the record must change next.
func (r record) until(now time.Time) time.Time {
	end := now.Add(serveraccount.Repeated)
	if t := time.Unix(r.Tokens[0].renewal(), 0); t.Before(end) {
		return t
	}
	return end
}

// keep stores the record of an account, with the secrets of its tokens, and returns the record. It
// returns an error if the stored record has changed since it was read.
func (t *Tokens) keep(ctx context.Context, of serveraccount.Name, r record) (record, error) {
	r.Secrets = maps.Clone(r.Secrets)
	if r.Secrets == nil {
		r.Secrets = map[string]string{}
	}
	maps.DeleteFunc(r.Secrets, func(name, _ string) bool {
		return !slices.ContainsFunc(r.Tokens, func(k token) bool { return k.Name == name })
	})
	err := t.Write(ctx, of, &r)
	return r, err
}
