package activation

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

var alice = kit.ID("user/alice")

const sshUser = "ssh-user-alice"

// sshNeeds returns the needs of a host from which alice logs in, and which others log in to.
func sshNeeds() []document.Need {
	return []document.Need{kit.SSHNeed(alice, "forge"), kit.SSHNeed(Node, "forge")}
}

// readSSH reads the certificate of alice on a host. It fails the test if the private key beside the
// certificate is not the one that is certified.
func readSSH(t *testing.T, state hostdir.Layout) *ssh.Certificate {
	t.Helper()
	dir, err := filepath.EvalSymlinks(hostdir.Current(state.Need(sshUser)))
	if err != nil {
		t.Fatal(err)
	}
	own, err := ssh.ParsePrivateKey(kit.ReadFile(filepath.Join(dir, document.FileSSHKey)))
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(kit.ReadFile(filepath.Join(dir, document.FileSSHCertificate)))
	if err != nil {
		t.Fatal(err)
	}
	c := public.(*ssh.Certificate)
	if !bytes.Equal(c.Key.Marshal(), own.PublicKey().Marshal()) {
		t.Fatal("the certificate is for another key than the one beside it")
	}
	return c
}

// TestSSHRenewal checks that a certificate is renewed in time. The private key stays the same, so
// that a login is not refused for which ssh has read the certificate but not yet the key.
func TestSSHRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.manifest.Needs = append(h.manifest.Needs, sshNeeds()...)
		h.deploy()
		stop := h.run()
		keys, serials := map[string]bool{}, map[uint64]bool{}
		for range 7 {
			time.Sleep(30 * time.Minute)
			c := readSSH(t, h.config.State)
			checker := ssh.CertChecker{}
			if err := checker.CheckCert(alice.String(), c); err != nil || !bytes.Equal(c.SignatureKey.Marshal(), h.SSH.PublicKey().Marshal()) {
				t.Fatalf("%v, signed by %s", err, kit.Authorized(c.SignatureKey))
			}
			keys[kit.Authorized(c.Key)], serials[c.Serial] = true, true
		}
		h.wantExit(stop(), event.ExitFulfilled)
		calls := h.forge.Calls(sshUser)
		for _, g := range gaps(calls) {
			if most := time.Hour * 66 / 100; g > most+time.Second || g < most*94/100 {
				t.Errorf("renewed after %s, want at most %s and not much less", g, most)
			}
		}
		if len(serials) < 5 || len(keys) != 1 {
			t.Errorf("%d certificates for %d keys, want at least 5 for 1", len(serials), len(keys))
		}
		for _, c := range calls {
			if strings.Contains(c.Body, "PRIVATE") {
				t.Errorf("sent %s", c.Body)
			}
		}
		if got := h.file("ssh-keys", document.FileSSHAuthority); got != kit.Authorized(h.SSH.PublicKey())+"\n" {
			t.Errorf("public keys of the authority: %q", got)
		}
	})
}

// TestSSHKeyRemoved checks that a person who removes the private key soon has a certificate for
// another one.
func TestSSHKeyRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.manifest.Needs = append(h.manifest.Needs, sshNeeds()...)
		h.deploy()
		stop := h.run()
		time.Sleep(time.Minute)
		former := readSSH(t, h.config.State)
		if err := os.Remove(filepath.Join(hostdir.Current(h.config.State.Need(sshUser)), document.FileSSHKey)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * maxSleep) // until the loop has looked again, and the provider has answered
		if c := readSSH(t, h.config.State); bytes.Equal(c.Key.Marshal(), former.Key.Marshal()) {
			t.Error("the certificate is for the key that was removed")
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestSSHKeygen checks that ssh-keygen reads the delivered files, and that they have the owner that
// the need names and modes that ssh accepts.
func TestSSHKeygen(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("NOT RUN: no certificate is read by OpenSSH: install package openssh-client")
	}
	h := newHost(t)
	needs := sshNeeds()
	uid := uint32(os.Getuid())
	if uid == 0 {
		uid, needs[0].Deliver.Owner = 65534, "nobody"
		h.config.Owner = "nobody" // of certificates for the forwarder, not of the authority's keys
	}
	h.manifest.Needs = append(h.manifest.Needs, needs...)
	h.deploy()
	h.wantExit(h.once(), event.ExitFulfilled)
	c := readSSH(t, h.config.State)
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), keygen, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	dir := hostdir.Current(h.config.State.Need(sshUser))
	key := filepath.Join(dir, document.FileSSHKey)
	if got := run("-y", "-f", key); strings.TrimSpace(got) != kit.Authorized(c.Key) {
		t.Errorf("public half %q, want %q", got, kit.Authorized(c.Key))
	}
	got := run("-L", "-f", key+"-cert.pub")
	for _, want := range []string{"user certificate", `Key ID: "spiffe://demo.flor/user/alice"`, "SHA256:"} {
		if !strings.Contains(got, want) {
			t.Errorf("ssh-keygen -L does not show %s:\n%s", want, got)
		}
	}
	authority := filepath.Join(hostdir.Current(h.config.State.Need("ssh-keys")), document.FileSSHAuthority)
	if got := run("-l", "-f", authority); !strings.Contains(got, ssh.FingerprintSHA256(h.SSH.PublicKey())) {
		t.Errorf("ssh-keygen -l shows %s", got)
	}
	for path, want := range map[string]struct {
		mode os.FileMode
		uid  uint32
	}{
		key: {0o400, uid}, key + "-cert.pub": {0o444, uid}, authority: {0o444, uint32(os.Getuid())},
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode().Perm() != want.mode || owner != want.uid {
			t.Errorf("%s: mode %04o of user %d, want %04o of %d", path, info.Mode().Perm(), owner, want.mode, want.uid)
		}
	}
}
