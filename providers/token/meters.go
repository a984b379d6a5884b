package token

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// These constants limit the tokens that a tenant gets in a minute. The last quarter of the tokens
// is reserved for subjects that have had at most an eighth. Therefore one subject cannot take all
// tokens.
const (
	keptShare    = 4
	subjectShare = 8
)

// maxSubjects is the number of subjects that are counted separately. Further subjects get no tokens
// from the reserve.
const maxSubjects = 10_000

// meters counts the tokens of tenants. It counts only those that this process issues.
type meters struct {
	mu       sync.Mutex
	all      map[string]*rate.Limiter
	subjects map[[2]string]*rate.Limiter // by tenant and subject
}

// take counts a token of a subject. If the subject must wait for the token, take returns how long.
func (m *meters) take(t *Tenant, sub string, now time.Time) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all, m.subjects = map[string]*rate.Limiter{}, map[[2]string]*rate.Limiter{}
	}
	l := m.all[t.name]
	if most := t.TokensPerMinute; l == nil || l.Burst() != most {
		l = perMinute(most)
		m.all[t.name] = l
	}
	few := m.few(t, sub, now)
	wants := 1.0
	if few == nil {
		wants += float64(t.TokensPerMinute / keptShare)
	}
	if missing := wants - l.TokensAt(now); missing > 0 {
		if few != nil {
			few.CancelAt(now)
		}
		return time.Duration(missing / float64(l.Limit()) * float64(time.Second)), false
	}
	l.AllowN(now, 1)
	return 0, true
}

// few reserves a token for a subject that has had few tokens. It returns nil if the subject has had
// its share. The caller must hold m.mu.
func (m *meters) few(t *Tenant, sub string, now time.Time) *rate.Reservation {
	key, most := [2]string{t.name, sub}, max(t.TokensPerMinute/subjectShare, 1)
	l := m.subjects[key]
	if l == nil || l.Burst() != most {
		if len(m.subjects) >= maxSubjects {
			for key, l := range m.subjects {
				if l.TokensAt(now) >= float64(l.Burst()) {
					delete(m.subjects, key)
				}
			}
		}
		if len(m.subjects) >= maxSubjects {
			return nil
		}
		l = perMinute(most)
		m.subjects[key] = l
	}
	r := l.ReserveN(now, 1)
	if r.OK() && r.DelayFrom(now) == 0 {
		return r
	}
	r.CancelAt(now)
	return nil
}

func perMinute(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(float64(n)/60), n) }
