package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/conns"
)

const (
	drainFor = 10 * time.Minute // unless the manifest sets another
	// maxDraining is the maximum number of draining processes. With one more, the oldest ends.
	maxDraining = 4
	olderPrefix = "older-"
)

// inherit receives the files and state of the process before. Nothing changes yet.
func (f *forwarder) inherit() error {
	var err error
	if f.before, err = handover.Take(status.Beside(f.Socket, "handover")); err != nil {
		return err
	}
	f.sockets = handover.InheritStore(f.before.Files)
	f.number, f.within = f.before.State.Number+1, f.before.State.Watchdog
	var all []older
	for name, file := range f.sockets.Others(olderPrefix) {
		c, err := net.FileConn(file)
		file.Close()
		if number, e := strconv.Atoi(name); e == nil && err == nil {
			all = append(all, older{number, c.(*net.UnixConn)})
		}
	}
	all = append(all, older{f.before.State.Number, f.before.Conn()})
	slices.SortFunc(all, func(a, b older) int { return cmp.Compare(a.number, b.number) })
	f.older.all = all
	return nil
}

// olders contains all draining processes, oldest first.
type olders struct {
	mu  sync.Mutex
	all []older
}

// living returns the processes that have not ended.
func (o *olders) living() []older {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(x older) bool {
		if x.alive() {
			return false
		}
		x.conn.Close()
		return true
	})
	return slices.Clone(o.all)
}

// end ends all but the newest few processes.
func (o *olders) end(but int) {
	living := o.living()
	for _, x := range living[:max(len(living)-but, 0)] {
		x.conn.Close()
	}
}

// report returns the connections that the processes carry.
func (o *olders) report(socket string) (all []status.Draining) {
	for _, x := range o.living() {
		if r, _, err := status.Fetch(context.Background(), drainingSocket(socket, "status", x.number)); err == nil {
			all = append(all, status.Draining{Process: r.Process, Connections: r.Connections, PeerConnections: r.PeerConnections})
		}
	}
	return all
}

// sockets returns the sockets on which the processes answer about their connections.
func (o *olders) sockets(socket, word string) (all []string) {
	for _, x := range o.living() {
		all = append(all, drainingSocket(socket, word, x.number))
	}
	return all
}

// older is a draining process. The connection to it is open as long as it runs.
type older struct {
	number int
	conn   *net.UnixConn
}

// alive reports whether the process is still running.
func (o older) alive() bool {
	raw, err := o.conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return errors.Is(err, unix.EAGAIN)
}

// takeOver makes this process the serving one, with the current state on disk.
func (f *forwarder) takeOver() error {
	s := f.read(f.snapshot.Load())
	if f.before.State.Running && s.identities.SVID(s.manifest.Identity.ID) == nil {
		return fmt.Errorf("the forwarder that runs serves, and this one could not: %s", strings.Join(s.problems, "; "))
	}
	if err := f.Starter.Ready(); err != nil {
		return err
	}
	f.before.TakeOver()
	f.older.end(maxDraining)
	return nil
}

// offer returns the files and state for the next process.
func (f *forwarder) offer(own sockets) (s handover.State, files []*os.File, err error) {
	add := func(c syscall.Conn, name string) {
		file, failed := handover.Dup(c, name)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s socket: %w", name, failed))
			return
		}
		files = append(files, file)
	}
	files = f.sockets.Files()
	for name, ln := range own {
		add(ln.(syscall.Conn), handover.Own+name)
	}
	for _, o := range f.older.living() {
		add(o.conn, olderPrefix+strconv.Itoa(o.number))
	}
	if f.in != nil {
		passes, failed := f.in.Offer()
		files, err = append(files, passes...), errors.Join(err, failed)
	}
	return handover.State{Number: f.number, Watchdog: f.within, Running: f.in != nil}, files, err
}

// successor returns the process that has taken over, or nil if ctx ended before.
func (f *forwarder) successor(ctx context.Context, own sockets) *handover.Next {
	ln := own["handover"].(*net.UnixListener)
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	failures := conns.Failures{Log: f.Log}
	for {
		conn, err := ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			failures.Pause("handover", err)
			continue
		}
		if next := f.give(ctx, conn, own); next != nil {
			return next
		}
	}
}

// give lets another process take over, unless that process ends before. The loop is blocked
// meanwhile, so that the offered files are complete.
func (f *forwarder) give(ctx context.Context, conn *net.UnixConn, own sockets) *handover.Next {
	f.turn.Lock()
	defer f.turn.Unlock()
	next, err := handover.Offer(ctx, conn, func() (handover.State, []*os.File, error) { return f.offer(own) })
	if err != nil {
		f.Log.Warn("handover", "error", err)
		return nil
	}
	os.Unsetenv("NOTIFY_SOCKET") // systemd notifies the next process from now on
	own.unlink(false)
	f.draining = true
	if f.in != nil {
		f.out.Drain()
		f.in.Drain()
	}
	next.Yield()
	f.older.end(0) // closes only this process's copies; the next process has them
	return next
}

// drain continues until this process carries nothing, the time for draining is over, or the next
// process is gone.
func (f *forwarder) drain(ctx context.Context, next *handover.Next, w *watch.Watcher) (err error) {
	left, end := context.WithTimeout(ctx, f.drainTimeout())
	defer end()
	f.Log.Info("draining", "for", f.drainTimeout())
	answer := func(word string, serve func(net.Listener)) {
		ln, err := status.Listen(drainingSocket(f.Socket, word, f.number), 0o660)
		if err != nil {
			f.Log.Warn("draining", "error", err) // the status will lack this process's connections
			return
		}
		serve(ln)
	}
	parallel(
		func() { answer("status", func(ln net.Listener) { status.Serve(left, ln, f.status) }) },
		func() {
			answer("whois", func(ln net.Listener) { whois.Serve(left, ln, &f.whois, func() []string { return nil }) })
		},
		func() {
			defer end()
			next.Wait(left)
		},
		func() {
			defer end()
			if f.in != nil {
				parallel(func() { f.in.Wait(left) }, func() { f.out.Wait(left) })
			}
		},
		func() { err = f.follow(left, w) },
	)
	f.Log.Info("drained")
	return err
}

// drainingSocket returns the path of a socket on which a draining process answers the newest one.
func drainingSocket(socket, word string, number int) string {
	return status.Beside(socket, word+"-"+strconv.Itoa(number))
}

func (f *forwarder) drainTimeout() time.Duration {
	if s := f.snapshot.Load().manifest.Forwarder.Drain; s > 0 {
		return time.Duration(s) * time.Second
	}
	return drainFor
}
