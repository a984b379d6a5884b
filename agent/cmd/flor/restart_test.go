package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// service runs flor agent run in the place of systemd. It stores the files that one process hands
// to the next.
type service struct {
	*testing.T
	host   *agenttest.Host
	notify *net.UnixConn
	cmd    *exec.Cmd

	mu   sync.Mutex
	held map[string]*os.File
	main int          // the main process
	pids map[int]bool // all processes that were started
}

func newService(t *testing.T, h *agenttest.Host) *service {
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, host: h, notify: notify, held: map[string]*os.File{}, pids: map[int]bool{}}
	go s.keep()
	t.Cleanup(func() {
		s.end(syscall.SIGKILL)
		s.endAll()
		notify.Close()
	})
	return s
}

// keep receives and stores the files that the process hands over for its successor.
func (s *service) keep() {
	b, oob := make([]byte, 4096), make([]byte, 4096)
	for {
		n, oobn, _, _, err := s.notify.ReadMsgUnix(b, oob)
		if err != nil {
			return
		}
		do, name, _ := strings.Cut(string(b[:n]), "\nFDNAME=")
		s.mu.Lock()
		if old := s.held[name]; old != nil && strings.HasPrefix(do, "FDSTORE") {
			old.Close()
			delete(s.held, name)
		}
		if all, err := unix.ParseSocketControlMessage(oob[:oobn]); do == "FDSTORE=1" && err == nil && len(all) == 1 {
			if fds, err := unix.ParseUnixRights(&all[0]); err == nil && len(fds) == 1 {
				unix.CloseOnExec(fds[0])
				s.held[name] = os.NewFile(uintptr(fds[0]), name)
			}
		} else if err == nil && len(all) == 1 { // BARRIER=1
			if fds, err := unix.ParseUnixRights(&all[0]); err == nil {
				unix.Close(fds[0])
			}
		}
		if pid := mainPID(do); pid != 0 {
			s.main = pid
			s.pids[pid] = true
		}
		s.mu.Unlock()
	}
}

// program returns the path of a link to the test binary that is named flor.
func (s *service) program() string {
	s.Helper()
	program, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	called := filepath.Join(s.TempDir(), "flor")
	if err := os.Symlink(program, called); err != nil {
		s.Fatal(err)
	}
	return called
}

func (s *service) env() []string {
	return append(os.Environ(), "NOTIFY_SOCKET="+s.notify.LocalAddr().String())
}

func (s *service) start() {
	s.Helper()
	s.cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" agent run --state "$1" --socket "$2"`, s.program(), string(s.host.Layout), s.host.Socket())
	var names []string
	s.mu.Lock()
	for name, f := range s.held {
		names = append(names, name)
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, f)
	}
	s.mu.Unlock()
	s.cmd.Env = append(s.env(),
		fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	s.main = s.cmd.Process.Pid
	s.mu.Unlock()
	kit.Eventually(s, s.host.Name+" runs", func() bool {
		r, _, err := agentstatus.Fetch(s.Context(), s.host.Socket())
		return err == nil && r.State == "running"
	})
}

func (s *service) end(how syscall.Signal) {
	if s.cmd != nil {
		s.cmd.Process.Signal(how)
		s.cmd.Wait()
		s.cmd = nil
	}
}

// TestRestartUnderLoad checks that restarting the agent of a busy host does not disturb callers. No
// new connection may fail, and an open connection must survive.
func TestRestartUnderLoad(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	ursula, laptop := newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	load := newLoad(t, c.Local)
	for range 2 {
		load.more(t, 500)
		long, err := net.Dial("tcp", c.Local)
		if err != nil {
			t.Fatal(err)
		}
		long.SetDeadline(time.Now().Add(kit.Patience))
		if err := agenttest.Ping(long); err != nil {
			t.Fatal(err)
		}
		begun, before := time.Now(), load.done.Load()
		ursula.end(syscall.SIGTERM)
		if err := agenttest.Ping(long); err == nil {
			t.Error("a connection outlived the agent")
		}
		long.Close()
		ursula.start()
		t.Logf("started again after %v, %d connections meanwhile", time.Since(begun), load.done.Load()-before)
		load.more(t, 500)
	}
	load.end(t)
}

// TestKilled checks that a caller learns promptly that the agent was killed. A caller that waits
// for an answer must get an error from the next agent, without waiting for QUIC to time out. This
// must hold even if the node's certificate was renewed meanwhile.
func TestKilled(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	ursula, laptop := newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	long, err := net.Dial("tcp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	long.SetDeadline(time.Now().Add(kit.Patience))
	if err := agenttest.Ping(long); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	ursula.end(syscall.SIGKILL)
	c.Ursula.Deliver(c.CA, agenttest.Ursula, time.Hour)
	ursula.start()
	long.SetDeadline(killed.Add(14 * time.Second)) // QUIC's idle timeout is 15 seconds
	if _, err := long.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("got %v, want a reset", err)
	}
	t.Logf("reset after %v", time.Since(killed))
	if err := exchange(c.Local); err != nil {
		t.Error(err)
	}
}
