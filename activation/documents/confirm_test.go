package documents

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// noArm arms no supervisor: the test itself is the supervisor.
func noArm(context.Context) error { return nil }

// begin puts documents in force as a change.
func (o *origins) begin(docs ...hostapi.SignedDocument) {
	o.t.Helper()
	offer, e := o.store.Verify(hostapi.Artifact{Documents: docs})
	if e != nil {
		o.t.Fatal(e)
	}
	if _, err := o.store.Begin(o.t.Context(), offer, hostdir.Change{ID: "x"}, noArm); err != nil {
		o.t.Fatal(err)
	}
}

// TestClosureWaits checks that a closure that is deployed while a change is pending comes in force
// once that has ended.
func TestClosureWaits(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	o.begin(kit.Signed(6, o.version("b"), o.Signing))
	o.want(6, "b")
	offer, e := o.store.Verify(hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(7, o.version("c"), o.Signing)}})
	if e != nil {
		t.Fatal(e)
	}
	if _, err := o.store.Begin(o.t.Context(), offer, hostdir.Change{ID: "y"}, noArm); err == nil || !strings.Contains(err.Error(), "change x, manifest 6 is pending") {
		t.Error(err)
	}
	o.deploy(kit.Document(4, o.version("c")))
	if note := o.open(); !strings.Contains(note, "the closure waits: change x, manifest 6 is pending") {
		t.Error(note)
	}
	if note, err := o.store.Refresh(); err != nil || note != "" {
		t.Errorf("%q, %v", note, err)
	}
	o.want(6, "b")
	if c, err := Undo(o.layout, nil); err != nil || c == nil {
		t.Fatal(c, err)
	}
	if note, err := o.store.Refresh(); err != nil || note != "taken from the closure" {
		t.Errorf("%q, %v", note, err)
	}
	o.want(4, "c")
}

// TestPolicyGoesBack checks that a policy is reverted with the manifest.
func TestPolicyGoesBack(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")), kit.Document(5, o.policy("cert")))
	o.open()
	o.begin(kit.Signed(5, o.version("a"), o.Signing), kit.Signed(6, o.policy("oidc"), o.Signing))
	if _, err := Undo(o.layout, nil); err != nil {
		t.Fatal(err)
	}
	if u, err := o.layout.Undone(); err != nil || u == nil {
		t.Fatalf("undone: %v, %v", u, err)
	}
	if _, err := o.store.Refresh(); err != nil {
		t.Fatal(err)
	}
	o.wantAccepted(o.accept(kit.Signed(5, o.version("a"), o.Signing), kit.Signed(6, o.policy("oidc"), o.Signing)))
	if e := o.store.Set().Policy.Envelope; e.Serial != 5 {
		t.Errorf("policy has serial %d", e.Serial)
	}
	o.wantAccepted(o.accept(kit.Signed(5, o.version("a"), o.Signing), kit.Signed(7, o.policy("oidc"), o.Signing)))
	if u, err := o.layout.Undone(); err != nil || u != nil {
		t.Errorf("undone: %v, %v", u, err)
	}
}

// TestBeginsOnWhatWasVerified checks that documents that another process has put in force since the
// verification are not replaced.
func TestBeginsOnWhatWasVerified(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	offer, e := o.store.Verify(hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(6, o.version("b"), o.Signing)}})
	if e != nil {
		t.Fatal(e)
	}
	other, _, err := Open(o.layout, o.closure, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := other.Accept(o.t.Context(), hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(7, o.version("c"), o.Signing)}}); e != nil {
		t.Fatal(e)
	}
	if _, err := o.store.Begin(o.t.Context(), offer, hostdir.Change{ID: "x"}, noArm); err == nil || !strings.Contains(err.Error(), "others came in force meanwhile") {
		t.Error(err)
	}
	o.open()
	o.want(7, "c")
}

// holdLock makes a copy of this test binary hold the lock of a state directory.
const holdLock = "DOCUMENTS_HOLD_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdLock); dir != "" {
		if _, err := lock(hostdir.Layout(dir)); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("held\n")
		time.Sleep(time.Hour) // an empty select would end the process as deadlocked
	}
	os.Exit(m.Run())
}

// TestHungProcess checks that a process that hangs with the lock blocks everything except the
// return to previous documents.
func TestHungProcess(t *testing.T) {
	was := patience
	patience = 50 * time.Millisecond
	t.Cleanup(func() { patience = was })
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	o.begin(kit.Signed(6, o.version("b"), o.Signing))
	hung := exec.Command(os.Args[0])
	hung.Env = append(os.Environ(), holdLock+"="+string(o.layout))
	out, err := hung.StdoutPipe()
	if err == nil {
		err = hung.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Process.Kill() })
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := hung.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var held *heldError
	if _, _, err := Open(o.layout, o.closure, nil); !errors.As(err, &held) || held.pid != hung.Process.Pid {
		t.Fatal(err)
	}
	if _, err := Undo(o.layout, nil); err != nil {
		t.Fatal(err)
	}
	o.open()
	o.want(5, "a")
	if err := hung.Wait(); err == nil || hung.ProcessState.ExitCode() != -1 {
		t.Errorf("it was not killed: %v", hung.ProcessState)
	}
}
