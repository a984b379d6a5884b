package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

var ursula, raishan = kit.ID("node/ursula"), kit.ID("node/raishan")

// start runs a provider of the documents in dir, which both nodes may read.
func start(t *testing.T, dir string) *providertest.Env {
	t.Helper()
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Runs("config", struct{}{}, func(*providertest.Env) server.Kind { return config.Artifacts(dir) })
	e.Grant(ursula, "config-documents", "config", struct{}{})
	e.Grant(raishan, "config-documents", "config", struct{}{})
	e.Start()
	return e
}

// documents are a policy of each host, unsigned: what a body says is no matter here.
func documents(serial int64, hosts ...string) map[string][]florete.Document {
	all := map[string][]florete.Document{}
	for _, h := range hosts {
		all[h] = append(all[h], kit.Document(serial, florete.Policy{
			Cluster: "demo", Host: h, TrustDomain: kit.Domain, Provider: map[string]florete.Listening{}, Kinds: map[string]json.RawMessage{},
		}))
	}
	return all
}

func TestArtifact(t *testing.T) {
	secret := kit.SigningKey("demo-1")
	dir := filepath.Join(t.TempDir(), "published")
	e := start(t, dir)
	c := e.Client(ursula)
	_, err := c.Artifact(t.Context())
	providertest.WantError(t, err, api.Transient, api.CodeMissing)

	for serial := range int64(3) {
		tree, err := publish.Sign(documents(1000+serial, "ursula", "raishan"), secret, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Write(dir); err != nil {
			t.Fatal(err)
		}
		a, err := c.Artifact(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Documents) != 1 {
			t.Fatalf("got %d documents", len(a.Documents))
		}
		got := a.Documents[0]
		d, err := florete.Open([]byte(got.Envelope), []byte(got.Body), got.Signature)
		if err != nil || d.Envelope.Host != "ursula" || d.Envelope.Serial != 1000+serial {
			t.Fatalf("got %+v, %v", d.Envelope, err)
		}
		if err := d.Verify([]string{secret.ToPublicKey().String()}); err != nil {
			t.Error(err)
		}
	}
	rows := e.Audit()
	if last := rows[len(rows)-1]; len(rows) != 4 || last.Outcome != server.Granted || last.Need != "config-documents" || last.Caller != ursula.String() {
		t.Errorf("audit: %+v", rows)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	e := start(t, dir)
	nosy := e.Client(ursula)
	nosy.Node = raishan // asks for raishan's with ursula's SVID
	_, err := nosy.Artifact(t.Context())
	providertest.WantError(t, err, api.Denied, api.CodeNotGranted)

	unknown := e.Client(kit.ID("node/laptop"))
	_, err = unknown.Artifact(t.Context())
	providertest.WantError(t, err, api.Denied, api.CodeNotGranted)
	unknown.Serial = providertest.Serial + 1
	_, err = unknown.Artifact(t.Context())
	providertest.WantError(t, err, api.Transient, api.CodePolicyBehind)

	thief := e.Client(ursula) // has a copy of its SVID
	for _, thief.HostKey = range []ssh.Signer{nil, e.HostKey(raishan)} {
		_, err = thief.Artifact(t.Context())
		providertest.WantError(t, err, api.Denied, api.CodeDeviceKey)
	}

	// Unsigned documents, and another host's in the place of ursula's.
	for host, documents := range documents(1000, "ursula", "raishan") {
		at := filepath.Join(dir, map[string]string{"ursula": "raishan", "raishan": "ursula"}[host])
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			if err := d.Write(at); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = e.Client(ursula).Artifact(t.Context())
	providertest.WantError(t, err, api.Transient, api.CodeInternal)
	if err := os.WriteFile(filepath.Join(dir, "ursula", "policy.sig"), []byte("demo-1:AAAA"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = e.Client(ursula).Artifact(t.Context())
	providertest.WantError(t, err, api.Transient, api.CodeInternal)
	for _, row := range e.Audit() {
		if row.Outcome == server.Granted {
			t.Errorf("granted: %+v", row)
		}
	}
}

func TestCheck(t *testing.T) {
	p := florete.Policy{Host: "drhorrible", Kinds: map[string]json.RawMessage{"config": json.RawMessage(`{"a":1}`)}}
	_, err := config.Artifacts("").Compile(p)
	if want := `policy of drhorrible: kind "config": : unknown field "a"`; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
