package compile

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"os/exec"
	"slices"
	"strings"
	"testing"

	x25519 "filippo.io/age"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/pubkey"
)

// TestKeys checks that Nix, from the text alone, refuses exactly the keys that Go refuses.
func TestKeys(t *testing.T) {
	var keys []any
	for _, y := range []string{
		"0", "1", "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffec",
		"5fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826",
		"7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7",
	} {
		n, ok := new(big.Int).SetString(y, 16)
		if !ok {
			t.Fatal(y)
		}
		for _, d := range []int64{0, 2} { // and one beside it
			keys = append(keys, encodings(new(big.Int).Add(n, big.NewInt(d)))...)
		}
	}
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	for d := range int64(19 + 40) {
		keys = append(keys, encodings(new(big.Int).Add(p, big.NewInt(d-40)))...)
	}
	for range 40 {
		public, _, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, public)
	}
	for _, bits := range []int{1024, 2047, 2048, 2049, 2056, 3072, 4096} {
		for _, e := range []int{3, 65537, 1<<31 - 1} {
			n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, &rsa.PublicKey{N: n.SetBit(n, bits-1, 1).SetBit(n, 0, 1), E: e})
		}
	}
	var lines, named []string
	for _, k := range keys {
		public, err := ssh.NewPublicKey(k)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(ssh.MarshalAuthorizedKey(public))+"root@host\n")
		if k, ok := k.(ed25519.PublicKey); ok {
			named = append(named, "demo-1:"+base64.StdEncoding.EncodeToString(k))
		}
	}
	sshKey, signingKey := sound(t, "sshKey", lines), sound(t, "signingKey", named)
	strong := 0
	for i, k := range keys {
		err := pubkey.CheckHost(k)
		if (err == nil) != sshKey[i] {
			t.Errorf("%q: Go says %v, Nix %v", lines[i], err, sshKey[i])
		}
		if i < len(named) && (err == nil) != signingKey[i] {
			t.Errorf("%q: Go says %v, Nix %v", named[i], err, signingKey[i])
		}
		if err == nil {
			strong++
		}
	}
	if strong < 100 || len(keys)-strong < 50 {
		t.Errorf("%d of %d keys are good", strong, len(keys))
	}
	// Zeros before a short modulus do not make it longer.
	padded := base64.StdEncoding.EncodeToString(append([]byte("\x00\x00\x00\x07ssh-rsa\x00\x00\x00\x03\x01\x00\x01\x00\x00\x01\x01\x00\x7f"), make([]byte, 255)...))
	if slices.Contains(sound(t, "sshKey", []string{"ssh-rsa " + padded, "ssh-rsa " + padded[:len(padded)-4]}), true) {
		t.Error("an RSA key of 2047 bits is taken")
	}
	// The last character of base64 has bits that decoders drop.
	if slices.Contains(sound(t, "signingKey", []string{"demo-1:" + fmt.Sprintf("%042dB=", 0)}), true) {
		t.Error("a key with bits behind it is taken")
	}
}

// TestRecipients checks that Nix refuses exactly the recipients that age refuses: one letter is
// another one, two are in the wrong order, the key is cut short, or it has something before or after.
func TestRecipients(t *testing.T) {
	const letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	var keys []string
	for range 10 {
		identity, err := x25519.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		key := identity.Recipient().String()
		keys = append(keys, key, key[:len(key)-1], key+"q", " "+key, key+"\n", strings.ToUpper(key), strings.Replace(key, "age1", "age2", 1), identity.String())
		for i := 4; i < len(key); i++ {
			other := letters[(strings.IndexByte(letters, key[i])+1+i%31)%32]
			keys = append(keys, key[:i]+string(other)+key[i+1:])
			if i > 4 {
				keys = append(keys, key[:i-1]+string(key[i])+string(key[i-1])+key[i+1:])
			}
		}
	}
	good := 0
	for i, ok := range sound(t, "recipient", keys) {
		_, err := x25519.ParseX25519Recipient(keys[i])
		if (err == nil) != ok {
			t.Errorf("%q: age says %v, Nix %v", keys[i], err, ok)
		}
		if ok {
			good++
		}
	}
	if good < 10 || len(keys)-good < 500 {
		t.Errorf("%d of %d keys are good", good, len(keys))
	}
}

func encodings(y *big.Int) (both []any) {
	for sign := range byte(2) {
		b := y.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		b[31] |= sign << 7
		both = append(both, ed25519.PublicKey(b))
	}
	return both
}

// sound reports which texts are valid for a type of the language.
func sound(t *testing.T, word string, texts []string) (ok []bool) {
	t.Helper()
	arg, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nix-instantiate", "--eval", "--strict", "--json", "--argstr", "texts", string(arg), "--expr",
		fmt.Sprintf("{ texts }: map (v: (import ../../language/formats).%s.faults \"\" v == [ ]) (builtins.fromJSON texts)", word))
	cmd.Dir = "."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &ok); err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestTrustDomains checks that an address is refused, since a name constraint cannot contain one.
func TestTrustDomains(t *testing.T) {
	if got := sound(t, "trustDomain", []string{"demo.flor", "cluster", "1.2.3", "10.0.0.1", "demo..flor"}); !slices.Equal(got, []bool{true, true, true, false, false}) {
		t.Errorf("got %v", got)
	}
}
