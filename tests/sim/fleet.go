package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// Config describes the fleet that a story is about.
type Config struct {
	Hosts     int // number of hosts; zero means 2
	Providers int // number of providers; each serves all kinds, and hosts prefer the first; zero means 1
	Link      Link
	Lifetime  time.Duration // lifetime of SVIDs and SSH certificates; zero means a day
	Every     time.Duration // interval at which hosts fetch documents; zero means 15 minutes
	Backoff   needstate.Backoff
}

// Fleet is a simulated set of hosts and providers. They share a virtual clock (testing/synctest),
// so a simulated day passes quickly. None of them runs at first.
type Fleet struct {
	Config
	Hosts     []*Host
	Providers []*Provider

	testing.TB
	seed    uint64
	dir     string
	began   time.Time
	ca      *kit.CA // the CA whose issuing certificate belongs to no provider
	signing signature.SecretKey
	net     *network

	mu     sync.Mutex // guards the documents
	serial int64

	lawsMu sync.Mutex
	laws
}

// newFleet returns a fleet that was set up a month ago and has no fulfilled needs yet.
func newFleet(t testing.TB, c Config, seed uint64) *Fleet {
	if c.Hosts == 0 {
		c.Hosts = 2
	}
	if c.Providers == 0 {
		c.Providers = 1
	}
	if c.Lifetime == 0 {
		c.Lifetime = 24 * time.Hour
	}
	if c.Every == 0 {
		c.Every = 15 * time.Minute
	}
	f := &Fleet{Config: c, TB: t, seed: seed, dir: kit.MemoryDir(t), began: time.Now(), ca: kit.NewCA(), signing: kit.SigningKey("sim-1"), laws: newLaws()}
	f.net = newNetwork(f, c.Link)
	for i := range c.Providers {
		f.Providers = append(f.Providers, newProvider(f, fmt.Sprintf("p%d", i)))
	}
	for i := range c.Hosts {
		f.Hosts = append(f.Hosts, newHost(f, hostName(i)))
	}
	f.Commit(func(host string, _ []document.Need) []document.Need { return f.needs(host) })
	f.Publish(f.Providers...)
	f.Deploy(f.Hosts...)
	return f
}

// Boot starts activation on all hosts at the same time.
func (f *Fleet) Boot() {
	for _, h := range f.Hosts {
		h.Start()
	}
}

// Up starts all providers of the fleet that are stopped.
func (f *Fleet) Up() {
	for _, p := range f.Providers {
		p.Start()
	}
}

// Down stops all providers, so that hosts get no answers.
func (f *Fleet) Down() {
	for _, p := range f.Providers {
		p.Stop()
	}
}

// Calm ends all simulated faults of the network, of processes and of clocks. It starts all hosts
// and providers with the newest commit.
func (f *Fleet) Calm() {
	f.log("calm")
	f.net.calm()
	for _, p := range f.Providers {
		p.process.die(-p.pending())
		p.Skew(0)
	}
	for _, h := range f.Hosts {
		h.process.die(-h.pending())
	}
	f.Publish(f.Providers...)
	f.Up()
	f.Boot()
}

// Settle waits until every need of the hosts is in its final state. If that takes longer than the
// given duration, it records a violation of the simulation's rules.
func (f *Fleet) Settle(within time.Duration) {
	f.Helper()
	begin := time.Now()
	for !f.settled() {
		if time.Since(begin) > within {
			for _, h := range f.Hosts {
				if open := h.open(); open != "" {
					f.violated("fulfilled", "%s after %s: %s", h.name, within, open)
				}
			}
			return
		}
		time.Sleep(time.Second)
	}
	f.log("settled after %s", time.Since(begin).Round(time.Second))
}

func (f *Fleet) settled() bool {
	return !slices.ContainsFunc(f.Hosts, func(h *Host) bool { return h.open() != "" })
}

// Sleep lets the duration d pass on the virtual clock, and then waits until all goroutines are
// blocked.
func (f *Fleet) Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rand returns a source of random numbers for one purpose. The numbers depend only on the seed and
// the purpose.
func (f *Fleet) rand(purpose ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, purpose...)
	return rand.New(rand.NewPCG(f.seed, h.Sum64()))
}

func (f *Fleet) must(err error) {
	if err != nil {
		f.Helper()
		f.Fatal(err)
	}
}

// log adds a line to the log of the story, which is printed if a law is violated.
func (f *Fleet) log(format string, args ...any) {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf("%12s  %s", time.Since(f.began).Round(time.Millisecond), fmt.Sprintf(format, args...)))
}

// count counts a fault or its effect, so that a scenario can check that the fault did occur.
func (f *Fleet) count(what string) {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	f.seen[what]++
}

// Seen returns how often an event has occurred. The name of the event is "killed", "again" for an
// answer that a provider repeated, or the code of an error that a host received.
func (f *Fleet) Seen(what string) int {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	return f.seen[what]
}

// Want fails the scenario if an event occurred fewer times than required.
func (f *Fleet) Want(what string, least int) {
	f.Helper()
	if n := f.Seen(what); n < least {
		f.Errorf("the scenario was idle: %q was seen %d times, want %d", what, n, least)
	}
}

// tail returns the last lines of a story's log, which are printed if a law is violated.
func (f *Fleet) tail() string {
	const most = 400
	return strings.Join(f.lines[max(0, len(f.lines)-most):], "\n")
}

// Deaths makes processes end suddenly, as in a crash. The arguments are the numbers of deaths among
// all hosts and among all providers, which are spread evenly. The seed of the simulation determines
// the moments.
func (f *Fleet) Deaths(hosts, providers int) {
	for i := range hosts {
		f.Hosts[i%len(f.Hosts)].die(1)
	}
	for i := range providers {
		f.Providers[i%len(f.Providers)].die(1)
	}
}

// Part cuts the network between a host and a provider until Heal is called. Their connections stay
// open and get no errors, but no data arrives.
func (f *Fleet) Part(h *Host, p *Provider) {
	f.log("%s and %s are parted", h.name, p.name)
	f.net.part(h.name, p.name, true)
}

// Heal restores the network between a host and a provider after Part.
func (f *Fleet) Heal(h *Host, p *Provider) {
	f.log("%s and %s reach each other", h.name, p.name)
	f.net.part(h.name, p.name, false)
}
