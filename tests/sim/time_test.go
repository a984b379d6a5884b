package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
)

const day = 24 * time.Hour

// TestOutages checks that SVIDs are renewed over seven lifetimes. No SVID may expire because of an
// outage that is shorter than the remaining lifetime at renewal. A lifetime is six hours, because an
// idle provider looks at its files each second.
func TestOutages(t *testing.T) {
	const lifetime = 6 * time.Hour
	Run(t, Config{Hosts: 1, Every: lifetime / 12, Lifetime: lifetime}, func(f *Fleet) {
		f.Up()
		f.Boot()
		f.Settle(time.Minute)
		r := f.rand("outages")
		for end := f.began.Add(7 * lifetime); time.Now().Before(end); {
			// It is longer than a host waits between two attempts.
			f.good(10*time.Minute + time.Duration(r.Int64N(int64(lifetime/2))))
			f.Down()
			f.good(time.Duration(r.Int64N(int64(lifetime * 7 / 24))))
			f.Up()
		}
		f.Want("unavailable", 10)
	})
}

// good lets time pass and checks that every SVID, and the SSH certificate, remains valid.
func (f *Fleet) good(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); f.Sleep(f.Lifetime / 72) {
		for _, h := range f.Hosts {
			for _, need := range []string{"cert-node", "cert-service-app-" + h.name, "ssh-user-" + h.name} {
				s, err := h.State().NeedState(need)
				f.must(err)
				if !time.Now().Before(s.Expires.Time) {
					f.violated("good", "%s: %s has expired at %s", h.name, need, s.Expires)
				}
			}
		}
	}
}

// TestThunderingHerd checks that two hundred hosts that wait for a provider do not all connect at
// the same moment when it returns. Their renewals must also be spread over time.
func TestThunderingHerd(t *testing.T) {
	Run(t, Config{Hosts: 200}, func(f *Fleet) {
		f.Commit(func(_ string, needs []document.Need) []document.Need {
			return slices.DeleteFunc(needs, func(n document.Need) bool { return n.ID != "cert-node" && n.Kind != "config" })
		})
		f.Publish(f.Providers...)
		f.Deploy(f.Hosts...)
		f.Boot()
		f.Sleep(15 * time.Minute)
		f.Up()
		back := time.Now()
		f.Settle(6 * time.Minute)
		f.Sleep(20 * time.Minute)
		// Each host waits for a random time of up to five minutes and has two needs. The arrivals
		// are a Poisson process with a mean of 200/150 s. Twelve hosts in one second occur once in
		// hundreds of thousands of runs.
		if n := f.Peak(back, time.Now()); n > 2*12 {
			f.Errorf("%d requests in one second, want at most %d", n, 2*12)
		}
	})
}

// TestHostClock corrects the clock of a host after the host has written its state.
func TestHostClock(t *testing.T) {
	for _, ahead := range []time.Duration{-365 * day, -5 * time.Hour, 5 * time.Hour, 365 * day} {
		t.Run(ahead.String(), func(t *testing.T) {
			Run(t, Config{}, func(f *Fleet) {
				f.Commit(f.with(ungranted))
				f.Publish(f.Providers...)
				f.Deploy(f.Hosts...)
				f.Boot()
				f.Sleep(time.Hour) // hosts try in vain, with long waits
				f.Hosts[0].Clock(ahead)
				f.Up()
				f.Settle(6 * time.Minute)
				before := f.net.count(f.Hosts[0].name)
				f.Hosts[0].Clock(ahead)
				f.Settle(6 * time.Minute)
				if n := f.net.count(f.Hosts[0].name) - before; n > len(f.Hosts[0].needs) {
					f.Errorf("%d requests after the clock was set, want at most one for each need", n)
				}
				f.Sleep(time.Hour)
			})
		})
	}
}

// TestProviderClock makes a provider issue certificates with a wrong clock, and then corrects the
// clock.
func TestProviderClock(t *testing.T) {
	for _, ahead := range []time.Duration{-10 * day, -time.Minute, time.Minute, 10 * day} {
		t.Run(ahead.String(), func(t *testing.T) {
			Run(t, Config{Hosts: 1, Lifetime: 2 * time.Hour}, func(f *Fleet) {
				f.Up()
				f.Boot()
				f.Settle(time.Minute)
				f.Providers[0].Skew(ahead)
				f.Commit(f.with("oidc-late"))
				f.Publish(f.Providers...)
				f.Deploy(f.Hosts...)
				f.Sleep(100 * time.Minute) // SVIDs are also renewed
				f.Providers[0].Skew(0)
				f.Settle(Recovery)
				if ahead.Abs() > time.Minute {
					f.Want("clock", 1)
				} else if n := f.Seen("clock"); n > 0 {
					f.Errorf("a minute is told apart %d times, want never", n)
				}
			})
		})
	}
}

// TestHostOff switches a host off until its SVIDs have long expired, and then on again.
func TestHostOff(t *testing.T) {
	Run(t, Config{Lifetime: 4 * time.Hour}, func(f *Fleet) {
		f.Up()
		f.Boot()
		f.Settle(time.Minute)
		f.Hosts[0].Stop()
		f.Rotate()
		f.Publish(f.Providers...)
		f.Sleep(10 * time.Hour)
		f.Hosts[0].Start()
		f.Settle(time.Minute)
	})
}
