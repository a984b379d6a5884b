package archive

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/store"
)

// accessing is the key of requests for roles and of access grants in the state store. A backup does
// not contain it, because a restored provider must not offer grants again that were ended.
const accessing = everything + "access"

// These constants limit what the provider keeps for users. A request that nobody approves is
// forgotten after requestLife.
const (
	maxRequests, maxRequestsOfUser = 64, 4
	requestLife                    = 24 * time.Hour
	maxReason                      = 200              // bytes
	late                           = 10 * time.Minute // largest age of a grant that an approver submits
)

// AccessRequest is the request of a user for a role.
type AccessRequest struct {
	ID      string        `json:"id"` // also the ID of the grant
	Role    string        `json:"role"`
	User    spiffe.ID     `json:"user"`
	Seconds int64         `json:"seconds"` // for which the user requests the role
	Reason  string        `json:"reason"`
	Time    unixtime.Time `json:"time"`
}

// Access contains the requests that nobody has approved yet, and the grants that hosts are offered.
type Access struct {
	Requests []AccessRequest      `json:"requests"` // oldest first
	Grants   []accessgrant.Signed `json:"grants"`   // sorted by text

	revision int64 // revision of the key
}

// Access returns the requests and grants that are current at the time now.
func (a Archive) Access(ctx context.Context, now time.Time) (s Access, err error) {
	s = Access{Requests: []AccessRequest{}, Grants: []accessgrant.Signed{}}
	if s.revision, err = store.Load(ctx, a, accessing, &s); err != nil {
		return s, err
	}
	s.Requests = slices.DeleteFunc(s.Requests, func(r AccessRequest) bool { return r.Time.Add(requestLife).Before(now) })
	s.Grants = slices.DeleteFunc(s.Grants, func(s accessgrant.Signed) bool {
		g, err := s.Open()
		return err != nil || !now.Before(g.Until.Time)
	})
	return s, nil
}

// RequestAccess records a user's request for a role. Record returns changes to make in the same
// transaction. The error is a Refusal if the policy does not permit the request.
func (a Archive) RequestAccess(ctx context.Context, r AccessRequest, p document.Policy, record func() []store.Op) error {
	rule, ok := p.Requests[r.Role]
	switch most := time.Duration(rule.Most) * time.Hour; {
	case !ok:
		return refusef("nobody may request role %.64q: write roles.<name>.request", r.Role)
	case !slices.Contains(rule.By, r.User):
		return refusef("%s may not request role %s: roles.%[2]s.request.by names the teams that may", r.User, r.Role)
	case !accessgrant.IsID(r.ID):
		return refusef("id %.64q: want 32 hex digits", r.ID)
	case r.Seconds < 60 || r.Seconds > int64(most/time.Second):
		return refusef("%d seconds: want a minute to %d hours, which is roles.%s.request.most", r.Seconds, rule.Most, r.Role)
	case strings.TrimSpace(r.Reason) == "" || len(r.Reason) > maxReason:
		return refusef("reason: want 1 to %d bytes", maxReason)
	}
	return a.changeAccess(ctx, r.Time.Time, record, func(s *Access) error {
		of := 0
		for _, o := range s.Requests {
			if o.ID == r.ID && o.User == r.User && o.Role == r.Role {
				return errUnchanged
			}
			if o.ID == r.ID {
				return refusef("request %s is another one", r.ID)
			}
			if o.User == r.User {
				of++
			}
		}
		if of >= maxRequestsOfUser || len(s.Requests) >= maxRequests {
			return refusef("%d requests wait, %d of them of %s: want fewer than %d and %d: wait until some are approved or a day old",
				len(s.Requests), of, r.User.Short(), maxRequests, maxRequestsOfUser)
		}
		s.Requests = append(s.Requests, r)
		return nil
	})
}

// PutGrant offers an access grant, or a statement that ends one, to the hosts that need it. Record
// returns changes to make in the same transaction. The error is a Refusal if hosts would not accept
// the statement.
func (a Archive) PutGrant(ctx context.Context, signed accessgrant.Signed, p document.Policy, now time.Time, record func() []store.Op) (accessgrant.Grant, error) {
	rules := map[string]document.Request{}
	for role, r := range p.Requests {
		rules[role] = r.Request()
	}
	g, err := signed.Verify(p.Cluster, rules)
	if err != nil {
		return g, refuse(err)
	}
	switch {
	case !now.Before(g.Until.Time):
		return g, refusef("access grant %s ended at %s", g.ID, g.Until.UTC().Format(time.RFC3339))
	case !g.Ends && !slices.Contains(p.Requests[g.Role].By, g.User):
		return g, refusef("access grant %s: %s may not request role %s", g.ID, g.User.Short(), g.Role)
	case !g.Ends && g.From.After(now.Add(accessgrant.Ahead)), !g.Ends && g.From.Before(now.Add(-late)):
		return g, refusef("access grant %s: signed at %s, and it is %s: compare the clocks, and approve again",
			g.ID, g.From.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	err = a.changeAccess(ctx, now, record, func(s *Access) error {
		next := []accessgrant.Signed{signed}
		for _, o := range s.Grants {
			was, err := o.Open()
			switch {
			case o == signed:
				return errUnchanged
			case err != nil || was.ID == g.ID && g.Ends && !was.Ends: // replaced
			case was.ID == g.ID:
				return refusef("access grant %s was approved or ended already", g.ID)
			default:
				next = append(next, o)
			}
		}
		if len(next) > accessgrant.MaxKnown {
			return refusef("%d access grants are in force, which is the most: end some", len(next)-1)
		}
		slices.SortFunc(next, func(a, b accessgrant.Signed) int { return strings.Compare(a.Grant, b.Grant) })
		s.Grants = next
		s.Requests = slices.DeleteFunc(s.Requests, func(r AccessRequest) bool { return r.ID == g.ID })
		return nil
	})
	return g, err
}

// DropRequest forgets a request that nobody has approved.
func (a Archive) DropRequest(ctx context.Context, id string, now time.Time, record func() []store.Op) error {
	return a.changeAccess(ctx, now, record, func(s *Access) error {
		was := len(s.Requests)
		s.Requests = slices.DeleteFunc(s.Requests, func(r AccessRequest) bool { return r.ID == id })
		if len(s.Requests) == was {
			return refusef("request %.64q is unknown", id)
		}
		return nil
	})
}

// errUnchanged is returned by a change that was made already. Operators send the same change to
// several providers, which can share a store.
var errUnchanged = errors.New("unchanged")

// changeAccess changes the requests and grants in one transaction, together with the changes that
// record returns.
func (a Archive) changeAccess(ctx context.Context, now time.Time, record func() []store.Op, change func(*Access) error) error {
	return store.Retry(ctx, func() error {
		s, err := a.Access(ctx, now)
		if err == nil {
			err = change(&s)
		}
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if err != nil {
			return err
		}
		value, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = a.Commit(ctx, store.Txn{
			If:   []store.Cond{{Key: accessing, Modified: s.revision}},
			Then: append([]store.Op{store.Put(accessing, value)}, record()...),
		})
		return err
	})
}
