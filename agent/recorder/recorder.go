// Package recorder records SSH sessions on the host where they run.
//
// sshd runs flor ssh session for each session of a person at a service that records (Run). That
// program runs the person's shell or command, under the person's account, and passes what it writes
// to the recorder, which seals it to files that the account cannot read (Serve). The two talk over a
// Unix socket. If the recorder cannot write, there is no session: Run starts nothing before the
// recorder has agreed, and ends the session when the recorder closes the connection.
//
// The recorder is a process of its own, because the forwarder, which talks to the network, may not
// write files, and because a recording outlives a reload of the forwarder.
package recorder

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/unixsock"
)

// Socket returns the path of the recorder's socket.
func Socket(m hostdir.Instance) string { return m.Run() + "/recorder.sock" }

// Config describes the recorder of a host.
type Config struct {
	Layout hostdir.Layout
	Agent  string // path of the forwarder's status socket
	Log    *slog.Logger

	// Reserve is the number of bytes that must stay free on the file system with the recordings. The
	// default is DefaultReserve.
	Reserve uint64

	// Idle is the interval at which Serve looks whether a session is under way, and returns if there
	// is none. The default is DefaultIdle.
	Idle time.Duration
}

// DefaultReserve leaves a host enough room for its documents and logs.
const DefaultReserve = 256 << 20

// DefaultIdle lets an upgraded program record the sessions that begin at most ten minutes after the
// last one ended: systemd starts it when a session begins.
const DefaultIdle = 10 * time.Minute

// Time between two pieces of a recording, and limits on what a client may send.
const (
	flushEvery = time.Second
	greeting   = 10 * time.Second // for the hello
	maxHello   = 64 << 10
	maxFrame   = 64 << 10
)

// Limits of sessions under way. An account that may log in with a certificate does not compete with
// other accounts.
const (
	perAccount = 128
	total      = 1024
)

// hello is the first message of a client, a line of JSON. It describes the session.
type hello struct {
	From, To      netip.AddrPort // addresses of the connection that sshd accepted
	Command       string         `json:",omitempty"` // empty for a login shell
	Terminal      bool
	Width, Height int
	Term          string `json:",omitempty"` // type of the terminal
}

