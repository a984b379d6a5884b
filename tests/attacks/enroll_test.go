package attacks

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// identityFiles creates identity files of hosts, and also forged ones.
type identityFiles struct {
	*cluster
	opens *age.X25519Identity // the age identity in identity.key
}

func (c identityFiles) keyFile() string { return c.Path("operator", "identity.key") }

// issue creates an identity file for a host with florctl, as an operator does.
func (c identityFiles) issue(t *testing.T, host string) []byte {
	t.Helper()
	out := c.Path("operator", host+".age")
	_, err := c.Run(t.Context(), "florctl", "identity", "issue", "git+file://"+c.Path("cluster"), "--offline", "--host", host,
		"--dir", c.Path("operator"), "--key", c.Path("operator", "signing.key"), "--seal-to", c.opens.Recipient().String(), "--out", out)
	if err != nil {
		t.Fatal(err)
	}
	return kit.ReadFile(out)
}

// edit returns a forged identity file. It opens a file, changes its content, and signs and encrypts
// it with other keys.
func (c identityFiles) edit(t *testing.T, sealed []byte, by *signature.SecretKey, change func(*hostapi.IdentityFile)) []byte {
	t.Helper()
	var signed hostapi.SignedIdentityFile
	var f hostapi.IdentityFile
	plain, err := agefile.Open(sealed, []age.Identity{c.opens})
	if err == nil {
		err = json.Unmarshal(plain, &signed)
	}
	if err == nil {
		err = json.Unmarshal([]byte(signed.File), &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	change(&f)
	signed.File = string(kit.JSON(f))
	if by != nil { // otherwise the content was changed after it was signed
		signed.Signature = sign(t, *by, hostapi.IdentityFileText(signed.File))
	}
	if sealed, err = agefile.Seal(kit.JSON(signed), []age.Recipient{c.opens.Recipient()}); err != nil {
		t.Fatal(err)
	}
	return sealed
}

// enroll runs flor identity install on a host. If the file is refused, it checks that nothing was
// left on the host.
func (c identityFiles) enroll(t *testing.T, h *local.Host, sealed []byte) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "identity.age")
	if err := os.WriteFile(file, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	before := listing(t, filepath.Dir(h.Layout().IdentityFile()))
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.Bin, "flor"), "identity", "install", file, "--state", string(h.Layout()), "--identity", c.keyFile())
	var problem bytes.Buffer
	cmd.Stderr = &problem
	if cmd.Run() == nil {
		return nil
	}
	if after := listing(t, filepath.Dir(h.Layout().IdentityFile())); after != before {
		t.Errorf("was refused, and left %q, before it was %q", after, before)
	}
	return errors.New(problem.String())
}

// listing returns the names and contents of all files in a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range all {
		b.WriteString(e.Name() + ": " + document.Digest(kit.ReadFile(filepath.Join(dir, e.Name()))) + "\n")
	}
	return b.String()
}

