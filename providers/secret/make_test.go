package secret

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// made returns a new secret as a reader receives it.
func made(t *testing.T, r Request) map[string]string {
	t.Helper()
	return newFixture(t, grant("elm", 1, r)).reads(0, time.Now())
}

func TestTexts(t *testing.T) {
	for want, r := range map[string]Request{
		`^[0-9a-f]{64}$`:    {Secret: "a", Generate: "hex", Length: 64},
		`^[A-Za-z0-9]{24}$`: {Secret: "a", Generate: "password", Length: 24},
		`^[0-9a-f]{17}$`:    {Secret: "a", Generate: "hex", Length: 17},
	} {
		values := made(t, r)
		if !regexp.MustCompile(want).MatchString(values["secret"]) {
			t.Errorf("%+v: not of the form %s", r, want)
		}
		if _, has := values["public"]; has {
			t.Errorf("%+v: has a public half", r)
		}
	}
	// All characters are equally likely.
	count := map[rune]int{}
	const n = 62 * 2000
	for _, c := range pick(letters, n) {
		count[c]++
	}
	for _, c := range letters {
		if count[c] < 1700 || count[c] > 2300 {
			t.Errorf("%c comes %d times in %d characters, want about 2000", c, count[c], n)
		}
	}
}

func TestAgeKey(t *testing.T) {
	values := made(t, Request{Secret: "a", Generate: "age"})
	identities, err := age.ParseIdentities(strings.NewReader(values["secret"]))
	if err != nil {
		t.Fatal(err)
	}
	recipients, err := age.ParseRecipients(strings.NewReader(values["public"]))
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "hello")
	w.Close()
	r, err := age.Decrypt(&sealed, identities...)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

// run returns the output of a tool, given a file and standard input. It skips the test if the tool
// is not installed.
func run(t *testing.T, in, tool, pkg string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("%s: install package %s", tool, pkg)
	}
	cmd := exec.Command(tool, args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(out)
}

func TestSSHKey(t *testing.T) {
	values := made(t, Request{Secret: "a", Generate: "ssh"})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(values["secret"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if public := run(t, "", "ssh-keygen", "openssh-client", "-y", "-f", file); strings.TrimSpace(public) != strings.TrimSpace(values["public"]) {
		t.Errorf("ssh-keygen has the public half %q, want %q", public, values["public"])
	}
}

func TestWireGuardKey(t *testing.T) {
	values := made(t, Request{Secret: "a", Generate: "wireguard"})
	if public := run(t, values["secret"], "wg", "wireguard-tools", "pubkey"); public != values["public"] {
		t.Errorf("wg has the public half %q, want %q", public, values["public"])
	}
}
