package doctor_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// ursula is the loopback address that stands for the host ursula in the tests.
var ursula = agenttest.LoopbackIP.String()

// patient is the host laptop, which the tests examine. Its cluster is healthy at first: all agents
// run, and the provider answers.
type patient struct {
	*testing.T
	*agenttest.Cluster
	doctor.Config
	provider *httptest.Server
	presents atomic.Pointer[tls.Config] // what the provider presents
	date     time.Duration              // difference of the provider's clock
	units    map[string]units.Unit
	stop     map[string]func() // stops the agent of a host
}

func newPatient(t *testing.T) *patient {
	p := &patient{T: t, Cluster: agenttest.NewCluster(t, agenttest.RefusingTCP(t)), units: map[string]units.Unit{}, stop: map[string]func(){}}
	p.present("service/forge/florete-provider-cert")
	p.serve()
	dir := t.TempDir()
	p.Config = doctor.Config{
		Layout: p.Laptop.Layout, Socket: p.Laptop.Socket(), HostKey: filepath.Join(dir, "key"), Workload: filepath.Join(dir, "workload.sock"), Hosts: filepath.Join(dir, "hosts"), Etc: dir,
		Guards: func(context.Context) bool { return true },
		Units: func(_ context.Context, names []string) (all []units.Unit, err error) {
			for _, n := range names {
				u, ok := p.units[n]
				if !ok {
					u = units.Unit{Load: "loaded", Active: "active", Sub: "running"}
				}
				u.Name = n
				all = append(all, u)
			}
			return all, nil
		},
	}
	p.write(filepath.Join(p.Etc, "provider.hujson"), "{}", 0o644)
	p.write(p.HostKey, "secret", 0o600)
	p.write(p.HostKey+".pub", "ssh-ed25519 AAAA root@laptop\n", 0o644)
	p.write(p.Hosts, "127.0.0.1 localhost # outline.demo.flor.rete\n"+ursula+" other outline.demo.flor.rete\n", 0o644)
	p.Laptop.Provider = strings.TrimPrefix(p.provider.URL, "https://")
	p.Laptop.Units = []string{"provider-oidc.service", "store.service"}
	p.AcceptLaptop()
	for _, n := range []string{"cert-node", "cert-user-alice", "cert-user-bob"} {
		p.state(n, `{"state":"fulfilled"}`)
	}
	p.start(p.Ursula)
	p.start(p.Laptop)
	return p
}

// serve starts a provider.
func (p *patient) serve() {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(p.date).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.presents.Load(), nil }}
	s.StartTLS()
	p.Cleanup(s.Close)
	p.provider = s
}

// present makes the provider present the SVID of an identity.
func (p *patient) present(as string) {
	p.presents.Store(&tls.Config{Certificates: []tls.Certificate{*p.CA.Issue(kit.ID(as), time.Hour)}})
}

func (p *patient) start(h *agenttest.Host) {
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan error, 1)
	go func() {
		done <- forward.Run(ctx, forward.Config{Layout: h.Layout, Socket: h.Socket(), Log: slog.New(slog.DiscardHandler), Grace: time.Millisecond})
	}()
	p.stop[h.Name] = func() {
		cancel()
		if done != nil {
			if err := <-done; err != nil {
				p.Error(err)
			}
			done = nil
		}
	}
	p.Cleanup(p.stop[h.Name])
	kit.Succeeds(p, h.Name+" runs", func() error {
		r, _, err := status.Fetch(p.Context(), h.Socket())
		if err == nil && r.State != "running" {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
}

func (p *patient) write(path, text string, mode os.FileMode) {
	p.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.Fatal(err)
	}
}

func (p *patient) state(need, text string) { p.write(p.Laptop.Layout.NeedStateFile(need), text, 0o644) }

// file returns the path of a file that was delivered for the node.
func (p *patient) file(name string) string {
	return filepath.Join(hostdir.Current(p.Laptop.Layout.Need("cert-node")), name)
}

// joins turns the patient into a host that joins: its manifest has no SSH host key. The named files
// of a join request are created.
func (p *patient) joins(files ...string) {
	p.Helper()
	p.Laptop.Joins = true
	p.AcceptLaptop()
	dir := filepath.Dir(p.Layout.Admission())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
	for _, f := range files {
		p.write(filepath.Join(dir, f), "{}", 0o600)
	}
}

// sh runs the command that a finding suggests, to test that it fixes the problem.
func (p *patient) sh(command string) {
	p.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		p.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// findings returns the findings of all checks except kernel, which depends on the machine that runs
// the test.
func (p *patient) findings() (found []string) {
	for _, c := range doctor.Run(p.Context(), p.Config).Checks {
		for _, f := range c.Findings {
			if c.Name != "kernel" {
				found = append(found, c.Name+": "+f.Problem+" => "+f.Fix+f.Do)
			}
		}
	}
	return found
}

// examine returns the findings and checks that they are as wanted. It examines the host again if a
// forwarder or a provider answered too late for an examination, as on a busy machine.
func (p *patient) examine(want string, wanted func(found []string) bool) (found []string) {
	p.Helper()
	var is bool
	_ = kit.Poll(p.Context(), func() error {
		found = p.findings()
		if is = wanted(found); !is && strings.Contains(strings.Join(found, "\n"), " port ") {
			return os.ErrDeadlineExceeded // the fix is to open that port
		}
		return nil
	})
	if !is {
		p.Errorf("want %s\ngot %q", want, found)
	}
	return found
}

// finds checks that there is exactly one finding. The finding must have the given beginning and
// fix. A finding of the check agent about the same need is ignored.
func (p *patient) finds(begin, fix string) {
	p.Helper()
	p.examine(begin+" … => "+fix, func(found []string) bool {
		found = slices.DeleteFunc(found, func(f string) bool { return strings.HasPrefix(f, "agent: agent: need ") })
		return len(found) == 1 && strings.HasPrefix(found[0], begin) && (fix == "" || strings.HasSuffix(found[0], " => "+fix))
	})
}

// healthy checks that there is no finding.
func (p *patient) healthy() {
	p.Helper()
	p.examine("no finding", func(found []string) bool { return len(found) == 0 })
}

// fixed runs the command of the only finding, and checks that the problem is gone.
func (p *patient) fixed() {
	p.Helper()
	for _, f := range p.examine("one finding", func(found []string) bool { return len(found) == 1 }) {
		_, fix, _ := strings.Cut(f, " => ")
		p.sh(fix)
	}
	p.healthy()
}
