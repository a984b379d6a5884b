package compile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/nar"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/tests/kit"
)

// keyTexts returns private keys in every form that is detected.
func keyTexts(t *testing.T) map[string]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	openssh, err := ssh.MarshalPrivateKey(ed, "")
	if err != nil {
		t.Fatal(err)
	}
	secret := kit.SigningKey("demo-1")
	armored := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return map[string]string{
		"ca.key":        armored("PRIVATE KEY", pkcs8),
		"old.key":       armored("EC PRIVATE KEY", sec1),
		"bundle.pem":    armored("CERTIFICATE", sec1) + armored("PRIVATE KEY", pkcs8),
		"indented.nix":  "''\n  " + strings.ReplaceAll(armored("PRIVATE KEY", pkcs8), "\n", "\n  ") + "''",
		"in.json":       fmt.Sprintf("{%q: %q}", "key", armored("PRIVATE KEY", pkcs8)),
		"headers.key":   string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: sec1})),
		"ssh/id":        string(pem.EncodeToMemory(openssh)),
		"signing.key":   secret.String(),
		"flake.nix.bak": "key = \"" + secret.String() + "\";",
		"age.txt":       "# created: today\nAGE-SECRET-KEY-1" + strings.Repeat("Q", 58) + "\n",
	}
}

// TestPrivateKeys checks that every file with a private key is a fault, which does not contain the
// key.
func TestPrivateKeys(t *testing.T) {
	dir := t.TempDir()
	keys := keyTexts(t)
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"manifest.sig": "demo-1:" + base64.StdEncoding.EncodeToString(append(public, public...)), // a signature has that form
		"about.md":     "Look for -----BEGIN PRIVATE KEY----- or AGE-SECRET-KEY-1… in it.\n",
		"public.key":   "demo-1:" + base64.StdEncoding.EncodeToString(public),
		"huge":         strings.Repeat("x", maxKeyFile) + keys["ca.key"],
	}
	maps.Copy(files, keys)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := nar.DumpPath(&archive, dir); err != nil {
		t.Fatal(err)
	}
	faults, err := fileFaults(&archive, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		name, _, _ := strings.Cut(f.Place, ":")
		text := keys[name]
		if text == "" {
			t.Errorf("%s: no private key is in it", f)
		}
		if rule, ok := rules(t)[f.ID]; !ok || rule.Severity != f.Severity {
			t.Errorf("%s is not among the rules as %s", f.ID, f.Severity)
		}
		delete(keys, name)
	}
	for name := range keys {
		t.Errorf("%s: not found", name)
	}
}

// TestNamesTwice checks that a duplicate name in a JSON file of the cluster is a fault, with its
// line. Nix uses the last one silently.
func TestNamesTwice(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"users/bob.json":      "{ \"roles\": [ \"reader\" ],\n  \"limits\": { \"connections\": 1, \"connections\": 2 },\n  \"roles\": [ \"operator\" ] }",
		"users/ann.json":      `{ "roles": [ "roles", "roles" ], "limits": { "roles": 1 }, "x": [ { "a": 1 }, { "a": 1 } ], "until": "roles" }`,
		"roles.json":          `{ "reader": { }, "reader": { } }`,
		"users/_draft.json":   `{ "a": 1, "a": 2 }`,
		"package.json":        `{ "a": 1, "a": 2 }`,
		"hosts/eu/draft.json": `{ "a": 1, "a": `,
	})
	var archive bytes.Buffer
	if err := nar.DumpPath(&archive, dir); err != nil {
		t.Fatal(err)
	}
	faults, err := fileFaults(&archive, "")
	var got []string
	for _, f := range faults {
		got = append(got, f.ID+" "+f.Place+" "+f.Value)
	}
	want := []string{`FL149 hosts/eu/draft.json:1 "a"`, `FL149 roles.json:1 "reader"`, `FL149 users/bob.json:2 "connections"`, `FL149 users/bob.json:3 "roles"`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestValidateFindsKeys checks that private keys in files that git does not know are ignored, since
// they are not published.
func TestValidateFindsKeys(t *testing.T) {
	src := flake(t, "{ golden = mkCluster base; }")
	key := filepath.Join(src.Flake, "ca.key")
	if err := os.WriteFile(key, []byte(keyTexts(t)["ca.key"]), 0o600); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		if out, err := exec.Command("git", append([]string{"-C", src.Flake}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	found := func() bool {
		all, err := Validate(t.Context(), src, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all[0].Faults {
			if f.ID == "FL055" && f.Place == "ca.key:1" {
				return true
			}
		}
		return false
	}
	git("init", "--quiet", "..") // the flake is a directory of its repository
	git("add", "flake.nix", "base.nix", "nix")
	if found() {
		t.Error("found although Nix does not see it")
	}
	git("add", "ca.key")
	if !found() {
		t.Error("not found")
	}
}
