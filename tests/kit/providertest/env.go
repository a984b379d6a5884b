// Package providertest contains the conformance suite for kinds of need. It also provides Env, a
// trust domain with one running provider, for other tests. The provider uses real TLS on loopback
// and real state in SQLite.
package providertest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/providers/tlog"
	"github.com/florete/florete/tests/kit"
)

// Serial is the serial number of the first policy of an Env.
const Serial = 1000

// Env is a test environment. It consists of one process of the provider host drhorrible, and the
// nodes that call it. The process runs the kind "cert" unless Runs sets another kind. The fields
// Store, Key, Policies, Server and Log are set while the process runs.
type Env struct {
	t   *testing.T
	Dir string // directory of the state and the policy

	Policy document.Policy // policy of the provider; changes take effect with the next Publish
	Logger *slog.Logger    // nil for the test's output
	Logged bool            // audit rows go into a tamper-evident log

	*kit.CA
	keys   map[spiffe.ID]ssh.Signer
	shared *shared // nil for a state of its own

	// The following fields are set while the provider runs.
	Store    *Faulty
	Key      *sealedstore.Key
	Policies *server.Policies
	Server   *server.Server
	Log      *tlog.Log // nil unless Logged
	kind     string
	make     func(e *Env) server.AnyKind // nil for that of "cert"
	address  string
	stop     func()
}

// NewEnv returns an Env whose policy lets the given nodes enrol.
func NewEnv(t *testing.T, nodes ...string) *Env {
	t.Helper()
	e := &Env{t: t, Dir: t.TempDir(), CA: kit.NewCA(), kind: cert.Name, keys: map[spiffe.ID]ssh.Signer{}}
	e.Policy = document.Policy{
		Cluster: "demo", Host: "drhorrible", TrustDomain: kit.Domain,
		Trust:    document.Trust{Roots: []string{e.RootPEM()}},
		Provider: map[string]document.Listening{},
		Kinds:    map[string]json.RawMessage{},
	}
	e.Provide(cert.Name, map[string]any{"lifetime": 86400})
	for _, n := range nodes {
		id := kit.ID("node/" + n)
		e.Policy.Devices = append(e.Policy.Devices, document.Device{ID: id, SSHHostKey: kit.Authorized(e.HostKey(id).PublicKey())})
		e.Grant(id, "cert-node", "cert", map[string]any{"id": id})
	}
	t.Cleanup(func() { e.Stop() })
	return e
}

// Provide adds a kind of need and its settings to the provider's policy. The change takes effect
// with the next call of Publish.
func (e *Env) Provide(kind string, settings any) {
	e.Policy.Kinds[kind] = kit.JSON(settings)
	e.Policy.Provider[kind] = document.Listening{ID: kit.ProviderID(e.Policy.Host, kind), Listen: []string{"127.0.0.1:4600"}}
}

// Runs makes the provider process run another kind of need than "cert".
func (e *Env) Runs(kind string, settings any, make func(e *Env) server.AnyKind) {
	e.kind, e.make = kind, make
	e.Provide(kind, settings)
}

// shared is the state that several hosts share.
type shared struct {
	open func() store.Store
	key  *sealedstore.Key
}

// Share makes the provider host keep its state in a store that several hosts share. Each provider
// host that Beside creates later uses the same store, which it opens by calling open, and the same
// sealing key.
func (e *Env) Share(open func() store.Store) {
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		e.t.Fatal(err)
	}
	e.shared = &shared{open, key}
	e.Policy.Store = &document.SharedStore{Kind: "etcd", Endpoints: []string{}, Replicas: map[string][]document.Device{}}
}

// Beside returns a second provider host in the same trust domain, with the same grants and an
// issuing CA of its own. Its state is separate, unless Share was called before.
func (e *Env) Beside(host string) *Env {
	e.t.Helper()
	b := &Env{t: e.t, Dir: e.t.TempDir(), kind: e.kind, CA: e.CA.Beside(), keys: e.keys, shared: e.shared, make: e.make, Logger: e.Logger}
	if err := json.Unmarshal(kit.JSON(e.Policy), &b.Policy); err != nil {
		e.t.Fatal(err)
	}
	b.Policy.Host = host
	for kind := range b.Policy.Kinds {
		b.Provide(kind, b.Policy.Kinds[kind])
	}
	e.t.Cleanup(func() { b.Stop() })
	return b
}

// Grant changes the policy so that a caller may request a need. The generation of the grant is 1.
// The change takes effect with the next call of Publish.
func (e *Env) Grant(caller spiffe.ID, need, kind string, request any) {
	e.Policy.Grants = append(e.Policy.Grants, document.Grant{Caller: caller, Need: need, Kind: kind, Request: kit.JSON(request), Generation: 1})
	slices.SortFunc(e.Policy.Grants, func(a, b document.Grant) int {
		return strings.Compare(a.Caller.String()+" "+a.Need, b.Caller.String()+" "+b.Need)
	})
}

