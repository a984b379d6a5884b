package recorder

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
)

var shell, alice = kit.ID("service/eu/shell"), kit.ID("user/alice")

// host is a host whose forwarder has brought a connection of alice to its SSH service.
type host struct {
	Config
	socket   string // of the recorder
	key      *age.X25519Identity
	from, to netip.AddrPort // of the connection
	stop     func() error
}

func newHost(t *testing.T, change func(*document.Published)) *host {
	t.Helper()
	dir := t.TempDir()
	key, err := age.GenerateX25519Identity()
	check(t, err)
	h := &host{Config: Config{Layout: hostdir.Layout(dir), Agent: filepath.Join(dir, "status.sock"), Log: slog.New(slog.DiscardHandler)}, socket: filepath.Join(dir, "recorder.sock"), key: key}
	check(t, os.Mkdir(h.Layout.Recordings(), 0o700))
	me, err := nss.Current()
	check(t, err)
	p := document.Published{
		ID: shell, Upstream: "127.0.0.1:22", Remote: document.RemoteSSH, Record: &document.Record{Recipients: []string{key.Recipient().String()}, Days: 90},
		Allow: []document.Allow{{ID: alice, Logins: []document.Login{{Account: me.Username}}}},
	}
	if change != nil {
		change(&p)
	}
	kit.Swap(hostdir.Current(h.Layout.Documents()), kit.Document(1, document.Manifest{
		Cluster: "demo", Host: "eu", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/eu"), SSHHostKey: "ssh-ed25519 AAAA"},
		Providers: map[string]map[string]document.Provider{}, Forwarder: document.Forwarder{Publish: []document.Published{p}},
	}).Files())

	var table whois.Table
	ln, err := net.Listen("unix", whois.Beside(h.Agent))
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		whois.Serve(ctx, ln, &table, func() []string { return nil })
	}()
	t.Cleanup(func() { cancel(); <-served })
	sshd, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { sshd.Close() })
	conn, forget, err := table.Dial(whois.Upstream{Caller: alice, Service: shell, Protocol: document.TCP}, func() (net.Conn, error) { return net.Dial("tcp", sshd.Addr().String()) })
	check(t, err)
	t.Cleanup(func() { forget(); conn.Close() })
	h.from, h.to = netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(sshd.Addr().String())
	return h
}

// start runs the recorder until the test ends, or until h.stop.
func (h *host) start(t *testing.T) {
	t.Helper()
	_ = os.Remove(h.socket)
	ln, err := net.Listen("unix", h.socket)
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln.(*net.UnixListener), h.Config) }()
	stopped := false
	h.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { check(t, h.stop()) })
}

func (h *host) hello() hello {
	return hello{From: h.from, To: h.to, Terminal: true, Width: 80, Height: 24}
}

// finished returns the summaries of finished recordings, once there are n.
func (h *host) finished(t *testing.T, n int) []recording.Summary {
	t.Helper()
	var f recording.Finished
	kit.Eventually(t, fmt.Sprintf("%d recordings are finished", n), func() (is bool) {
		var err error
		f, err = recording.ReadFinished(h.Layout.FinishedRecordings())
		check(t, err)
		return len(f.Summaries) == n
	})
	return f.Summaries
}

// wantRecording checks that a recording has the digest in its summary, and contains a text.
func (h *host) wantRecording(t *testing.T, s recording.Summary, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.Layout.Recordings(), s.File))
	check(t, err)
	var cast bytes.Buffer
	r, err := recording.Open(bytes.NewReader(b), []age.Identity{h.key}, &cast)
	digest := sha256.Sum256(b)
	if err != nil || r.Cut || r.Ended == s.Cut || !strings.Contains(cast.String(), text) || s.SHA256 != hex.EncodeToString(digest[:]) || s.Bytes != int64(len(b)) || s.Caller != alice || s.Service != shell {
		t.Errorf("%v, %+v of %+v: %s", err, s, r, cast.String())
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*document.Published)
		host   func(*host)
		hello  func(*hello)
		want   string
	}{
		"the connection is not of the forwarder": {hello: func(h *hello) { h.From = netip.MustParseAddrPort("127.0.0.1:1") }, want: "no connection of the forwarder"},
		"the forwarder does not run":             {host: func(h *host) { h.Agent = "/nowhere/status.sock" }, want: "is flor agent run running?"},
		"the account is not the person's":        {change: func(p *document.Published) { p.Allow[0].Logins[0].Account = "deploy" }, want: "user/alice has no login as"},
		"the login has ended":                    {change: func(p *document.Published) { p.Allow[0].Until = unixtime.Unix(1000) }, want: "user/alice has no login as"},
		"the disk is full":                       {host: func(h *host) { h.Reserve = 1 << 62 }, want: "MiB are free, want"},
		"the directory is missing":               {host: func(h *host) { _ = os.Remove(h.Layout.Recordings()) }, want: "recordings: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, x.change)
			if x.host != nil {
				x.host(h)
			}
			h.start(t)
			is := h.hello()
			if x.hello != nil {
				x.hello(&is)
			}
			l, err := dial(t.Context(), h.socket, is)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, %v, want %q", l, err, x.want)
			}
			if left, _ := filepath.Glob(filepath.Join(h.Layout.Recordings(), "*")); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
}