// TestEnroll checks that a host can enrol with an identity file while no provider is available, and
// later renew its certificate at a provider. All forged identity files must be refused.
func TestEnroll(t *testing.T) {
	c := identityFiles{cluster: start(t)}
	var err error
	if c.opens, err = age.GenerateX25519Identity(); err == nil {
		err = os.WriteFile(c.keyFile(), []byte(c.opens.String()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := c.machine(t, "g", "none")
	good, key := c.issue(t, "g"), c.signingKey(t)
	operator, err := ca.Dir(c.Path("operator")).LoadEnrolment()
	if err != nil {
		t.Fatal(err)
	}
	alice := kit.ID("user/alice")
	// svid replaces Alice's SVID with one that a CA has signed for another time.
	svid := func(by *ca.Authority, id spiffe.ID, now, until time.Time) func(*hostapi.IdentityFile) {
		return func(file *hostapi.IdentityFile) {
			private := kit.NewKey()
			leaf, err := by.Issue(ca.SVID{ID: id, Node: "g", Key: private.Public(), Until: until}, now)
			if err != nil {
				t.Fatal(err)
			}
			text, err := ca.EncodeKey(private)
			if err != nil {
				t.Fatal(err)
			}
			*file.SVID(alice) = hostapi.IdentitySVID{ID: alice, SVID: string(ca.EncodeCertificates(leaf, by.Certificate)), Key: string(text)}
		}
	}
	now := time.Now()
	refused := func(name, refusal string, sealed []byte) attack {
		return attack{name: name, refusal: refusal, try: func(t *testing.T, _ *cluster) error { return c.enroll(t, f, sealed) }}
	}
	nobody := kit.SigningKey("sec-1")
	changed := bytes.Clone(good)
	changed[len(changed)-200] ^= 1
	run(t, []attack{
		refused("the identity file of another host", "this host is spiffe://demo.flor/node/g", c.issue(t, "e")),
		refused("an identity file of another cluster", `of cluster "other"`, c.edit(t, good, &nobody, func(file *hostapi.IdentityFile) { file.Cluster = "other" })),
		refused("an identity file that no operator signed", "does not verify with any pinned key", c.edit(t, good, &nobody, func(*hostapi.IdentityFile) {})),
		refused("an identity file that was changed after it was signed", "does not verify with any pinned key", c.edit(t, good, nil, svid(operator, alice, now, now.Add(time.Hour)))),
		refused("an identity file that was changed after it was sealed", "sealed with age", changed),
		refused("an identity file that was cut short", "sealed with age", good[:len(good)/2]),
		refused("an identity file of a foreign CA with the same names", "signed by unknown authority", c.edit(t, good, &key, svid(kit.NewCA().Issuing, alice, now, now.Add(time.Hour)))),
		refused("an identity file that has ended", "certificate of spiffe://demo.flor/user/alice is valid from", c.edit(t, good, &key, svid(operator, alice, now.Add(-time.Minute), now.Add(-30*time.Second)))),
		refused("an identity file with another's certificate", "certificate is of spiffe://demo.flor/user/dora, want spiffe://demo.flor/user/alice", c.edit(t, good, &key, svid(operator, kit.ID("user/dora"), now, now.Add(time.Hour)))),
		refused("an identity file with another device key", "for the device with key SHA256:", c.edit(t, good, &key, func(file *hostapi.IdentityFile) { file.DeviceKey = deviceKey(t) })),
		refused("an identity file without an admission", "admits no device", c.edit(t, good, &key, func(file *hostapi.IdentityFile) { file.Admission = nil })),
		refused("an identity file with certificates for a key of nobody", "for a key that this host does not have", c.edit(t, good, &key, func(file *hostapi.IdentityFile) { file.SVID(alice).Key = "" })),
		refused("an identity file that is revoked", "user/alice is revoked, by revocation list", c.edit(t, good, &key, func(file *hostapi.IdentityFile) {
			var last any
			if offered := c.offered(t); offered.List != "" {
				last = offered
			}
			list := c.revoke(t, last, func(l *trust.Revocations) { revocation.Revoke(l, revocation.Target{ID: alice}) })
			file.Artifact.Revocations = &list
		})),
	})

	if err := c.enroll(t, f, good); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "the needs of g", f.Unfulfilled)
	node := c.svid(t, f, "cert-node")
	if by := c.svid(t, f, "cert-user-alice").Leaf.Issuer.CommonName; by != "demo.flor enrolment" {
		t.Errorf("alice's certificate is issued by %q", by)
	}
	if err := c.knock(t.Context(), "echo", c.svid(t, f, "cert-user-alice")); err != nil {
		t.Errorf("alice reaches nothing: %v", err)
	}
	device, err := ssh.ParsePrivateKey(kit.ReadFile(f.Layout().DeviceKey()))
	if err != nil {
		t.Fatal(err)
	}
	renews := func(key ssh.Signer) error {
		client := c.device(t, "g", "cert", key)
		client.SVID = node
		id := client.Node
		_, err := client.Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-node", Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, kit.NewKey())})})
		return err
	}
	if err := renews(device); err != nil {
		t.Errorf("it does not renew over the network: %v", err)
	}
	copied := &local.Host{Name: "g", Dir: c.Path("hosts", "copied"), Bin: c.Bin}
	if err := errors.Join(os.MkdirAll(copied.Dir, 0o700), copied.Deploy(c.Path("documents", "g"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := copied.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "flor", "identity", "create", "--state", string(copied.Layout())); err != nil {
		t.Fatal(err)
	}
	run(t, []attack{
		refused("the same identity file again", "contains nothing newer than this host has", good),
		{
			name: "the identity file of another device", refusal: "but this host has key SHA256:",
			try: func(t *testing.T, _ *cluster) error { return c.enroll(t, copied, good) },
		},
		{
			name: "the certificate of an identity file without its device key", refusal: "want a proof by its device key",
			try: func(*testing.T, *cluster) error { return renews(kit.NewHostKey()) },
			row: local.Decision{Caller: "spiffe://demo.flor/node/g", Decision: "denied", Code: hostapi.CodeDeviceKey.Name},
		},
	})
}

func deviceKey(t *testing.T) string {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}