// answer is a message of the recorder, a line of JSON. The first answers the hello. A later one ends
// the session with an error, or confirms that the recording is complete.
type answer struct {
	Recorded bool   `json:",omitempty"`
	Complete bool   `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// Types of the frames that a client sends after the first answer. A frame is its type, the length of
// its content as four bytes, and the content.
const (
	frameOutput = 'o'
	frameResize = 'r' // width and height, four bytes each
	frameExit   = 'x' // exit status, four bytes
)

// Serve records sessions whose clients connect to ln, until ctx ends or nobody uses it. It first
// finishes the recordings that an earlier process did not finish.
func Serve(ctx context.Context, ln *net.UnixListener, c Config) error {
	c.Reserve = cmp.Or(c.Reserve, DefaultReserve)
	d := &directory{layout: c.Layout, log: c.Log}
	d.recover()
	r := &recorder{Config: c, dir: d}
	limits := unixsock.Limits{Each: perAccount, Total: total, Named: func(_ *net.UnixConn, uid uint32) bool { return r.mayLogIn(uid) }}
	used := &inUse{UnixListener: ln, look: cmp.Or(c.Idle, DefaultIdle)}
	accept := conns.Patient(limits.Listen(used), nil).Accept
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errIdle) {
				return nil
			}
			return err
		}
		used.sessions.Add(1)
		running.Go(func() {
			defer used.sessions.Add(-1)
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if err := r.serve(ctx, conn); err != nil {
				c.Log.Error("session not recorded", "err", err)
				_ = conn.SetWriteDeadline(time.Now().Add(greeting))
				_ = json.NewEncoder(conn).Encode(answer{Error: err.Error()})
			}
		})
	}
}

// inUse is a listener whose Accept fails with errIdle if there is no session when it looks. A
// client that connects then is served by the next process.
type inUse struct {
	*net.UnixListener
	look     time.Duration // interval
	sessions atomic.Int64  // sessions under way
}

var errIdle = errors.New("no session is under way")

func (l *inUse) Accept() (net.Conn, error) {
	for {
		_ = l.SetDeadline(time.Now().Add(l.look))
		conn, err := l.UnixListener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
		if l.sessions.Load() == 0 {
			return nil, errIdle
		}
	}
}

type recorder struct {
	Config
	dir *directory
}

// mayLogIn reports whether a role names the account with this uid for logins on this host.
func (r *recorder) mayLogIn(uid uint32) bool {
	u, err := nss.LookupID(int(uid))
	if err != nil {
		return false
	}
	doc, err := r.Layout.Manifest()
	return err == nil && sshlogin.NamesAccount(doc.Manifest(), u.Username)
}

// serve records one session.
func (r *recorder) serve(ctx context.Context, conn net.Conn) error {
	peer, err := unixsock.Peer(conn.(syscall.Conn))
	if err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Now().Add(greeting))
	in := bufio.NewReaderSize(conn, maxHello)
	line, err := in.ReadSlice('\n')
	var h hello
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return fmt.Errorf("uid %d: not a client of this recorder: %w", peer.Uid, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	s, err := r.describe(ctx, peer.Uid, h)
	if err != nil {
		return err
	}
	if s.to == nil {
		return json.NewEncoder(conn).Encode(answer{})
	}
	if err := Room(r.Layout.Recordings(), r.Reserve); err != nil {
		return err
	}
	r.dir.removeOld(time.Now().AddDate(0, 0, -s.days))
	f, err := r.dir.begin(s.Session, time.Now())
	if err != nil {
		return err
	}
	cut := true
	defer func() { f.end(cut, time.Now()) }()
	w, err := recording.NewWriter(f.File, s.to, s.header(h), time.Now())
	if err != nil {
		return err
	}
	f.writer = w
	if err := json.NewEncoder(conn).Encode(answer{Recorded: true}); err != nil {
		return nil // the client is gone
	}
	r.Log.Info("session is recorded", "file", f.name, "service", s.Service.Short(), "caller", s.Caller, "account", s.Account)
	ended, err := r.record(ctx, in, w)
	if !ended {
		return err
	}
	cut = false
	f.end(cut, time.Now())
	return json.NewEncoder(conn).Encode(answer{Complete: true})
}

// described is a session, and to whom it is recorded.
type described struct {
	recording.Session
	to   []age.Recipient // none if the service does not record
	days int             // the longest time that a service of this host keeps recordings
}

// describe finds out whose session a client has announced. The kernel tells the account, and the
// forwarder the person who is behind the connection of sshd, as well as the service. So a session
// cannot be recorded as that of a person who is not connected, or who may not log in as the account.
func (r *recorder) describe(ctx context.Context, uid uint32, h hello) (s described, err error) {
	u, err := nss.LookupID(int(uid))
	if err != nil {
		return s, err
	}
	root := uint32(0)
	who, err := whois.Fetch(ctx, whois.Beside(r.Agent), whois.Query{From: h.From, To: h.To, Protocol: document.TCP, As: &root})
	if err != nil {
		return s, fmt.Errorf("login as %s: %w", u.Username, err)
	}
	s.Session = recording.Session{Service: who.Service, Caller: who.Caller, Account: u.Username, Terminal: h.Terminal}
	doc, err := r.Layout.Manifest()
	if err != nil {
		return s, err
	}
	for _, p := range doc.Manifest().Forwarder.Publish {
		if p.Record == nil {
			continue
		}
		s.days = max(s.days, p.Record.Days)
		if p.ID != who.Service {
			continue
		}
		for _, text := range p.Record.Recipients {
			to, err := agefile.Recipient(text)
			if err != nil {
				return s, fmt.Errorf("record.recipients of %s: %q: %w", who.Service.Short(), text, err)
			}
			s.to = append(s.to, to)
		}
	}
	if s.to == nil {
		return s, nil
	}
	return s, sshlogin.Permitted(r.Layout, doc.Manifest(), who.Caller, u.Username, time.Now())
}

func (s described) header(h hello) recording.Header {
	head := recording.Header{Width: h.Width, Height: h.Height, Command: h.Command, Session: s.Session}
	head.Title = fmt.Sprintf("%s as %s at %s", s.Caller.ShortIn(s.Service.TrustDomain()), s.Account, s.Service.Short())
	if h.Term != "" {
		head.Env = map[string]string{"TERM": h.Term}
	}
	return head
}

// Room returns an error if the file system with a directory has less than reserve bytes free. The
// recorder then refuses sessions.
func Room(dir string, reserve uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := s.Bavail * uint64(s.Bsize); free < reserve {
		return fmt.Errorf("%s: %d MiB are free, want %d MiB: remove files there", dir, free>>20, reserve>>20)
	}
	return nil
}

// record writes the frames of a client, until the session or ctx ends. The result ended reports
// whether the client told the end of the session. If the recording cannot go on, it returns an
// error.
func (r *recorder) record(ctx context.Context, in io.Reader, w *recording.Writer) (ended bool, err error) {
	frames, failed, done := make(chan frame), make(chan error, 1), make(chan struct{})
	defer close(done)
	go func() {
		for {
			f, err := readFrame(in)
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- f:
			case <-done:
				return
			}
		}
	}()
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	flush := func() error {
		if w.Pending() == 0 {
			return nil
		}
		if err := Room(r.Layout.Recordings(), r.Reserve); err != nil {
			return err
		}
		return w.Flush()
	}
	for {
		select {
		case f := <-frames:
			if err := f.add(w, time.Now()); err != nil {
				return false, errors.Join(err, flush())
			}
			if f.kind == frameExit {
				return true, flush()
			}
			if w.Pending() >= recording.MaxPending {
				if err := flush(); err != nil {
					return false, err
				}
			}
		case <-tick.C:
			if err := flush(); err != nil {
				return false, err
			}
		case err := <-failed:
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				r.Log.Warn("client of a recording failed", "err", err)
			}
			return false, flush()
		}
	}
}
