package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
)

// TestProvidersUpLast starts hosts while all providers are stopped. The providers start last.
func TestProvidersUpLast(t *testing.T) {
	Run(t, Config{Providers: 2}, func(f *Fleet) {
		f.Boot()
		f.Sleep(2 * time.Hour)
		f.Up()
		f.Settle(6 * time.Minute)
		f.Want("unavailable", 2*30)
	})
}

func TestLinks(t *testing.T) {
	for name, l := range map[string]Link{
		"slow":   {Latency: 4 * time.Second}, // so that connections overtake each other
		"lossy":  {Latency: time.Second, Cuts: 0.5},
		"silent": {Latency: time.Second, Stalls: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, Config{Link: l}, func(f *Fleet) {
				f.Up()
				f.Boot()
				for i := 0; i < 6 || name != "slow" && i < 60 && f.Seen("unavailable") < 3; i++ {
					f.Sleep(20 * time.Minute)
					f.Rotate()
					f.Publish(f.Providers...)
				}
				if name != "slow" {
					f.Want("unavailable", 3)
				}
			})
		})
	}
}

// TestKillStorm rotates all secrets while hosts and providers die at random moments.
func TestKillStorm(t *testing.T) {
	Run(t, Config{Hosts: 8, Providers: 2, Every: time.Minute}, func(f *Fleet) {
		f.Deaths(160, 60)
		f.Up()
		f.Boot()
		for i := 0; i < 100 && f.Seen("killed") < 200; i++ {
			f.Rotate()
			f.Publish(f.Providers...)
			f.Sleep(3 * time.Minute)
		}
		f.Want("killed", 200)
		f.Want("again", 5)
	})
}

func TestPartitions(t *testing.T) {
	Run(t, Config{Hosts: 3, Providers: 2}, func(f *Fleet) {
		f.Up()
		f.Boot()
		r := f.rand("partitions")
		for range 30 {
			h, p := f.Hosts[r.IntN(3)], f.Providers[r.IntN(2)]
			if r.IntN(2) == 0 {
				f.Part(h, p)
			} else {
				f.Heal(h, p)
			}
			f.Rotate()
			f.Publish(f.Providers...)
			f.Sleep(time.Duration(r.Int64N(int64(10 * time.Minute))))
		}
		f.Want("unavailable", 3)
	})
}

// TestSecondProvider checks that a host uses its second provider if it cannot reach the first.
func TestSecondProvider(t *testing.T) {
	Run(t, Config{Providers: 2}, func(f *Fleet) {
		f.Up()
		for _, h := range f.Hosts {
			f.Part(h, f.Providers[0])
		}
		f.Boot()
		f.Settle(3 * time.Minute)
	})
}

// with returns a change for Commit that adds a need to each host.
func (f *Fleet) with(id string) func(string, []document.Need) []document.Need {
	return func(host string, needs []document.Need) []document.Need { return append(needs, f.OIDC(id, host)) }
}

// TestPolicyBehind deploys a commit to hosts before their provider has it.
func TestPolicyBehind(t *testing.T) {
	Run(t, Config{}, func(f *Fleet) {
		f.Up()
		f.Boot()
		f.Settle(time.Minute)
		f.Commit(f.with("oidc-late"))
		f.Deploy(f.Hosts...)
		f.Sleep(time.Hour)
		f.Want("policy-behind", 2*15)
		f.Publish(f.Providers...)
		f.Settle(6 * time.Minute)
		if n := f.Seen("not-granted"); n > 0 {
			f.Errorf("%d needs were denied, want none: a provider that is behind cannot know", n)
		}
	})
}

// TestDenied checks that a denied need is requested once an hour and does not delay other needs.
func TestDenied(t *testing.T) {
	Run(t, Config{}, func(f *Fleet) {
		f.Commit(f.with(ungranted))
		f.Publish(f.Providers...)
		f.Deploy(f.Hosts...)
		f.Up()
		f.Boot()
		f.Settle(2 * time.Second)
		f.Sleep(12 * time.Hour)
		if n := f.Seen("not-granted"); n < 2*11 || n > 2*12 {
			f.Errorf("two denied needs were asked for %d times in twelve hours", n)
		}
	})
}

// TestRotation raises a generation at the provider alone. The new generation must reach all hosts
// with their documents, and soon be in force on them.
func TestRotation(t *testing.T) {
	Run(t, Config{}, func(f *Fleet) {
		f.Up()
		f.Boot()
		for range 4 {
			f.Settle(16 * time.Minute)
			f.Rotate()
			f.Publish(f.Providers...)
		}
	})
}

// TestStaleConfigProvider checks that hosts do not go back to older documents if a provider does
// not have the newest commit.
func TestStaleConfigProvider(t *testing.T) {
	Run(t, Config{Providers: 2}, func(f *Fleet) {
		f.Up()
		f.Boot()
		f.Settle(time.Minute)
		f.Rotate()
		f.Publish(f.Providers[0])
		f.Settle(16 * time.Minute)
		f.Providers[0].Stop()
		f.Sleep(3 * time.Hour)
		f.Want("older-document", 2)
	})
}

// TestWipedHost checks that a host that lost its disk enrols again and gets the same OIDC client.
// This must hold even if the provider was killed and restarted meanwhile.
func TestWipedHost(t *testing.T) {
	Run(t, Config{}, func(f *Fleet) {
		f.Up()
		f.Boot()
		f.Settle(time.Minute)
		h := f.Hosts[0]
		client := h.needs[slices.IndexFunc(h.needs, func(n document.Need) bool { return n.ID == "oidc-app" })]
		before, err := delivered(h.State(), client)
		f.must(err)
		f.Providers[0].Kill()
		h.Wipe()
		f.Sleep(10 * time.Minute)
		after, err := delivered(h.State(), client)
		f.must(err)
		if after["clientSecret"] != before["clientSecret"] || after["clientId"] != before["clientId"] {
			f.Error("the wiped host has another client")
		}
	})
}
