//go:build cgo

package authority_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/authority"
)

// softHSM makes a token with the label "root" and the PIN 314159, and returns its module.
func softHSM(t *testing.T) (module string) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/softhsm/libsofthsm2.so")
	if err != nil || len(found) == 0 {
		t.Skip("NOT RUN: no /usr/lib/softhsm/libsofthsm2.so, on Debian it is in the package libsofthsm2, softhsm2-util in softhsm2")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "softhsm2.conf")
	if err := os.WriteFile(conf, []byte("directories.tokendir = "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOFTHSM2_CONF", conf)
	if out, err := exec.Command("softhsm2-util", "--init-token", "--free", "--label", "root", "--pin", "314159", "--so-pin", "271828").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return found[0]
}

// noTerminal stands for a machine without one.
func noTerminal(what, instead string) (string, error) {
	return "", errors.New("no terminal to read the " + what + " from: " + instead)
}

// uri returns the URI of a key on the token of softHSM, with a PIN.
func uri(t *testing.T, module, key, pin string) authority.TokenURI {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pin")
	if err := os.WriteFile(file, []byte(pin+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := authority.ParseTokenURI("pkcs11:token=root;" + key + "?pin-source=" + url.PathEscape(file) + "&module-path=" + module)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func open(t *testing.T, u authority.TokenURI) *authority.Token {
	t.Helper()
	token, err := authority.OpenToken(u, noTerminal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = token.Close() })
	return token
}

// TestToken makes a key on a token, and signs with it once the token was locked meanwhile.
func TestToken(t *testing.T) {
	module := softHSM(t)
	u := uri(t, module, "object=demo.flor", "314159")
	token, err := authority.OpenToken(u, noTerminal)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := token.Key(); key != nil || err != nil {
		t.Fatalf("on an empty token: %v, %v", key, err)
	}
	made, err := token.Make()
	if err != nil {
		t.Fatal(err)
	}
	if err := token.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := open(t, u).Key()
	if err != nil {
		t.Fatal(err)
	}
	public, ok := key.Public().(*ecdsa.PublicKey)
	if !ok || !public.Equal(made.Public()) {
		t.Fatalf("another key: %v", key.Public())
	}
	digest := sha256.Sum256([]byte("text"))
	sig, err := key.Sign(rand.Reader, digest[:], nil)
	if err != nil || !ecdsa.VerifyASN1(public, digest[:], sig) {
		t.Errorf("the signature does not verify: %v", err)
	}
	if again, err := open(t, uri(t, module, "object=other", "314159")).Key(); again != nil || err != nil {
		t.Errorf("under another label: %v, %v", again, err)
	}
	if _, err := open(t, u).Make(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, u).Key(); err == nil || !strings.HasSuffix(err.Error(), `token "root": 2 keys "demo.flor": name one of them by its id in the URI too`) {
		t.Error(err)
	}
	byID := uri(t, module, "id=%07", "314159")
	if _, err := open(t, byID).Make(); err != nil {
		t.Fatal(err)
	}
	if key, err := open(t, byID).Key(); key == nil || err != nil {
		t.Errorf("by its id: %v, %v", key, err)
	}
}

// TestOpenToken checks that each error says what to do about it, and that no error contains the PIN.
func TestOpenToken(t *testing.T) {
	module := softHSM(t)
	good := uri(t, module, "object=demo.flor", "314159")
	wrong := uri(t, module, "object=demo.flor", "141421")
	empty := uri(t, module, "object=demo.flor", "")
	typed, elsewhere, absent, unreadable, readable := good, good, good, good, good
	typed.PINSource, elsewhere.Token, absent.Module = "", "other", "/none.so"
	unreadable.PINSource = "/none"
	readable.PINSource = filepath.Join(t.TempDir(), "pin")
	if err := os.WriteFile(readable.PINSource, []byte("314159"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, u := range map[string]authority.TokenURI{
		"CKR_PIN_INCORRECT: it locks itself after a few wrong PINs": wrong,
		"no PIN in it": empty,
		`no terminal to read the PIN of token "root" from: ?pin-source=FILE in the URI`: typed,
		`token "other" in module ` + module + ": ":                                      elsewhere,
		`token "root" in module /none.so: `:                                             absent,
		"pin-source: open /none: no such file":                                          unreadable,
		"mode 0644 lets others use a secret: chmod 0600 it":                             readable,
	} {
		_, err := authority.OpenToken(u, noTerminal)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "141421") || strings.Contains(err.Error(), "314159") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	token, err := authority.OpenToken(typed, func(what, _ string) (string, error) { return "314159", nil })
	if err != nil {
		t.Fatal(err)
	}
	_ = token.Close()
}

// TestWithoutCgo builds this package as our programs are built. tests/run has compiled what it needs
// with the same tags.
func TestWithoutCgo(t *testing.T) {
	cmd := exec.Command("go", "test", "-count=1", "-tags=netgo,osusergo", "-run", "TestNoCgo", "-v", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestNoCgo") {
		t.Errorf("%v: %s", err, out)
	}
}
