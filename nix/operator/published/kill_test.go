package published

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

// victimConfig makes a copy of this test binary publish a version, and die by SIGKILL before one of
// the steps.
const victimConfig = "PUBLISH_VICTIM"

// publisher is an operator who publishes versions of the documents of one host.
type publisher struct {
	Key       string
	Record    string
	Providers []string // URLs
	Serial    int64
	At        int // step before which the operator's program is killed; negative for none
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimConfig); text != "" {
		var p publisher
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		if err := p.run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// RoundTrip sends a request to a provider. There is a step before each request and one after it.
func (p *publisher) RoundTrip(r *http.Request) (*http.Response, error) {
	p.step()
	answer, err := http.DefaultTransport.RoundTrip(r)
	p.step()
	return answer, err
}

func (p *publisher) step() {
	if p.At--; p.At == -1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (p *publisher) run() error {
	if p.At < 0 {
		p.At = -2 // never reaches a step at which the program is killed
	}
	secret, err := signature.LoadSecretKey(p.Key)
	if err != nil {
		return err
	}
	c := Cluster{Topology: compile.Topology{Name: "demo"}, Console: terminal.Console{Out: os.Stdout, Err: os.Stdout}}
	c.Topology.Trust.SigningKeys = []string{secret.ToPublicKey().String()}
	for _, url := range p.Providers {
		c.Providers = append(c.Providers, client.New(url, url, &http.Client{Transport: p}))
	}
	m := document.Manifest{Cluster: "demo", Host: "a", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/a")},
		Providers: map[string]map[string]document.Provider{}, Trust: document.Trust{SigningKeys: c.Topology.Trust.SigningKeys}}
	s := Signed{Name: "demo", key: Key{SecretKey: secret, record: p.Record}, bodies: map[string][]document.Document{"a": {kit.Document(p.Serial, m)}}}
	if s.tree, s.round, err = s.key.signDocuments("demo", s.bodies); err != nil {
		return err
	}
	if s.record, err = openRecord(p.Record, "demo"); err != nil {
		return err
	}
	s.version = version{Serial: p.Serial, Rev: s.tree.Rev(), Digest: s.tree.Digest()}
	return c.Publish(context.Background(), s, Publication{AtOnce: true, Replaces: p.Serial - 1})
}

// publish runs a copy of this test binary, and returns its output. The result killed is true if it
// was killed.
func (p publisher) publish(t *testing.T) (out string, killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimConfig+"="+string(kit.JSON(p)))
	b, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return string(b), true
	}
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return string(b), false
}

// offering is a config provider that operators call at URL.
type offering struct {
	*providertest.Env
	URL string
}

// startOffering starts a config provider that accepts the documents of a key.
func startOffering(t *testing.T, key signature.SecretKey) offering {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	alice, socket := kit.ID("user/alice"), filepath.Join(t.TempDir(), "control.sock")
	e := providertest.NewEnv(t, "a")
	e.Policy.Trust.SigningKeys = []string{key.ToPublicKey().String()}
	e.Policy.Operators = []document.Operator{{ID: alice, Access: document.AccessWrite}}
	e.Grant(kit.ID("node/a"), "config-documents", distribution.Name, struct{}{})
	e.Runs(distribution.Name, struct{}{}, func(p *providertest.Env) server.AnyKind {
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		return (&distribution.Settings{Socket: socket, Forwarder: me.Username, Run: filepath.Dir(socket)}).Kind(server.Process{
			Dir: p.Dir, Store: p.Store, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Log: p.Log, Logger: log,
		})
	})
	e.Start()
	at := agenttest.Announced{Socket: socket, Service: kit.ID("service/drhorrible/" + spiffe.ControlService)}
	kit.Succeeds(t, "the socket", func() error {
		conn, err := at.Dial(alice)
		if err == nil {
			conn.Close()
		}
		return err
	})
	api := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "provider", "florete-control.drhorrible.demo.flor.rete"
		},
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return at.Dial(alice) }},
	})
	t.Cleanup(api.Close)
	return offering{e, api.URL}
}

