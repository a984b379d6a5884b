package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestMain runs the tests, or acts as one of the programs that the test scripts call. Each program
// is a process of its own. The scripts call the real "flor". They call "get" and "unixget" in place
// of curl. The program "running" waits until the agents behind some sockets run. The program
// "until" waits until a file contains a text.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"flor": main, "flor_blue": main, "get": get, "unixget": unixget, "running": running, "until": until})
}

// TestScripts runs the test scripts of flor. Each script gets the state directories of two hosts,
// in $URSULA and $LAPTOP. It reaches the service Outline at $LOCAL.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "hello %s", r.URL.Path)
			}))
			e.Defer(upstream.Close)
			c := agenttest.NewCluster(t, strings.TrimPrefix(upstream.URL, "http://"))
			// The API is served by a second host, so that the state of ursula is the same in all
			// scripts.
			api := agenttest.NewHost(t, "ursula", c.CA)
			api.Accept(document.Forwarder{Publish: []document.Published{{ID: kit.ID("service/ursula/host"), Upstream: "unix:/run/florete-host.sock", Allow: []document.Allow{}}}})
			e.Setenv("API", string(api.Layout))
			e.Setenv("URSULA", string(c.Ursula.Layout))
			e.Setenv("LAPTOP", string(c.Laptop.Layout))
			e.Setenv("LOCAL", c.Local)
			e.Setenv("METRICS", agenttest.Loopback().String())
			e.Setenv("SOCKS_BOB", c.SOCKS[agenttest.Bob])
			return os.WriteFile(e.WorkDir+"/laptop-state.json", []byte(needState), 0o644)
		},
	})
}

const needState = `{"state":"waiting","attempts":3,"next":4102444800,"fulfilled":0,` +
	`"error":{"kind":"transient","code":"policy-behind","message":"serial 7 is not in force yet"}}`

func get() {
	client := http.Client{Timeout: kit.Patience}
	res, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer res.Body.Close()
	io.Copy(os.Stdout, res.Body)
}

// unixget requests a page from a Unix socket. It waits until the socket exists.
func unixget() {
	client := http.Client{Timeout: kit.Patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = kit.Poll(ctx, func() (err error) {
			c, err = net.Dial("unix", os.Args[1])
			return err
		})
		return c, err
	}}}
	res, err := client.Get("http://host.ursula.demo.flor.rete" + os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer res.Body.Close()
	io.Copy(os.Stdout, res.Body)
}

func running() {
	for _, socket := range os.Args[1:] {
		poll(func() error {
			r, _, err := agentstatus.Fetch(context.Background(), socket)
			if err == nil && r.State != "running" {
				err = fmt.Errorf("%s: state %q", socket, r.State)
			}
			return err
		})
	}
}

// until waits until a file contains a text. Test scripts call it as a program.
func until() {
	poll(func() error {
		b, _ := os.ReadFile(os.Args[1])
		if !strings.Contains(string(b), os.Args[2]) {
			return fmt.Errorf("%s: no %q in\n%s", os.Args[1], os.Args[2], b)
		}
		return nil
	})
}

// poll calls try until it succeeds. If that takes too long, poll exits with an error.
func poll(try func() error) {
	if err := kit.Poll(context.Background(), try); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
