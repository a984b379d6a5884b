package devicekey_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// host returns the state directory of a host, without a device key.
func host(t *testing.T) hostdir.Layout {
	t.Helper()
	l := hostdir.Layout(t.TempDir())
	if err := os.Mkdir(filepath.Dir(l.TPMDeviceKey()), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// made returns the state directory of a host whose device key is in a TPM.
func made(t *testing.T, tpm string) hostdir.Layout {
	t.Helper()
	l := host(t)
	if err := devicekey.Make(l, tpm); err != nil {
		t.Fatal(err)
	}
	if in := l.DeviceKeyIn(); in != hostdir.InTPM {
		t.Fatalf("the key is in %q", in)
	}
	return l
}

// load returns the host's key as a signer of proofs.
func load(l hostdir.Layout, tpm string) (ssh.Signer, error) {
	key, err := devicekey.Load(l, tpm)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(key)
}

func sign(l hostdir.Layout, tpm string) error {
	key, err := load(l, tpm)
	if err != nil {
		return err
	}
	text := []byte("a statement")
	sig, err := key.Sign(rand.Reader, text)
	if err != nil {
		return err
	}
	return key.PublicKey().Verify(text, sig)
}

// TestTPM checks that a TPM's key signs, concurrently and after a restart, that it is created once,
// and that the file does not contain the private key.
func TestTPM(t *testing.T) {
	tpm, _ := TPM(t)
	l := made(t, tpm)
	text := kit.ReadFile(l.DeviceKey())
	if fi, err := os.Stat(l.DeviceKey()); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if err := devicekey.Make(l, tpm); err != nil || !bytes.Equal(text, kit.ReadFile(l.DeviceKey())) {
		t.Errorf("made again: %v", err)
	}
	if err := devicekey.Make(l, devicekey.None); err != nil || l.DeviceKeyIn() != hostdir.InTPM {
		t.Errorf("made in a file beside: %v", err)
	}
	var all sync.WaitGroup
	for range 10 { // more than the TPM has room for
		all.Go(func() {
			if err := sign(l, tpm); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(filepath.Dir(l.DeviceKey()))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestTLS checks that crypto/tls and crypto/x509 can sign with the key as a crypto.Signer.
func TestTLS(t *testing.T) {
	tpm, _ := TPM(t)
	signer, err := devicekey.Load(made(t, tpm), tpm)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{"tpm"}}, &x509.Certificate{}, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	a, b := net.Pipe()
	server := tls.Server(a, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: signer}}})
	go func() { _ = server.Handshake() }()
	if err := tls.Client(b, &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "tpm", RootCAs: roots}).Handshake(); err != nil {
		t.Error(err)
	}
	if _, err := signer.Sign(rand.Reader, make([]byte, 48), crypto.SHA384); err == nil || !strings.Contains(err.Error(), "signs SHA-256, not SHA-384") {
		t.Error(err)
	}
}

// TestLost checks that a key file does not sign on another machine, nor on its own once the TPM is
// cleared or gone, and that the error names the remedy.
func TestLost(t *testing.T) {
	tpm, stop := TPM(t)
	l := made(t, tpm)
	key, err := load(l, tpm)
	if err != nil {
		t.Fatal(err)
	}
	remedy := ": florctl revoke --host-key " + ssh.FingerprintSHA256(key.PublicKey()) + ", then here rm " + l.DeviceKey() + ", and flor join with another token"
	refused := func(what, tpm string, gone bool, want string) {
		t.Helper()
		var lost *devicekey.LostError
		if err := sign(l, tpm); errors.As(err, &lost) != gone || err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), remedy) {
			t.Errorf("%s: %v, want %q … %q", what, err, want, remedy)
		}
	}
	other, _ := TPM(t)
	refused("another machine", other, true, "held by another machine's TPM, or by this one before it was cleared")
	if err := sign(l, tpm); err != nil {
		t.Errorf("where it was made: %v", err)
	}

	device, err := linuxudstpm.Open(tpm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (tpm2.Clear{AuthHandle: tpm2.TPMRHLockout}).Execute(device); err != nil {
		t.Fatal(err)
	}
	refused("cleared", tpm, true, "held by another machine's TPM, or by this one before it was cleared")
	stop()
	refused("away", tpm, false, "held by a TPM, and there is none at "+tpm+": turn it on in the firmware; where it is gone for good")
	refused("switched off", devicekey.None, false, "there is none at none")
}

