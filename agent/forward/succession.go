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
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostdir"
)

const (
	drainFor = 10 * time.Minute // used unless the manifest sets another duration
	// maxDraining is the maximum number of draining processes. If another process begins to drain,
	// the oldest one is ended.
	maxDraining = 4
	olderPrefix = "older-"
)

// inherit receives the open files and the state of the running process, for which this process
// takes over. The running process continues to serve.
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

// olders contains the earlier forwarder processes that are still draining their connections, oldest
// first.
type olders struct {
	mu  sync.Mutex
	all []older
}

// living returns the draining processes that are still running.
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

// end ends all draining processes except the newest ones. The argument but is the number of
// processes that continue.
func (o *olders) end(but int) {
	living := o.living()
	for _, x := range living[:max(len(living)-but, 0)] {
		x.conn.Close()
	}
}

// report returns the connections that the draining processes still carry, for the status.
func (o *olders) report(socket string) (all []status.Draining) {
	for _, x := range o.living() {
		if r, _, err := status.Fetch(context.Background(), drainingSocket(socket, "status", x.number)); err == nil {
			all = append(all, status.Draining{Process: r.Process, Connections: r.Connections, PeerConnections: r.PeerConnections, Sessions: r.Sessions})
		}
	}
	return all
}

// sockets returns the paths of the sockets on which the draining processes answer one kind of
// request, which is given by word. For example, they answer requests for the callers of their
// connections.
func (o *olders) sockets(socket, word string) (all []string) {
	for _, x := range o.living() {
		all = append(all, drainingSocket(socket, word, x.number))
	}
	return all
}

// older is a draining process. The connection to it stays open as long as the process runs.
type older struct {
	number int
	conn   *net.UnixConn
}

// alive reports whether the process is still running.
func (o older) alive() bool {
	err := conns.Control(o.conn, func(fd int) error {
		_, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err
	})
	return errors.Is(err, unix.EAGAIN)
}

// takeOver makes this process serve in place of the running one, with the state that is now on
// disk.
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

// offer returns the open files and the state that the next process needs to take over.
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

// successor waits for a process that takes over from this one, and returns it. It returns nil if
// ctx ends first.
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

// give lets another process take over. It returns nil if that process ends before it has taken
// over. The loop is blocked during the handover, so that it cannot open sockets that are not
// offered.
func (f *forwarder) give(ctx context.Context, conn *net.UnixConn, own sockets) *handover.Next {
	f.turn.Lock()
	defer f.turn.Unlock()
	next, err := handover.Offer(ctx, conn, func() (handover.State, []*os.File, error) { return f.offer(own) })
	if err != nil {
		f.Log.Warn("handover", "error", err)
		return nil
	}
	os.Unsetenv("NOTIFY_SOCKET") // from now on, the next process notifies systemd
	own.unlink(false)
	f.draining = true
	if f.in != nil {
		f.out.Drain()
		f.in.Drain()
	}
	f.toNext = f.answerNext()
	next.Yield()
	f.older.end(0) // closes this process's copies only; the next process has its own
	return next
}

// answerNext opens the sockets on which this process, while it drains, answers the next one. They
// must be open before that process begins: it is asked about connections of both at once.
func (f *forwarder) answerNext() sockets {
	all := sockets{}
	for _, word := range []string{"status", "whois", "session"} {
		ln, err := status.Listen(drainingSocket(f.Socket, word, f.number), 0o660)
		if err != nil {
			f.Log.Warn("draining", "error", err) // the answers will lack this process's connections
			continue
		}
		all[word] = ln
	}
	return all
}

// drain lets the remaining connections end after another process has taken over. It returns when
// this process carries no connections, when the time for draining is over, or when the next process
// has ended.
func (f *forwarder) drain(ctx context.Context, next *handover.Next, w *hostdir.Watcher) (err error) {
	left, end := context.WithTimeout(ctx, f.drainTimeout())
	defer end()
	f.Log.Info("draining", "for", f.drainTimeout())
	answer := func(word string, serve func(net.Listener)) {
		if ln := f.toNext[word]; ln != nil {
			serve(ln)
		}
	}
	parallel(
		func() { answer("status", func(ln net.Listener) { status.Serve(left, ln, f.status) }) },
		func() {
			answer("whois", func(ln net.Listener) { whois.Serve(left, ln, &f.whois, func() []string { return nil }) })
		},
		func() {
			answer("session", func(ln net.Listener) { status.ServeSessions(left, ln, &f.sessions, func() []string { return nil }) })
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

// drainingSocket returns the path of a socket on which a draining process answers the serving
// process.
func drainingSocket(socket, word string, number int) string {
	return status.Beside(socket, word+"-"+strconv.Itoa(number))
}

func (f *forwarder) drainTimeout() time.Duration {
	if s := f.snapshot.Load().manifest.Forwarder.Drain; s > 0 {
		return time.Duration(s) * time.Second
	}
	return drainFor
}
