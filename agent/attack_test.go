//go:build !race

// Memory under the race detector is another: tests/run runs these without.

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"florete"
	"florete/agent/identity"
	"florete/agent/transport"
	"florete/agent/usage"
	"florete/agent/wire"
)

// attacked is a cluster whose publishing forwarder is a process of its own. Alice attacks
// it, Bob uses it.
type attacked struct {
	*cluster
	pid  int
	peak atomic.Int64 // of its memory, in MiB
}

func attack(t *testing.T, upstream string) *attacked {
	t.Helper()
	a := &attacked{cluster: newCluster(t, upstream)}
	a.Publish.Publish[0].Allow = []florete.Allow{{ID: alice}, {ID: bob}}
	a.AcceptUrsula(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentEnv+"="+string(a.Ursula.Layout))
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.pid = cmd.Process.Pid
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		cmd.Process.Kill()
		cmd.Wait()
		if info, err := log.Stat(); err != nil || info.Size() > 64<<10 {
			t.Errorf("log of the forwarder: %d bytes, %v, want few", info.Size(), err)
		}
	})
	waitFor(t, "ursula to run", func() bool { return report(t, a.Ursula).State == "running" })
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				a.peak.Store(max(a.peak.Load(), a.rss(t)))
			}
		}
	}()
	return a
}

// rss is the memory of the forwarder, in MiB.
func (a *attacked) rss(t *testing.T) (kib int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	return 0
}

// pool makes connections as callers of Laptop do.
func (a *attacked) pool(t *testing.T) *transport.Pool {
	t.Helper()
	laptop := a.Laptop.Identities(t)
	p, err := transport.NewPool(func() *identity.Set { return laptop }, &usage.Table{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (a *attacked) open(t *testing.T, p *transport.Pool, as florete.ID) (*transport.Stream, error) {
	t.Helper()
	target, err := florete.Dial(outline)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return p.Open(ctx, transport.Route{Caller: as, Target: target, Endpoints: []string{a.Publish.Listen}}, wire.TCP)
}

// others are let in until stop is called, which logs how long they waited.
func (a *attacked) others(t *testing.T) (stop func()) {
	t.Helper()
	p := a.pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	var slowest time.Duration
	var times int
	var running sync.WaitGroup
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			began := time.Now()
			st, err := a.open(t, p, bob)
			if err == nil {
				err = st.Answer(t.Context())
				transport.Reset(st.Stream, wire.Reset)
				st.Release()
			}
			if err != nil {
				t.Errorf("another caller, after %d that were let in: %v", times, err)
				return
			}
			slowest = max(slowest, time.Since(began))
			times++
		}
	})
	return func() {
		cancel()
		running.Wait()
		t.Logf("another caller: %d times, slowest %s", times, slowest)
		if times == 0 {
			t.Error("no other caller was let in")
		}
	}
}

// want bounds the memory at the peak and, in a while, afterwards.
func (a *attacked) want(t *testing.T, peak, after int64) {
	t.Helper()
	t.Logf("peak %d MiB, %d MiB at the end", a.peak.Load(), a.rss(t))
	if got := a.peak.Load(); got > peak {
		t.Errorf("peak %d MiB, want at most %d", got, peak)
	}
	waitFor(t, fmt.Sprintf("%d MiB", after), func() bool { return a.rss(t) <= after })
}

// TestStalledReaders: a peer sends as much as it can to a service that does not read.
func TestStalledReaders(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	a := attack(t, upstream(t, func(c *net.TCPConn) { c.SetReadBuffer(4096); <-ended }))
	stop := a.others(t)
	const most = 4 << 30
	var sent atomic.Int64
	var all sync.WaitGroup
	b := make([]byte, 32<<10)
	var pools []*transport.Pool
	for range 3 {
		p := a.pool(t)
		pools = append(pools, p)
		for range 1500 {
			st, err := a.open(t, p, alice)
			if err != nil {
				t.Logf("connection lost after %d MB: %v", sent.Load()>>20, err)
				break
			}
			all.Go(func() {
				defer st.Release()
				for sent.Load() < most {
					n, err := st.Write(b)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
		}
	}
	for last := int64(-1); last != sent.Load() && sent.Load() < most; time.Sleep(3 * time.Second) {
		last = sent.Load()
	}
	t.Logf("%d MB sent", sent.Load()>>20)
	stop()
	for _, p := range pools {
		p.Close()
	}
	all.Wait()
	a.want(t, 640, 160)
}

// TestRapidReset: a peer opens streams and resets them as fast as it can.
func TestRapidReset(t *testing.T) {
	a := attack(t, echo(t))
	stop := a.others(t)
	var left, full atomic.Int64
	left.Store(churned)
	var all sync.WaitGroup
	began := time.Now()
	for range 12 {
		p := a.pool(t)
		all.Go(func() {
			for left.Add(-1) >= 0 {
				st, err := a.open(t, p, alice)
				if errors.Is(err, transport.ErrFull) {
					full.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				transport.Reset(st.Stream, wire.Reset)
				st.Release()
			}
		})
	}
	all.Wait()
	t.Logf("%d streams in %s, %d not let in", churned, time.Since(began), full.Load())
	stop()
	a.want(t, 240, 160)
}

// TestIdleConnections: a peer makes connections and does nothing with them.
func TestIdleConnections(t *testing.T) {
	a := attack(t, echo(t))
	stop := a.others(t)
	in := 0
	for range 700 {
		p := a.pool(t)
		st, err := a.open(t, p, alice)
		if err == nil {
			err = st.Answer(t.Context())
		}
		if err == nil {
			in++
			transport.Reset(st.Stream, wire.Reset)
			st.Release()
		}
	}
	if in != 512 {
		t.Errorf("%d connections, want 512", in)
	}
	stop()
	a.want(t, 160, 160)
}
