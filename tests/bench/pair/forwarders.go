package pair

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"testing"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit/agenttest"
)

const (
	// agentEnv is the environment variable that makes this program run as a forwarder. It names the
	// forwarder's state directory.
	agentEnv = "FLORETE_BENCH_AGENT"
	// ProfileEnv is the environment variable that makes forwarders write profiles of their whole
	// lifetime. It names the directory for the profiles.
	ProfileEnv = "FLORETE_BENCH_PROFILE"
)

// Child runs a forwarder and then exits, if StartForwarders started this process for that. In any
// other process, it returns at once. Call it first in the main function of a benchmark.
func Child() {
	dir := os.Getenv(agentEnv)
	if dir == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go forward.AdaptProcessors(ctx)
	profiled, err := profile(filepath.Base(dir))
	if err == nil {
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
		err = forward.Run(ctx, forward.Config{Layout: hostdir.Layout(dir), Socket: dir + "/agent.sock", Log: log})
		profiled()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Forwarders starts two forwarders as the ends of a tunnel. Connections to the address p.Addr reach
// upstream through the tunnel, with the given protocol and over the given transport.
func Forwarders(upstream string, protocol document.Protocol, over document.Transport) (p *Pair, err error) {
	p = &Pair{}
	defer func() {
		if r := recover(); r != nil { // a panic of tb
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			p.Stop()
		}
	}()
	c := agenttest.NewCluster(p.TB(), upstream)
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = protocol, protocol
	c.Reach.Reach[0].Transport = over
	c.AcceptUrsula()
	c.AcceptLaptop()
	p.Addr = c.Local
	return p, p.StartForwarders(c.Ursula, c.Laptop)
}

// Relayed starts two forwarders as the ends of a tunnel, and a relay through which alone they reach
// each other. Connections to the address p.Addr reach upstream through the tunnel. Both ends connect
// to the relay over the given transport.
func Relayed(upstream string, over document.Transport) (p *Pair, err error) {
	p = &Pair{}
	defer func() {
		if r := recover(); r != nil { // a panic of tb
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			p.Stop()
		}
	}()
	agenttest.Relays, agenttest.Transport = 1, over
	defer func() { agenttest.Relays, agenttest.Transport = 0, "" }()
	c := agenttest.NewCluster(p.TB(), upstream)
	p.Addr = c.Local
	return p, p.StartForwarders(c.Relays[0], c.Ursula, c.Laptop)
}

// TB returns a testing.TB for a benchmark program, which is not a test. Pass it to package
// agenttest, which creates hosts. Its methods that would fail a test panic.
func (p *Pair) TB() testing.TB { return &tb{pair: p} }

// StartForwarders starts a forwarder for each of the given hosts, each in its own process, and
// waits until all of them run.
func (p *Pair) StartForwarders(hosts ...*agenttest.Host) error {
	for _, h := range hosts {
		if err := p.StartSelf(agentEnv + "=" + string(h.Layout)); err != nil {
			return err
		}
		err := Wait(func() error {
			r, _, err := status.Fetch(context.Background(), h.Socket())
			if err == nil && r.State != "running" {
				err = fmt.Errorf("%s is %s", h.Name, r.State)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tb implements testing.TB outside of a test, so that a benchmark can use test helpers.
type tb struct {
	testing.TB
	pair *Pair
}

func (*tb) Helper() {}

func (t *tb) TempDir() string {
	dir, err := t.pair.Dir()
	if err != nil {
		panic(err)
	}
	return dir
}

// profile starts profiling if ProfileEnv is set. It returns a function that ends profiling and
// writes the profiles.
func profile(name string) (end func(), err error) {
	dir := os.Getenv(ProfileEnv)
	if dir == "" {
		return func() {}, nil
	}
	runtime.MemProfileRate = 4 << 10
	cpu, err := os.Create(filepath.Join(dir, name+".cpu"))
	if err == nil {
		err = pprof.StartCPUProfile(cpu)
	}
	live := make(chan os.Signal, 1)
	signal.Notify(live, syscall.SIGUSR1)
	go func() {
		for range live {
			for _, kind := range []string{"heap", "goroutine"} {
				if f, err := os.Create(filepath.Join(dir, name+"."+kind)); err == nil {
					pprof.Lookup(kind).WriteTo(f, 1)
					f.Close()
				}
			}
		}
	}()
	return pprof.StopCPUProfile, err
}