func TestNotRecorded(t *testing.T) {
	h := newHost(t, func(p *document.Published) { p.Record = nil })
	h.start(t)
	if l, err := dial(t.Context(), h.socket, h.hello()); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
}

// TestSessions checks that the recordings of sessions at the same time are kept apart, and numbered in
// the order in which they end.
func TestSessions(t *testing.T) {
	h := newHost(t, nil)
	h.start(t)
	var lines []*line
	for i := range 3 {
		l, err := dial(t.Context(), h.socket, h.hello())
		check(t, err)
		check(t, l.send(frameOutput, fmt.Appendf(nil, "session %d", i)))
		lines = append(lines, l)
	}
	check(t, lines[1].exit(0))
	h.finished(t, 1)
	lines[2].conn.Close() // as if it was killed
	h.finished(t, 2)
	check(t, lines[0].exit(0))
	all := h.finished(t, 3)
	for i, session := range []int{1, 2, 0} {
		h.wantRecording(t, all[i], fmt.Sprintf("session %d", session))
		if all[i].Number != int64(i+1) || all[i].Cut != (session == 2) {
			t.Errorf("%+v", all[i])
		}
	}
}

// TestStopped checks that sessions end with the recorder, and that their recordings are finished.
func TestStopped(t *testing.T) {
	h := newHost(t, nil)
	h.start(t)
	l, err := dial(t.Context(), h.socket, h.hello())
	check(t, err)
	check(t, l.send(frameOutput, []byte("last words")))
	kit.Eventually(t, "they are on disk", func() bool {
		all, _ := filepath.Glob(filepath.Join(h.Layout.Recordings(), "*"+recording.Suffix))
		b, err := os.ReadFile(all[0])
		check(t, err)
		var cast bytes.Buffer
		_, err = recording.Open(bytes.NewReader(b), []age.Identity{h.key}, &cast)
		return err == nil && strings.Contains(cast.String(), "last words")
	})
	check(t, h.stop())
	<-l.lost
	all := h.finished(t, 1)
	h.wantRecording(t, all[0], "last words")
	if !all[0].Cut || l.end.Complete {
		t.Errorf("%+v, %+v", all[0], l.end)
	}
}

// TestIdle checks that the recorder ends while there is no session, and only then. The next process
// serves a client that connects in between.
func TestIdle(t *testing.T) {
	h := newHost(t, nil)
	h.Idle = time.Millisecond
	ln, err := net.Listen("unix", h.socket)
	check(t, err)
	systemd, err := ln.(*net.UnixListener).File()
	check(t, err)
	defer systemd.Close()
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	serve := func() error {
		ln, err := net.FileListener(systemd)
		check(t, err)
		defer ln.Close()
		return Serve(ctx, ln.(*net.UnixListener), h.Config)
	}
	ln.Close()
	if err := serve(); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	dialled := make(chan *line)
	go func() {
		l, err := dial(ctx, h.socket, h.hello())
		if err != nil {
			t.Error(err)
		}
		dialled <- l
	}()
	kit.Eventually(t, "it connects", func() bool {
		open, err := os.ReadFile("/proc/net/unix")
		check(t, err)
		return strings.Count(string(open), h.socket) > 1
	})
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	first := <-dialled
	for range 20 {
		l, err := dial(ctx, h.socket, h.hello())
		check(t, err)
		check(t, l.exit(0))
	}
	check(t, first.exit(0))
	if err := <-ended; err != nil || ctx.Err() != nil {
		t.Error(err, ctx.Err())
	}
}

// TestFull checks that a session ends when the disk is full.
func TestFull(t *testing.T) {
	h := newHost(t, nil)
	r := &recorder{Config: h.Config, dir: &directory{layout: h.Layout, log: h.Log}}
	f, err := r.dir.begin(recording.Session{Service: shell, Caller: alice}, time.Now())
	check(t, err)
	w, err := recording.NewWriter(f.File, []age.Recipient{h.key.Recipient()}, recording.Header{}, time.Now())
	check(t, err)
	r.Reserve = 1 << 62
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = out.Write(frame{frameOutput, []byte("too much")}.bytes()) }()
	if ended, err := r.record(t.Context(), in, w); ended || err == nil || !strings.Contains(err.Error(), "are free, want") {
		t.Errorf("%v, %v", ended, err)
	}
}