// TestMake checks that a TPM that fails is not replaced by a file, and that the key is in a file if
// there is no TPM or none is wanted.
func TestMake(t *testing.T) {
	tpm, stop := TPM(t)
	device, err := linuxudstpm.Open(tpm)
	if err != nil {
		t.Fatal(err)
	}
	password := tpm2.TPM2BAuth{Buffer: []byte("owned")}
	if _, err := (tpm2.HierarchyChangeAuth{AuthHandle: tpm2.TPMRHOwner, NewAuth: password}).Execute(device); err != nil {
		t.Fatal(err)
	}
	l := host(t)
	for range 3 { // whatever fails, the TPM has room for the next
		if err := devicekey.Make(l, tpm); err == nil || !strings.HasPrefix(err.Error(), "TPM "+tpm+": storage root key: TPM_RC_BAD_AUTH") || !strings.HasSuffix(err.Error(), "or, for a key in a file, which can be copied: --tpm none") {
			t.Error(err)
		}
	}
	none := filepath.Join(t.TempDir(), "regular")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := devicekey.Make(l, none); err == nil || !strings.Contains(err.Error(), "not a device") {
		t.Error(err)
	}
	if _, err := devicekey.Load(l, tpm); !errors.Is(err, fs.ErrNotExist) || l.DeviceKeyIn() != "" {
		t.Errorf("a key was made: %v", err)
	}
	if err := devicekey.Make(l, devicekey.None); err != nil || l.DeviceKeyIn() != hostdir.InFile || sign(l, tpm) != nil {
		t.Errorf("in a file, though there is a TPM: %v", err)
	}
	stop()
	l = host(t)
	if err := devicekey.Make(l, tpm); err != nil || l.DeviceKeyIn() != hostdir.InFile || sign(l, tpm) != nil {
		t.Errorf("in a file, without a TPM: %v", err)
	}
}

// TestKeyFile checks that anything but a key file of ours is refused, with the remedy.
func TestKeyFile(t *testing.T) {
	tpm, _ := TPM(t)
	l := made(t, tpm)
	text := kit.ReadFile(l.DeviceKey())
	block, _ := pem.Decode(text)
	changed := func(f func(der []byte) []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: f(bytes.Clone(block.Bytes))})
	}
	for want, b := range map[string][]byte{
		`want one PEM block "TSS2 PRIVATE KEY"`: text[1:],
		"not a TPMKey":                          changed(func(der []byte) []byte { return der[:len(der)-1] }),
		"want a loadable key below the storage root key": changed(func(der []byte) []byte {
			return bytes.Replace(der, []byte{0x40, 0, 0, 1}, []byte{0x40, 0, 0, 2}, 1)
		}),
		"public key": changed(func(der []byte) []byte { // another curve
			return bytes.Replace(der, []byte{0, 3, 0, 16}, []byte{0, 9, 0, 16}, 1)
		}),
	} {
		if err := os.WriteFile(l.DeviceKey(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := devicekey.Load(l, tpm); err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "remove it, and flor join with another token") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	i := bytes.LastIndexByte(block.Bytes, block.Bytes[len(block.Bytes)-1])
	forged := changed(func(der []byte) []byte { der[i] ^= 1; return der })
	if err := os.WriteFile(l.DeviceKey(), forged, 0o600); err != nil {
		t.Fatal(err)
	}
	var lost *devicekey.LostError
	if err := sign(l, tpm); !errors.As(err, &lost) {
		t.Errorf("a changed private key: %v", err)
	}
}

// FuzzKeyFile loads arbitrary files.
func FuzzKeyFile(f *testing.F) {
	f.Add([]byte("-----BEGIN TSS2 PRIVATE KEY-----\nMAA=\n-----END TSS2 PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := host(t)
		if err := os.WriteFile(l.TPMDeviceKey(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := load(l, devicekey.None); err == nil && key.PublicKey().Type() != ssh.KeyAlgoECDSA256 {
			t.Errorf("a key of type %s", key.PublicKey().Type())
		}
	})
}
