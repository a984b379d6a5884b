package attacks

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/activationtest"
	"github.com/florete/florete/tests/local"
)

// TestJoinTPM checks a host whose device key is in its TPM. The host joins and reads its documents
// like any other. Its files are useless on another machine, and on its own machine once the TPM is
// cleared. The test must run before TestJoin, which uses up the number of refused tokens that this
// network is allowed.
func TestJoinTPM(t *testing.T) {
	tpm, _ := activationtest.TPM(t)
	c := start(t)
	f := c.machine(t, "f", tpm)
	if err := florJoin(f, c.token(t, "f", 1, time.Hour, true).String()); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "the needs of f", f.Unfulfilled)
	r := c.requested(t, "f")
	if in := f.Layout().DeviceKeyIn(); in != hostdir.InTPM || r.Facts.DeviceKey != hostdir.InTPM || !strings.HasPrefix(r.Device, ssh.KeyAlgoECDSA256) {
		t.Fatalf("its key is in %s, and an operator sees %+v", in, r)
	}
	if got := trust.GivenToDevice(c.svid(t, f, "cert-node").Leaf); got != r.Fingerprint() {
		t.Errorf("the certificate is of device %q, want %q", got, r.Fingerprint())
	}
	if err := f.Stop("activate", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	other, _ := activationtest.TPM(t)
	thief := &local.Host{Name: "f", Dir: c.Path("hosts", "thief"), Bin: c.Bin, TPM: other}
	if out, err := exec.Command("cp", "--archive", f.Dir, thief.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refused := func(h *local.Host, what string, exit int, kind, want string) {
		t.Helper()
		if err := os.RemoveAll(h.Layout().Need("cert-node")); err != nil {
			t.Fatal(err)
		}
		code, out, err := h.Once(t.Context())
		if err != nil || code != exit || !strings.Contains(out, "cert-node: attempt") || !strings.Contains(out, kind+" ("+fetch.CodeTPM.Name+"): device key "+h.Layout().TPMDeviceKey()+": "+want) {
			t.Errorf("%s: exit code %d, %v:\n%s", what, code, err, out)
		}
	}
	const elsewhere = "held by another machine's TPM, or by this one before it was cleared: florctl revoke --host-key SHA256:"
	refused(thief, "its files, on another machine", 2, "denied", elsewhere)
	thief.TPM = other + ".none"
	refused(thief, "its files, on a machine without a TPM", 3, "transient", "held by a TPM, and there is none at "+thief.TPM)

	if code, out, err := f.Once(t.Context()); code != 0 || err != nil {
		t.Errorf("its own files, on its own machine: exit code %d, %v:\n%s", code, err, out)
	}
	device, err := linuxudstpm.Open(tpm)
	if err == nil {
		_, err = tpm2.Clear{AuthHandle: tpm2.TPMRHLockout}.Execute(device)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(f, "on its own machine, once the TPM is cleared", 2, "denied", elsewhere)
}