// TestRecover checks that the next process finishes what one left that was killed, at each step of a
// recording. Nothing is finished twice.
func TestRecover(t *testing.T) {
	content := []byte("a recording")
	digest := sha256.Sum256(content)
	about := recording.Summary{File: "a.cast.age", Service: shell, Caller: alice, Account: "deploy", Begun: unixtime.Unix(1000)}
	open := func(h *host) { write(h, "a"+openSuffix, about) }
	recorded := func(h *host) {
		_ = os.WriteFile(filepath.Join(h.Layout.Recordings(), about.File), content, 0o600)
	}
	done := about
	done.Number, done.SHA256, done.Bytes = 5, hex.EncodeToString(digest[:]), int64(len(content))
	for name, x := range map[string]struct {
		steps  []func(*host)
		number int64
		bytes  int64
		cut    bool
	}{
		"announced":     {[]func(*host){open}, 1, 0, true},
		"being written": {[]func(*host){open, recorded}, 1, 11, true},
		"finished": {[]func(*host){open, recorded, func(h *host) {
			write(h, "finished.json", recording.Finished{Last: 5, Summaries: []recording.Summary{done}})
		}}, 5, 11, false},
		"after others": {[]func(*host){open, recorded, func(h *host) {
			_ = os.WriteFile(h.Layout.ConfirmedRecordingsFile(), []byte("7\n"), 0o600)
		}}, 8, 11, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			for _, step := range x.steps {
				step(h)
			}
			for range 2 {
				h.start(t)
				all := h.finished(t, 1)
				if s := all[0]; s.Number != x.number || s.Bytes != x.bytes || s.Cut != x.cut || s.Caller != alice || x.bytes > 0 && s.SHA256 != done.SHA256 {
					t.Errorf("%+v", s)
				}
				check(t, h.stop())
			}
			if left, _ := filepath.Glob(filepath.Join(h.Layout.Recordings(), "*"+openSuffix)); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
	t.Run("damaged", func(t *testing.T) {
		h := newHost(t, nil)
		for _, name := range []string{"a" + openSuffix, "finished.json"} {
			check(t, os.WriteFile(filepath.Join(h.Layout.Recordings(), name), []byte("{"), 0o600))
		}
		h.start(t)
		l, err := dial(t.Context(), h.socket, h.hello())
		check(t, err)
		check(t, l.exit(0))
		h.finished(t, 1)
	})
}

func write(h *host, name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(h.Layout.Recordings(), name), b, 0o600); err != nil {
		panic(err)
	}
}

// TestRemoveOld checks that recordings are removed after the time that the service keeps them, and
// that other files stay.
func TestRemoveOld(t *testing.T) {
	h := newHost(t, nil)
	for name, days := range map[string]int{"old" + recording.Suffix: 91, "new" + recording.Suffix: 89, "other": 91} {
		write(h, name, "")
		then := time.Now().AddDate(0, 0, -days)
		check(t, os.Chtimes(filepath.Join(h.Layout.Recordings(), name), then, then))
	}
	h.start(t)
	l, err := dial(t.Context(), h.socket, h.hello())
	check(t, err)
	check(t, l.exit(0))
	entries, err := os.ReadDir(h.Layout.Recordings())
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if slices.Contains(names, "old"+recording.Suffix) || !slices.Contains(names, "new"+recording.Suffix) || !slices.Contains(names, "other") {
		t.Errorf("%v", names)
	}
}

func TestNotAClient(t *testing.T) {
	h := newHost(t, nil)
	h.start(t)
	for _, text := range []string{"GET / HTTP/1.1\r\n", "{}\n", strings.Repeat("x", maxHello+1)} {
		conn, err := net.Dial("unix", h.socket)
		check(t, err)
		_, _ = io.WriteString(conn, text)
		var a answer
		if err := json.NewDecoder(conn).Decode(&a); err == nil && (a.Error == "" || a.Recorded) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%.20q: %v, %+v", text, err, a)
		}
		conn.Close()
	}
	l, err := dial(t.Context(), h.socket, h.hello())
	check(t, err)
	check(t, l.send('?', nil))
	if err := l.exit(0); err == nil || !strings.Contains(err.Error(), "not a client") {
		t.Error(err)
	}
	l, err = dial(t.Context(), h.socket, h.hello())
	check(t, err)
	_, err = l.conn.Write([]byte{frameOutput, 0xff, 0, 0, 0})
	check(t, err)
	<-l.lost
	if l.end.Complete {
		t.Error("a frame of 4 GB is accepted")
	}
}
