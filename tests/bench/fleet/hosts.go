package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
)

// fleet is a set of hosts that run activation in this process.
type fleet struct {
	configs []activation.Config
	stop    func()
	began   time.Time

	dialed atomic.Int64 // number of connections

	mu       sync.Mutex
	changed  chan struct{}
	ready    []time.Duration       // for each host, the time until all needs were fulfilled
	inForce  map[int64][]time.Time // times by serial
	failures map[string]int        // numbers by code and end of the message
	hosts    int
}

// newFleet returns the hosts of a cluster, which are not started yet.
func newFleet(c cluster) *fleet {
	f := &fleet{changed: make(chan struct{}, 1), inForce: map[int64][]time.Time{}, failures: map[string]int{}, hosts: len(c.nodes)}
	for i, n := range c.nodes {
		f.configs = append(f.configs, f.config(c, i, n))
	}
	return f
}

func (f *fleet) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	f.began = time.Now()
	for _, config := range f.configs {
		all.Go(func() {
			if _, err := activation.Run(ctx, config); err != nil {
				fmt.Fprintln(os.Stderr, "error:", config.State, err)
			}
		})
	}
	f.stop = func() { cancel(); all.Wait() }
}

// dial returns a function with which a host connects to the provider. The function uses a different
// source address for each host, and counts the connections. It ignores the caller's timeout of two
// seconds, because all hosts share the processors of this machine.
func dial(i int, count *atomic.Int64) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 100, byte(i>>8), byte(i))}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		count.Add(1)
		return dialer.DialContext(context.WithoutCancel(ctx), network, address)
	}
}

// config returns the configuration of a host, whose disk is in memory.
func (f *fleet) config(c cluster, i int, n node) activation.Config {
	done, last := false, int64(0)
	var needs []hostreport.Need
	for _, need := range n.needs {
		needs = append(needs, hostreport.Need{ID: need.ID, Kind: need.Kind, State: hostdir.NeedFulfilled})
	}
	return activation.Config{
		State: hostdir.Layout(filepath.Join(n.dir, "state")), Closure: n.closure(), HostKey: n.hostKey(), Undivided: true,
		Dial:   dial(i, &f.dialed),
		Arm:    func(context.Context) error { return nil }, // on a real host this starts a process
		Notify: func(context.Context, string) error { return nil },
		Report: func(e event.Event) {
			f.note(func() {
				switch e.Event {
				case event.Failed:
					f.failures[e.Code+e.Message[strings.LastIndex(e.Message, ": ")+1:]]++
				case event.Documents:
					_, rest, _ := strings.Cut(e.Message, "serial ")
					fmt.Sscan(rest, &last)
					f.inForce[last] = append(f.inForce[last], time.Now())
				}
			})
		},
		Status: func(s event.Summary) {
			fulfilled := !slices.ContainsFunc(s.Needs, func(n event.Need) bool { return n.State != hostdir.NeedFulfilled })
			if fulfilled && !done {
				done = true
				f.note(func() { f.ready = append(f.ready, time.Since(f.began)) })
			}
		},
		HostReport: func(context.Context) hostreport.Report {
			r := hostreport.Report{Release: "bench", Format: document.NewestFormat, Units: []hostreport.Unit{}, Facts: hostreport.Facts{Capabilities: []string{}}}
			r.Documents, r.Needs = []document.Reported{{Kind: document.DocManifest, Serial: last}}, needs
			return r
		},
	}
}

func (f *fleet) note(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// until waits until all hosts have finished a step, such as putting documents in force. The
// function done returns the number of hosts that have finished it.
func (f *fleet) until(what string, done func() int) error {
	progress := time.NewTicker(5 * time.Second)
	defer progress.Stop()
	timeout := time.After(10 * time.Minute)
	for {
		f.mu.Lock()
		n, failures := done(), fmt.Sprint(f.failures)
		f.mu.Unlock()
		if n == f.hosts {
			if failures != "map[]" {
				fmt.Fprintf(os.Stderr, "failures so far: %s\n", failures)
			}
			return nil
		}
		select {
		case <-f.changed:
		case <-progress.C:
			fmt.Fprintf(os.Stderr, "%s: %d of %d hosts, failures %s\n", what, n, f.hosts, failures)
		case <-timeout:
			return fmt.Errorf("%s: %d of %d hosts after ten minutes, failures %s", what, n, f.hosts, failures)
		}
	}
}

// arrival is the cost of starting all hosts, until all their needs are fulfilled.
type arrival struct {
	took        time.Duration
	used        time.Duration // processor time of the hosts
	allocations uint64
	connections int64
}

// arrive starts all hosts and waits until all their needs are fulfilled.
func (f *fleet) arrive() (a arrival, err error) {
	own, allocated := ownUse(), allocations()
	f.start()
	a.took, err = f.fulfilled()
	if err != nil {
		f.stop()
		return a, err
	}
	a.used, a.allocations, a.connections = ownUse()-own, allocations()-allocated, f.dialed.Load()
	return a, nil
}

// fulfilled waits until all needs of all hosts are fulfilled. It returns the time that the slowest
// host took.
func (f *fleet) fulfilled() (time.Duration, error) {
	if err := f.until("fulfilled", func() int { return len(f.ready) }); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Max(f.ready), nil
}

// applied waits until all hosts have put a version of the documents in force. It returns the time
// that each host took.
func (f *fleet) applied(serial int64, since time.Time) (took []time.Duration, err error) {
	err = f.until("applied", func() int { return len(f.inForce[serial]) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.inForce[serial] {
		took = append(took, at.Sub(since))
	}
	return took, err
}
