package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// call sends a request to a socket, and prints the answer: call SOCKET CALLER URL [BODY]. The
// caller is announced as the forwarder does that; "-" is none.
func call(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: call SOCKET CALLER URL [BODY]")
	}
	socket, caller, url := ts.MkAbs(args[0]), args[1], args[2]
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	if caller != "-" {
		dial = func(context.Context, string, string) (net.Conn, error) {
			service := kit.ID("service/tokens")
			if strings.Contains(url, "florete-control") {
				service = kit.ID("service/drhorrible/florete-control")
			}
			return agenttest.Announced{Socket: socket, Service: service}.Dial(kit.ID(caller))
		}
	}
	method, body, form := http.MethodGet, "", "application/json"
	if len(args) > 3 {
		method, body = http.MethodPost, args[3]
	}
	if strings.HasPrefix(body, "grant_type=") {
		form = "application/x-www-form-urlencoded"
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("Content-Type", form)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}).Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	_, err = io.Copy(ts.Stdout(), answer.Body)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout())
	if ok := answer.StatusCode == http.StatusOK; ok == neg {
		ts.Fatalf("%s %s: %s", method, url, answer.Status)
	}
}

// appears waits until there is a file, and until a socket accepts connections: bind(2) makes it
// visible, and it refuses them until listen(2).
func appears(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(kit.Poll(context.Background(), func() error {
		path := ts.MkAbs(args[0])
		info, err := os.Stat(path)
		if err == nil && info.Mode().Type() == os.ModeSocket {
			var c net.Conn
			if c, err = net.Dial("unix", path); err == nil {
				c.Close()
			}
		}
		return err
	}))
}
