package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/status"
)

// agentEnv makes this program the forwarder of a state directory.
const agentEnv = "FLORETE_BENCH_AGENT"

func serve(dir string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if err := forward.Run(ctx, forward.Config{Layout: florete.Layout(dir), Socket: dir + "/agent.sock", Log: log}); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// forwarders runs two; what is sent to addr goes through both to upstream.
func forwarders(upstream string) (addr string, stop func(), err error) {
	var t tb
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	c := agenttest.NewCluster(&t, upstream)
	c.Publish.Publish[0].Protocol, c.Reach.Reach[0].Protocol = florete.UDP, florete.UDP
	c.AcceptUrsula()
	c.AcceptLaptop()
	var started []*exec.Cmd
	stop = func() {
		for _, cmd := range started {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
		}
		for _, dir := range t.dirs {
			os.RemoveAll(dir)
		}
	}
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), agentEnv+"="+string(h.Layout))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			stop()
			return "", nil, err
		}
		started = append(started, cmd)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if r, _, err := status.Fetch(context.Background(), h.Socket()); err == nil && r.State == "running" {
				break
			} else if time.Now().After(deadline) {
				stop()
				return "", nil, fmt.Errorf("%s does not run: %v", h.Name, err)
			}
		}
	}
	return c.Local, stop, nil
}

// tb makes a test's cluster without a test.
type tb struct {
	testing.TB
	dirs []string
}

func (*tb) Helper() {}

func (t *tb) TempDir() string {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		panic(err)
	}
	t.dirs = append(t.dirs, dir)
	return dir
}
