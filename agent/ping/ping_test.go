package ping

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun checks that a ping uses the identity of the account that runs it, and that the name is
// resolved in the process of the caller.
func TestRun(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "ping.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		Serve(ctx, ln, func(uint32) bool { return true }, func(_ context.Context, uid uint32, service string) Result {
			if int(uid) != os.Getuid() || service == "nothing" {
				return Result{Service: service}
			}
			r := Result{Service: service, ID: "spiffe://demo.flor/service/" + service, Host: service + ".demo.flor.rete", Listen: "127.9.8.7:80"}
			for _, s := range Steps {
				r.Steps = append(r.Steps, Step{Name: s})
			}
			return r
		})
	}()
	defer func() { cancel(); <-served }()
	for name, c := range map[string]struct {
		service string
		found   []string
		err     error
		broken  string // error of the first step
	}{
		"a name that leads to the listener": {service: "wiki", found: []string{"127.9.8.7"}},
		"a name that leads elsewhere":       {service: "wiki", found: []string{"192.0.2.1"}, broken: "leads to [192.0.2.1], want 127.9.8.7"},
		"no such name":                      {service: "wiki", err: &net.DNSError{Err: "no such host"}, broken: "no such host"},
		"no such service":                   {service: "nothing", err: errors.New("not looked up")},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(ctx, Config{Socket: socket, Lookup: func(_ context.Context, host string) ([]string, error) { return c.found, c.err }}, c.service)
			step, broken := r.Broken()
			if err != nil || broken != (c.broken != "") || !strings.Contains(step.Error, c.broken) || broken && (step.Name != Name || step.Remedy == "") {
				t.Errorf("%+v, %v", r, err)
			}
			var out bytes.Buffer
			if err := Print(&out, r); err != nil || broken && !strings.Contains(out.String(), "broken: name: as root: flor hosts-file") {
				t.Errorf("%q, %v", &out, err)
			}
		})
	}
	if _, err := Run(ctx, Config{Socket: socket + "x"}, "wiki"); err == nil || !strings.HasSuffix(err.Error(), "is flor agent run running?") {
		t.Errorf("%v", err)
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"wiki": "spiffe://demo.flor/service/wiki", "host.ursula": "spiffe://demo.flor/service/ursula/host",
		"host.ursula.demo.flor.rete": "spiffe://demo.flor/service/ursula/host", "wiki_": "",
	} {
		d, err := Find(name, "demo.flor")
		if want == "" && err == nil || want != "" && (err != nil || d.ID().String() != want) {
			t.Errorf("%s: %v, %v, want %q", name, d, err, want)
		}
	}
}
