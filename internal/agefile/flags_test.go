package agefile

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/spf13/cobra"
)

// A passphrase is as hard to guess as the age program makes it, and a file that was sealed with
// another work factor opens.
func TestWorkFactor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(file, []byte("correct horse battery staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seal := func() []byte {
		to := Flags(&cobra.Command{}, "the key")
		to.passphrase = file
		all, err := to.Recipients("key")
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := Seal([]byte("plain"), all)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	sealed := seal()
	lines := strings.Split(string(sealed), "\n")
	header, err := base64.StdEncoding.DecodeString(lines[1] + lines[2])
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^-> scrypt \S+ 18$`).Match(header) {
		t.Errorf("sealed by %q", bytes.SplitN(header, []byte("\n---"), 2)[0])
	}
	old := WorkFactor
	t.Cleanup(func() { WorkFactor = old })
	WorkFactor = 10
	for _, text := range [][]byte{sealed, seal()} {
		if plain, err := Open(text, []age.Identity{passphraseOf{"key", file, ""}}); err != nil || string(plain) != "plain" {
			t.Errorf("got %q, %v", plain, err)
		}
	}
}