// Rotate sets the generation of a grant. A higher generation makes the host request a new secret.
// The change takes effect with the next call of Publish.
func (e *Env) Rotate(caller spiffe.ID, need string, generation int) {
	for i, g := range e.Policy.Grants {
		if g.Caller == caller && g.Need == need {
			e.Policy.Grants[i].Generation = generation
		}
	}
}

// PolicyDir returns the path of the directory from which the provider reads its policy.
func (e *Env) PolicyDir() string { return filepath.Join(e.Dir, "policy") }

// Revocations returns the path of the file from which the provider reads the revocation list.
func (e *Env) Revocations() string { return filepath.Join(e.Dir, "revocations.json") }

// Publish writes the policy, with the given serial, to the directory from which the provider reads
// it.
func (e *Env) Publish(serial int64) {
	kit.Write(e.PolicyDir(), kit.Document(serial, e.Policy))
}

// Start starts the provider process. If Publish was not called before, Start publishes a policy
// with the serial Serial.
func (e *Env) Start() {
	e.t.Helper()
	if _, err := os.Stat(e.PolicyDir()); err != nil {
		e.Publish(Serial)
	}
	must := func(err error) {
		if err != nil {
			e.t.Helper()
			e.t.Fatal(err)
		}
	}
	log := e.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(e.t.Output(), nil))
	}
	db, key, err := e.open()
	must(err)
	// A provider commits by itself, too, whenever it likes.
	e.Store, e.Key = &Faulty{Store: db, only: ofACall}, key
	e.Policies, err = server.OpenPolicies(e.PolicyDir(), e.Revocations(), e.kind, log)
	must(err)
	if e.Logged {
		e.Log = tlog.New(tlog.Config{
			Dir: filepath.Join(e.Dir, "log"), Name: kit.Domain + "/" + e.kind + "/" + e.Policy.Host, Store: e.Store, Prefix: server.AuditPrefix,
			Kept: server.Retention{}.Rows, Logger: log,
		})
	}
	kind, certificate := e.process()
	e.Server, err = server.New(server.Config{
		Policies: e.Policies, Kind: kind, Store: e.Store, Key: e.Key, Certificate: certificate, Log: e.Log, Logger: log,
	})
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	e.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Server.Serve(ctx, l) }()
	e.connected()
	e.stop = func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("the provider ended with %v", err)
		}
		db.Close()
	}
}

// open opens the state of the provider and the key that seals its secrets.
func (e *Env) open() (store.Store, *sealedstore.Key, error) {
	if e.shared != nil {
		return e.shared.open(), e.shared.key, nil
	}
	db, err := sqlite.Open(filepath.Join(e.Dir, "state.db"), sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	key, err := sealedstore.Load(filepath.Join(e.Dir, "seal.key"))
	return db, key, err
}

// process returns the kind of need that the provider serves, and a function that returns the SVID
// that the provider presents. The issuing CA made this SVID, as the process of kind "cert" would.
func (e *Env) process() (server.AnyKind, func() (*tls.Certificate, error)) {
	if e.make == nil {
		issuer := cert.New(cert.Config{
			Store: e.Store, Key: e.Key, Policy: server.Compiled[cert.Policy](e.Policies),
			Revoked: e.Policies.Revoked, CRL: filepath.Join(e.Dir, "crl.pem"),
			Authority: func() (*ca.Authority, error) { return e.Issuing, nil },
		})
		return server.Any(issuer), issuer.Certificate
	}
	svid := e.Issue(e.Policies.Self().ID, time.Hour)
	return e.make(e), func() (*tls.Certificate, error) { return svid, nil }
}

// connected waits until the provider accepts connections. By then, the provider has recorded the
// policy in force.
func (e *Env) connected() {
	e.t.Helper()
	c, err := tls.Dial("tcp", e.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		e.t.Fatal(err)
	}
	c.Close()
}

// Stop ends the provider.
func (e *Env) Stop() {
	if e.stop != nil {
		e.stop()
		e.stop = nil
	}
}

// Restart stops the provider and starts it again with the same state.
func (e *Env) Restart() {
	e.t.Helper()
	e.Stop()
	e.Start()
}

// Audit returns the audit rows about decisions, in order.
func (e *Env) Audit() []server.Row {
	return slices.DeleteFunc(e.Rows(), func(r server.Row) bool { return r.Outcome == server.Changed || r.Outcome == server.Alarmed })
}

// Rows returns all audit rows, in order.
func (e *Env) Rows() (rows []server.Row) {
	e.t.Helper()
	entries, _, err := e.Store.List(context.Background(), server.AuditPrefix)
	if err != nil {
		e.t.Fatal(err)
	}
	slices.SortFunc(entries, func(a, b store.Entry) int { return int(a.Created - b.Created) })
	for _, en := range entries {
		var r server.Row
		if err := json.Unmarshal(en.Value, &r); err != nil {
			e.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// Address returns the address of the running provider.
func (e *Env) Address() string { return e.address }