// list returns the revocation list that the provider offers, nil for none.
func (o offering) list(t *testing.T) *trust.Revocations {
	t.Helper()
	r, err := archive.Archive{Store: o.Store}.Revocations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Number == 0 {
		return nil
	}
	list, err := r.Signed.Open()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// lose removes the revocation list of the provider, or replaces it with an older one.
func (o offering) lose(t *testing.T, older *trust.Revocations) {
	t.Helper()
	then := store.Delete(archive.RevocationsKey)
	if older != nil {
		then = store.Put(archive.RevocationsKey, kit.JSON(archive.Revocations{Signed: older.AsSigned(), Number: older.Number}))
	}
	if _, err := o.Store.Commit(t.Context(), store.Txn{Then: []store.Op{then}}); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills a publication at each step. If the operator publishes the same version again, the
// provider serves it and offers a list that names it, and the operator's record has the same list.
// The number of the list never decreases.
func TestKill(t *testing.T) {
	key := kit.SigningKey("demo-1")
	o := startOffering(t, key)
	p := publisher{Key: key.String(), Record: filepath.Join(t.TempDir(), "signed"), Providers: []string{o.URL}, Serial: time.Now().Unix() - 1000}
	killed := 0
	for at := 0; ; at++ {
		p.Serial, p.At = p.Serial+1, at
		before := o.list(t).InForce()
		_, dead := p.publish(t)
		if dead {
			killed++
			if number := o.list(t).InForce(); number < before {
				t.Fatalf("killed at step %d: list %d after list %d", at, number, before)
			}
			p.At = -1
			if out, dead := p.publish(t); dead {
				t.Fatalf("the program that was not to be killed was: %s", out)
			}
		}
		list := o.list(t)
		if list.InForce() <= before || list.Documents == nil || list.Documents.Serial != p.Serial {
			t.Fatalf("killed at step %d: list %d, which names %+v, want a list above %d that names serial %d", at, list.InForce(), list.Documents, before, p.Serial)
		}
		versions, err := archive.Archive{Store: o.Store}.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(versions) == 0 || versions[0].Serial != p.Serial {
			t.Fatalf("killed at step %d: %+v are served, want serial %d", at, versions, p.Serial)
		}
		r, err := openRecord(p.Record, "demo")
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := r.version(p.Serial); v.Digest != list.Documents.Digest {
			t.Fatalf("killed at step %d: the list names digest %s, want %s", at, list.Documents.Digest, v.Digest)
		}
		if own, err := r.list(); err != nil || own.Digest() != list.Digest() || r.served().Serial != p.Serial {
			t.Fatalf("killed at step %d: the record has list %d and serial %d, want %d and %d: %v", at, own.InForce(), r.served().Serial, list.Number, p.Serial, err)
		}
		if !dead {
			break
		}
	}
	if killed < 10 {
		t.Errorf("killed at %d steps, want more", killed)
	}
	t.Logf("killed at %d steps", killed)
}

// TestFirstList checks that the first publication makes a revocation list, and that later ones
// supply it to providers that lost it, before anything else.
func TestFirstList(t *testing.T) {
	key := kit.SigningKey("demo-1")
	one, two := startOffering(t, key), startOffering(t, key)
	p := publisher{Key: key.String(), Record: filepath.Join(t.TempDir(), "signed"), Providers: []string{one.URL, two.URL}, Serial: time.Now().Unix() - 1000, At: -1}
	publish := func(want ...string) {
		t.Helper()
		p.Serial++
		out, _ := p.publish(t)
		for _, line := range append(want, "revocation list") {
			if !strings.Contains(out, line) {
				t.Errorf("got %q, want %q", out, line)
			}
		}
		if strings.Count(out, "is supplied") != len(want) {
			t.Errorf("got %q, want %d lists supplied", out, len(want))
		}
		for _, o := range []offering{one, two} {
			if list := o.list(t); list == nil || list.Documents == nil || list.Documents.Serial != p.Serial {
				t.Errorf("%s offers %+v, want a list that names serial %d", o.URL, list, p.Serial)
			}
		}
	}
	publish()
	first := one.list(t)
	if first.InForce() != 1 || first.NextUpdate.Sub(first.Signed.Time) != revocation.FirstLifetime || len(first.Entries) > 0 {
		t.Errorf("the first list: %+v", first)
	}
	publish()
	publish()
	one.lose(t, nil)
	publish(one.URL + ": had revocation list 0, revocation list 3 is supplied")
	two.lose(t, first)
	publish(two.URL + ": had revocation list 1, revocation list 4 is supplied")
	one.lose(t, nil)
	two.lose(t, nil)
	publish(one.URL+": had revocation list 0, revocation list 5 is supplied", two.URL+": had revocation list 0, revocation list 5 is supplied")
	if err := os.Remove(p.Record); err != nil { // of another operator
		t.Fatal(err)
	}
	two.lose(t, nil)
	publish(two.URL + ": had revocation list 0, revocation list 6 is supplied")
	if list := one.list(t); list.Number != 7 || list.Digest() != two.list(t).Digest() {
		t.Errorf("%+v and %+v", list, two.list(t))
	}
}
