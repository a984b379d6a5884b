package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestHostIsPassedSockets checks that flor host finds the sockets that systemd passes. They have
// the names in the instance's unit, and serve that instance.
func TestHostIsPassedSockets(t *testing.T) {
	layout := agenttest.NewCluster(t, "unix:/run/florete-host.sock").Ursula.Layout
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []hostdir.Instance{"", "blue"} {
		dir := t.TempDir()
		called, path := filepath.Join(dir, m.Program("flor")), filepath.Join(dir, "host.sock")
		if err := os.Symlink(program, called); err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		socket, err := ln.(*net.UnixListener).File()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0" host run --state "$1"`, called, string(layout))
		cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES="+m.Unit("host"))
		cmd.ExtraFiles = []*os.File{socket}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ln.(*net.UnixListener).SetUnlinkOnClose(false)
		ln.Close()
		socket.Close()
		client := http.Client{Timeout: kit.Patience, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", path)
		}}}
		if res, err := client.Get("http://outline.demo.flor.rete/journal/none"); err != nil {
			t.Errorf("%s: %v", called, err)
		} else {
			want := `unit "none": want one of ` + m.Unit("activate, ")
			if text, err := io.ReadAll(res.Body); err != nil || !strings.HasPrefix(string(text), want) {
				t.Errorf("%s: %q, %v, want %q", called, text, err, want)
			}
			res.Body.Close()
		}
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", called, err)
		}
	}
}
