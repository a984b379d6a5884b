package accessgrant

import (
	"cmp"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// InForce returns the grants that are in force on a host at the time now, sorted by role and user.
// It verifies each grant by the manifest m. It leaves out grants of which the user or the approver
// is revoked. The revocation list may be nil.
func (h Held) InForce(m document.Manifest, list *trust.Revocations, now time.Time) (inForce []Grant) {
	for _, s := range h.Grants {
		g, err := s.Open()
		if err != nil || h.isOver(g.ID) || !g.current(now) {
			continue // without the cost of the signature
		}
		if g, err = s.Verify(m.Cluster, m.Requests); err == nil && !g.Ends && list.CheckID(g.User) == nil && list.CheckID(g.By) == nil {
			inForce = append(inForce, g)
		}
	}
	slices.SortFunc(inForce, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.User.String(), b.User.String()), cmp.Compare(a.ID, b.ID))
	})
	return inForce
}

// current reports whether the time now is between the times of a grant.
func (g Grant) current(now time.Time) bool {
	return now.Before(g.Until.Time) && !now.Add(Ahead).Before(g.From.Time)
}

// Apply returns a copy of the forwarder's configuration in which the grants in force are entries of
// Allow, each with the time at which the grant ends. Local identities with latent access become
// callers, because only the host that publishes a service decides whether a grant is in force.
func Apply(f document.Forwarder, inForce []Grant) document.Forwarder {
	ends := map[latent]unixtime.Time{}
	for _, g := range inForce {
		if k := (latent{g.User, g.Role}); g.Until.After(ends[k].Time) {
			ends[k] = g.Until
		}
	}
	f.Publish, f.Reach = slices.Clone(f.Publish), slices.Clone(f.Reach)
	for i, p := range f.Publish {
		allow := slices.Clip(p.Allow)
		for _, l := range p.Latent {
			end, ok := ends[latent{l.ID, l.Role}]
			if !ok {
				continue
			}
			a := document.Allow{ID: l.ID, Until: end}
			for _, account := range l.Logins {
				a.Logins = append(a.Logins, document.Login{Account: account, Until: end})
			}
			allow = append(allow, a)
		}
		f.Publish[i].Allow = allow
	}
	for i, r := range f.Reach {
		f.Reach[i].Callers = r.Acting()
	}
	return f
}

// latent identifies entries of a document.Published that a grant puts in force.
type latent struct {
	user spiffe.ID
	role string
}
