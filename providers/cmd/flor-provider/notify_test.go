package main

import (
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/florete/florete/tests/kit"
)

// listen is systemd's end of sd_notify, for the commands that a script starts.
func listen(env *testscript.Env) error {
	path := filepath.Join(env.WorkDir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	env.Defer(func() { conn.Close() })
	env.Setenv("NOTIFY_SOCKET", path)
	env.Values["notify"] = conn
	return nil
}

// heard waits until systemd is notified of READY, with a status that begins so.
func heard(ts *testscript.TestScript, _ bool, args []string) {
	conn := ts.Value("notify").(*net.UnixConn)
	conn.SetReadDeadline(time.Now().Add(kit.Patience))
	want := "READY=1\nSTATUS=" + strings.Join(args, " ")
	b := make([]byte, 4096)
	for {
		n, err := conn.Read(b)
		if err != nil {
			ts.Fatalf("never heard %q: %v", want, err)
		}
		if strings.HasPrefix(string(b[:n]), want) {
			return
		}
	}
}
