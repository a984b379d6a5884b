package sshlogin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/florete/florete/agent/recorder"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/tests/kit"
)

// through is the address at which a forwarder would bring connections to sshd.
var through = netip.MustParseAddrPort("127.1.2.3:2222")

// recorded logs in at a service that records, and reads the recordings.
func (m *machine) recorded(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	check(t, err)
	m.record = &document.Record{Recipients: []string{key.Recipient().String()}, Days: 90}
	defer func() { m.record = nil }()
	m.permit(document.Login{Account: "deploy"})
	revoke(m.state)
	m.deliver(certificate(m.public, m.ca, alice, nil))
	m.forward(t)
	kill := m.recorder(t)
	ssh := []string{"/usr/bin/ssh", "-o", "BatchMode=yes", "-p", fmt.Sprint(through.Port()), "-o", "HostKeyAlias=shell.eu.demo.flor.rete"}
	login := func(t *testing.T, input string, args ...string) (string, error) {
		t.Helper()
		return m.asAliceWith(strings.NewReader(input), slices.Concat(ssh, args)...)
	}
	// last reads the newest recording.
	last := func(t *testing.T) (recording.Read, string) {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(m.state.Recordings(), "*"+recording.Suffix))
		check(t, err)
		if len(all) != 1 {
			t.Fatalf("recordings %v", all)
		}
		f, err := os.Open(all[0])
		check(t, err)
		defer f.Close()
		defer os.Remove(all[0])
		var cast bytes.Buffer
		r, err := recording.Open(f, []age.Identity{key}, &cast)
		check(t, err)
		return r, cast.String()
	}
	const much = "s=0123456789abcdef; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; s=$s$s$s$s; t=$s$s$s$s; "
	const at = "deploy@shell.eu.demo.flor.rete"
	for name, x := range map[string]struct {
		input  string
		args   []string
		status string // of ssh
		shown  []string
		cast   []string // parts of the recording
	}{
		"shell":             {"echo in as $USER\nexit 3\n", []string{"-tt", at}, "exit status 3", []string{recorder.Notice, "in as deploy"}, []string{`"terminal":true`, `in as deploy`, `"x","3"`}},
		"command":           {"typed", []string{at, "echo out; echo err >&2; read -r line; echo $line; exit 4"}, "exit status 4", []string{"out\n", "err\n", "typed"}, []string{`"command":"echo out;`, `out\r\n`, `err\r\n`, `typed`, `"x","4"`}},
		"killed":            {"", []string{at, "kill -9 $$"}, "exit status 137", nil, []string{`"x","137"`}},
		"much":              {"", []string{at, much + "echo $t"}, "", nil, nil},
		"in the background": {"", []string{"-tt", at, "trap '' HUP; sleep 600 & echo started"}, "", []string{"started"}, []string{"started", `"x","0"`}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := login(t, x.input, x.args...)
			if got := fmt.Sprint(err); x.status == "" && err != nil || x.status != "" && got != x.status {
				t.Errorf("%v, want %q: %q", err, x.status, out)
			}
			if !containsAll(out, x.shown) {
				t.Errorf("shown %q, want %q", out, x.shown)
			}
			r, cast := last(t)
			if !r.Ended || r.Cut || r.Session.Caller != alice || r.Session.Service != shell || r.Session.Account != "deploy" || !containsAll(cast, x.cast) {
				t.Errorf("%+v: %s\nwant %q", r, cast, x.cast)
			}
			if name == "much" && (len(out) < 4<<20 || len(cast) > 4*recording.MaxPlain) {
				t.Errorf("%d bytes shown, %d recorded", len(out), len(cast))
			}
		})
	}
	t.Run("transfers", func(t *testing.T) {
		m.write(t, "tmp/transfer.sh", "set -e; cd; ssh='"+strings.Join(ssh, " ")+"'\n"+
			much+"echo $t > big; rsync -e \"$ssh\" big "+at+":/tmp/big; read -r a < big; read -r b < /tmp/big; test $a = $b; echo same\n")
		if out, err := m.asAlice("/bin/sh", "/tmp/transfer.sh"); err != nil || out != "same\n" {
			t.Errorf("%v: %q", err, out)
		}
		if r, cast := last(t); !r.Ended || !strings.Contains(cast, "rsync --server") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("as another account", func(t *testing.T) {
		// A process of another account tells the recorder that it is alice's session.
		out, err := login(t, "", at, "echo $SSH_CONNECTION")
		check(t, err)
		last(t)
		connection := strings.TrimSpace(out)
		out, err = m.as(uidFirst+1, []string{"SSH_CONNECTION=" + connection, "SHELL=/bin/sh", "SSH_ORIGINAL_COMMAND=echo in"}, nil, "/opt/flor", "ssh", "session")
		if err == nil || strings.Contains(out, "in\n") || !strings.Contains(out, "cannot be recorded") {
			t.Errorf("%v: %q", err, out)
		}
	})
	t.Run("recorder killed", func(t *testing.T) {
		in, typed, err := os.Pipe()
		check(t, err)
		defer in.Close()
		defer typed.Close()
		type result struct {
			out string
			err error
		}
		done := make(chan result, 1)
		go func() {
			out, err := m.asAliceWith(in, slices.Concat(ssh, []string{"-tt", at})...)
			done <- result{out, err}
		}()
		_, err = io.WriteString(typed, "echo before $((6*7))\n")
		check(t, err)
		var path string
		kit.Eventually(t, "the output is on disk", func() bool {
			all, _ := filepath.Glob(filepath.Join(m.state.Recordings(), "*"+recording.Suffix))
			if len(all) != 1 {
				return false
			}
			path = all[0]
			b, err := os.ReadFile(path)
			var cast bytes.Buffer
			if err == nil {
				_, err = recording.Open(bytes.NewReader(b), []age.Identity{key}, &cast)
			}
			return err == nil && strings.Contains(cast.String(), "before 42")
		})
		kill()
		if r := <-done; r.err == nil || !strings.Contains(r.out, "could no longer be recorded") {
			t.Errorf("%v: %q", r.err, r.out)
		}
		if out, err := login(t, "", at, "touch /tmp/unseen"); err == nil || !strings.Contains(out, "cannot be recorded") {
			t.Errorf("%v: %q", err, out)
		}
		if _, err := os.Stat(m.path("tmp/unseen")); err == nil {
			t.Error("a command ran that is not recorded")
		}
		m.recorder(t)
		var all recording.Finished
		kit.Eventually(t, "the recording is finished", func() bool {
			all, err = recording.ReadFinished(m.state.FinishedRecordings())
			check(t, err)
			return len(all.Summaries) > 0 && all.Summaries[len(all.Summaries)-1].File == filepath.Base(path)
		})
		s := all.Summaries[len(all.Summaries)-1]
		b, err := os.ReadFile(path)
		check(t, err)
		if !s.Cut || s.SHA256 != fmt.Sprintf("%x", sha256.Sum256(b)) || s.Bytes != int64(len(b)) || s.Number != int64(len(all.Summaries)) {
			t.Errorf("%+v", s)
		}
		last(t)
	})
	t.Run("no longer recorded", func(t *testing.T) {
		m.record = nil
		m.permit(document.Login{Account: "deploy"})
		if out, err := login(t, "", at, "echo plain"); err != nil || out != "plain\n" {
			t.Errorf("%v: %q", err, out)
		}
		if left, _ := filepath.Glob(filepath.Join(m.state.Recordings(), "*"+recording.Suffix)); len(left) > 0 {
			t.Errorf("recordings %v", left)
		}
	})
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// forward brings connections to sshd, and answers who their caller is, as a forwarder does.
func (m *machine) forward(t *testing.T) {
	t.Helper()
	var table whois.Table
	check(t, os.MkdirAll(filepath.Dir(m.path(hostdir.Instance("").Agent())), 0o755))
	socket, err := net.Listen("unix", whois.Beside(m.path(hostdir.Instance("").Agent())))
	check(t, err)
	check(t, os.Chmod(socket.Addr().String(), 0o666))
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		whois.Serve(ctx, socket, &table, func() []string { return nil })
	}()
	ln, err := net.Listen("tcp", through.String())
	check(t, err)
	t.Cleanup(func() { ln.Close(); stop(); <-served })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			up, forget, err := table.Dial(whois.Upstream{Caller: alice, Service: shell, Protocol: document.TCP}, func() (net.Conn, error) { return net.Dial("tcp", listen.String()) })
			if err != nil {
				conn.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(up, conn)
				_ = up.(*net.TCPConn).CloseWrite()
			}()
			go func() {
				_, _ = io.Copy(conn, up)
				forget()
				conn.Close()
				up.Close()
			}()
		}
	}()
}

// recorder runs flor recorder, as systemd does. It returns a function that kills it.
func (m *machine) recorder(t *testing.T) (kill func()) {
	t.Helper()
	check(t, os.MkdirAll(m.state.Recordings(), 0o700))
	path := m.path(recorder.Socket(""))
	_ = os.Remove(path)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	check(t, err)
	ln.SetUnlinkOnClose(false)
	check(t, os.Chmod(path, 0o666))
	file, err := ln.File()
	check(t, err)
	defer file.Close()
	ln.Close()
	cmd := exec.Command("nsenter", "--target", fmt.Sprint(m.pid), "--mount", "chroot", m.dir, "/bin/sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec /opt/flor recorder")
	cmd.ExtraFiles = []*os.File{file}
	var log buffer
	cmd.Stderr = &log
	check(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kill = func() { _ = cmd.Process.Kill(); <-ended }
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return kill
}
