package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
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

// Config of a Fleet.
type Config struct {
	Hosts     int // zero for 2
	Providers int // each runs all kinds, and hosts prefer the first; zero for 1
	Link      Link
	Lifetime  time.Duration // of SVIDs; zero for a day
	Every     time.Duration // how often hosts look for new documents; zero for 15 minutes
	Backoff   needstate.Backoff
}

// Fleet is hosts and providers in one bubble of virtual time. None of them runs
// before it is started.
type Fleet struct {
	Config
	Hosts     []*Host
	Providers []*Provider

	testing.TB
	seed    uint64
	dir     string
	began   time.Time
	ca      *kit.CA // whose issuing certificate is of no provider
	signing signature.SecretKey
	net     *network

	mu     sync.Mutex // of the documents
	serial int64

	lawsMu sync.Mutex
	laws
}

// newFleet makes a fleet that is a month old and has had no need fulfilled yet.
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
	f := &Fleet{Config: c, TB: t, seed: seed, dir: disk(t), began: time.Now(), ca: kit.NewCA(), signing: kit.SigningKey("sim-1"), laws: newLaws()}
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

// disk is a directory in memory where there is one: what is at stake here is order,
// not durability, and flushing to real disks takes real time.
func disk(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "florete-sim-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Boot starts all hosts at once.
func (f *Fleet) Boot() {
	for _, h := range f.Hosts {
		h.Start()
	}
}

// Up starts all providers.
func (f *Fleet) Up() {
	for _, p := range f.Providers {
		p.Start()
	}
}

// Down stops all providers.
func (f *Fleet) Down() {
	for _, p := range f.Providers {
		p.Stop()
	}
}

// Calm ends all faults: the network is good, nothing dies any more, clocks are
// right, and everybody runs on the newest commit.
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

// Settle waits until every need is as it should be, and calls it a violation when
// that takes longer.
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

// Sleep lets virtual time pass.
func (f *Fleet) Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rand is the source of chance for one purpose. What happens elsewhere does not
// change what it gives.
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

// log notes what happened, for when a law is violated.
func (f *Fleet) log(format string, args ...any) {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf("%12s  %s", time.Since(f.began).Round(time.Millisecond), fmt.Sprintf(format, args...)))
}

// count counts a fault or what came of one, so that a scenario can show that it
// was not idle.
func (f *Fleet) count(what string) {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	f.seen[what]++
}

// Seen is how often something happened: "killed", "again" (an answer given once
// more), or the code of an error that a host was told.
func (f *Fleet) Seen(what string) int {
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	return f.seen[what]
}

// Want fails the scenario when something that it is about did not happen.
func (f *Fleet) Want(what string, least int) {
	f.Helper()
	if n := f.Seen(what); n < least {
		f.Errorf("the scenario was idle: %q was seen %d times, want %d", what, n, least)
	}
}

// tail is the end of the log.
func (f *Fleet) tail() string {
	const most = 400
	return strings.Join(f.lines[max(0, len(f.lines)-most):], "\n")
}

// Deaths makes hosts and providers die so often, evenly spread, each time at a
// moment that the seed draws.
func (f *Fleet) Deaths(hosts, providers int) {
	for i := range hosts {
		f.Hosts[i%len(f.Hosts)].die(1)
	}
	for i := range providers {
		f.Providers[i%len(f.Providers)].die(1)
	}
}

// Part makes a host and a provider unreachable for each other; nothing tells them.
func (f *Fleet) Part(h *Host, p *Provider) {
	f.log("%s and %s are parted", h.name, p.name)
	f.net.part(h.name, p.name, true)
}

// Heal ends what Part began.
func (f *Fleet) Heal(h *Host, p *Provider) {
	f.log("%s and %s reach each other", h.name, p.name)
	f.net.part(h.name, p.name, false)
}
