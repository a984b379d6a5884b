package control_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// strangers returns the audit rows without a caller that have this code.
func (e *env) strangers(code string) (rows []server.Row) {
	for _, r := range e.Rows() {
		if r.Kind == control.Kind && r.Caller == "" && r.Code == code {
			rows = append(rows, r)
		}
	}
	return rows
}

// A process of another account cannot connect. Where the account can connect, its announcements are
// ignored.
func TestOtherAccount(t *testing.T) {
	e := start(t)
	info, err := os.Stat(e.socket)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	const uid = 64003
	kit.OpenDirs(t, filepath.Dir(e.socket))
	if err := os.Chown(e.socket, -1, uid+1); err != nil { // root's group stays with the test's threads
		t.Fatal(err)
	}
	agenttest.As(t, uid, func() { err = e.dial() })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("connected: %v", err)
	}
	if err := os.Chmod(e.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	var c net.Conn
	agenttest.As(t, uid, func() { c, err = e.as().Dial(alice) })
	if c == nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /v1/versions HTTP/1.1\r\nHost: "+name+"\r\n\r\n")
	if b, _ := io.ReadAll(c); len(b) != 0 {
		t.Errorf("answered: %s", b)
	}
	if rows := e.strangers(hostapi.CodeUntrusted.Name); len(rows) != 1 || rows[0].Message != "uid 64003 connected to "+e.socket+", want the forwarder's account root: callers use service florete-control" {
		t.Errorf("got %+v", rows)
	}
}

// Without an announcement, a request has no caller, whatever it contains.
func TestNotAnnounced(t *testing.T) {
	e := start(t)
	for _, begin := range []string{"", "PROXY TCP4 192.0.2.7 192.0.2.1 4610 4610\r\n", "PROXY UNKNOWN\r\n"} {
		c, err := net.Dial("unix", e.socket)
		if err != nil {
			t.Fatal(err)
		}
		before := len(e.strangers(hostapi.CodeMalformed.Name))
		_, _ = io.WriteString(c, begin+"GET /v1/versions HTTP/1.1\r\nHost: "+name+"\r\nX-Forwarded-Client-Cert: URI=spiffe://demo.flor/user/alice\r\n\r\n")
		if b, _ := io.ReadAll(c); len(b) != 0 {
			t.Errorf("answered: %s", b)
		}
		c.Close()
		if got := len(e.strangers(hostapi.CodeMalformed.Name)); got != before+1 {
			t.Errorf("%q: %d rows, want %d", begin, got, before+1)
		}
	}
}
