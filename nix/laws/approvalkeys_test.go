package laws

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/tests/kit"
)

// TestApprovalKeys checks that the compiler accepts approval keys of every type, and that hosts can
// parse each key that it accepts.
func TestApprovalKeys(t *testing.T) {
	const sk = "sk-ssh-ed25519@openssh.com "
	good := kit.Authorized(kit.NewSecurityKey().PublicKey())
	weak := good[:len(sk)+45] + strings.Repeat("A", 43) + good[len(sk)+88:] // a point of small order
	keys := append([]string{good, kit.Authorized(kit.NewECDSASecurityKey().PublicKey())}, hostKeys()...)
	lines := []string{weak}
	for _, line := range keys {
		kind, text, _ := strings.Cut(line, " ")
		lines = append(lines, line, line+" comment", line+"\n", line[:len(line)-4], line+"AAAA", line+"AAAAAAAA", line[:len(line)-1]+"=", strings.TrimRight(line, "="))
		for _, other := range keys {
			of, _, _ := strings.Cut(other, " ")
			lines = append(lines, of+" "+text)
		}
		for i := range 53 { // what Nix checks of ECDSA keys
			lines = append(lines, kind+" "+text[:i]+"Z"+text[i+1:])
		}
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, must(json.Marshal(lines)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--expr", fmt.Sprintf(
		`map (key: (import ../language/formats/keys.nix).personKey.faults "key" key == [ ]) (builtins.fromJSON (builtins.readFile %s))`, file))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var accepts []bool
	if err := json.Unmarshal(out, &accepts); err != nil {
		t.Fatal(err)
	}
	accepted := map[string]bool{}
	for i, line := range lines {
		accepted[line] = accepts[i]
		if !accepts[i] {
			continue
		}
		if _, err := accessgrant.ParseKey(line); err != nil {
			t.Errorf("the compiler accepts %s, and hosts do not: %v", line, err)
		}
	}
	for _, line := range keys {
		if !accepted[line] {
			t.Errorf("the compiler refuses %s", line)
		}
	}
	if accepted[weak] {
		t.Errorf("the compiler accepts %s, for which anybody can sign", weak)
	}
}
