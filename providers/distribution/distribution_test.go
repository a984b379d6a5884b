package distribution_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var ursula, raishan = kit.ID("node/ursula"), kit.ID("node/raishan")

// start runs a provider of what is in its archive, which both nodes may read.
func start(t *testing.T) *providertest.Env {
	t.Helper()
	return startWatch(t, 5*time.Minute)
}

// startWatch is like start, with this duration of watches.
func startWatch(t *testing.T, watch time.Duration) *providertest.Env {
	t.Helper()
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Runs("config", struct{}{}, func(e *providertest.Env) server.AnyKind {
		d := distribution.New(archive.Archive{Store: e.Store})
		d.Watch = watch
		return d.Kind()
	})
	e.Grant(ursula, "config-documents", "config", struct{}{})
	e.Grant(raishan, "config-documents", "config", struct{}{})
	e.Start()
	return e
}

func TestArtifact(t *testing.T) {
	e := start(t)
	key := kit.SigningKey("demo-1")
	c := e.Client(ursula)
	_, err := c.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeMissing)
	providertest.Import(t, e.Store, key, providertest.Tree(key, 999, "", "raishan"))
	_, err = c.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeMissing)

	var last hostapi.Artifact
	for serial := range int64(3) {
		c.Tag = last.Tag() // of before
		providertest.Import(t, e.Store, key, providertest.Tree(key, 1000+serial, "", "ursula", "raishan"))
		if last, err = c.Artifact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(last.Documents) != 1 {
			t.Fatalf("got %d documents", len(last.Documents))
		}
		got := last.Documents[0]
		d, err := document.Open([]byte(got.Envelope), []byte(got.Body), got.Signature)
		if err != nil || d.Envelope.Host != "ursula" || d.Envelope.Serial != 1000+serial {
			t.Fatalf("got %+v, %v", d.Envelope, err)
		}
		if err := d.Verify(signers.Any(key.ToPublicKey().String())); err != nil {
			t.Error(err)
		}
	}
	rows := e.Audit()
	if last := rows[len(rows)-1]; len(rows) != 5 || last.Outcome != server.Granted || last.Need != "config-documents" || last.Caller != ursula.String() {
		t.Errorf("audit: %+v", rows)
	}
}

// TestStoreAway checks that nodes get their signed documents even if the store accepts no audit
// row.
func TestStoreAway(t *testing.T) {
	e := start(t)
	key := kit.SigningKey("demo-1")
	providertest.Import(t, e.Store, key, providertest.Tree(key, 1000, "", "ursula", "raishan"))
	e.Store.Fail(store.ErrUnavailable)
	if a, err := e.Client(ursula).Artifact(t.Context()); err != nil || len(a.Documents) != 1 {
		t.Errorf("got %d documents, %v", len(a.Documents), err)
	}
	e.Store.Fail(errors.New("disk full"))
	_, err := e.Client(ursula).Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeInternal)
}

// TestNotModified checks that a node that already has the served documents is told so, and that the
// request changes nothing.
func TestNotModified(t *testing.T) {
	e := start(t)
	key := kit.SigningKey("demo-1")
	providertest.Import(t, e.Store, key, providertest.Tree(key, 1000, "", "ursula", "raishan"))
	c := e.Client(ursula)
	a, err := c.Artifact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revision := func() int64 {
		_, n, err := e.Store.List(t.Context(), "none")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := revision()
	c.Tag = a.Tag()
	for range 3 {
		if a, err := c.Artifact(t.Context()); err != nil || !a.NotModified || len(a.Documents) > 0 {
			t.Fatalf("got %+v, %v", a, err)
		}
	}
	if now := revision(); now != before {
		t.Errorf("revision %d, then %d", before, now)
	}
	// To name them proves nothing.
	thief := e.Client(ursula)
	thief.Tag = a.Tag()
	for _, thief.HostKey = range []ssh.Signer{nil, e.HostKey(raishan)} {
		_, err = thief.Artifact(t.Context())
		providertest.WantError(t, err, hostapi.CodeDeviceKey)
	}
	unknown := e.Client(kit.ID("node/laptop"))
	unknown.Tag = a.Tag()
	_, err = unknown.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)
}

func TestRefused(t *testing.T) {
	e := start(t)
	key := kit.SigningKey("demo-1")
	providertest.Import(t, e.Store, key, providertest.Tree(key, 1000, "", "ursula", "raishan"))
	nosy := e.Client(ursula)
	nosy.Node = raishan // asks for raishan's with ursula's SVID
	_, err := nosy.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)

	unknown := e.Client(kit.ID("node/laptop"))
	_, err = unknown.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	unknown.Serial = providertest.Serial + 1
	_, err = unknown.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodePolicyBehind)

	thief := e.Client(ursula) // has a copy of its SVID
	for _, thief.HostKey = range []ssh.Signer{nil, e.HostKey(raishan)} {
		_, err = thief.Artifact(t.Context())
		providertest.WantError(t, err, hostapi.CodeDeviceKey)
	}
	for _, row := range e.Audit() {
		if row.Outcome == server.Granted {
			t.Errorf("granted: %+v", row)
		}
	}
}

func TestCheck(t *testing.T) {
	p := document.Policy{Host: "drhorrible", Kinds: map[string]json.RawMessage{"config": json.RawMessage(`{"a":1}`)}}
	err := distribution.Check(p)
	if want := `policy of drhorrible: kind "config": unknown field "a"`; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
