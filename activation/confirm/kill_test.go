package confirm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostdir"
)

// victimConfig makes a copy of this test binary change documents, and die by SIGKILL before one of
// the steps.
const victimConfig = "CONFIRM_VICTIM"

type victim struct {
	State   hostdir.Layout
	HostKey string
	Do      string // "keep", a change that is confirmed; "undo"; "activate", until that has settled
	At      int    // step
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimConfig); text != "" {
		var v victim
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(err)
		}
		if err := v.run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (v victim) run() error {
	step := func(string) {
		if v.At--; v.At < 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if v.Do == "undo" {
		_, err := documents.Undo(v.State, step)
		return err
	}
	if v.Do == "activate" {
		return activate(v.State, v.HostKey, step)
	}
	h := Host{State: v.State, HostKey: v.HostKey, Arm: func(context.Context) error { return nil }, Step: step}
	change, err := h.Fetch(context.Background())
	if err != nil {
		return err
	}
	c, err := h.Begin(context.Background(), change, longest)
	if err != nil {
		return err
	}
	return h.ConfirmHealthy(c.ID)
}

// start reports whether a victim was killed; it must not fail otherwise.
func (h *host) start(do string, at int) (killed bool) {
	h.Helper()
	text, err := json.Marshal(victim{h.State, h.Host.HostKey, do, at})
	if err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimConfig+"="+string(text), "GORACE=atexit_sleep_ms=0")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		h.Fatalf("step %d: exit %d: %s", at, code, out)
	}
	return cmd.ProcessState.ExitCode() == -1
}

// TestKilledAtEachStep kills a confirmed change before each of its changes to the disk. Afterwards
// the old documents are in force, or the new ones and they are reverted, or the new ones and they
// stay.
func TestKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	whole := newHost(t)
	order := []string{"serial 1, pending false", "serial 1, pending true", "serial 2, pending true", "serial 2, pending false"}
	reached := 0
	for at := 0; ; at++ {
		h := whole.copy(t)
		killed := h.start("keep", at)
		serial, pending := h.serial(), h.pending() != nil
		found := fmt.Sprintf("serial %d, pending %v", serial, pending)
		if i := slices.Index(order, found); i == reached+1 {
			reached = i
		} else if i != reached {
			t.Fatalf("step %d: %s, after %s", at, found, order[reached])
		}
		if !killed && found != "serial 2, pending false" {
			t.Fatalf("not killed: %s", found)
		}
		h.supervise()
		switch {
		case pending && h.serial() != 1:
			t.Fatalf("step %d: %s: serial %d after the deadline", at, found, h.serial())
		case !pending && h.serial() != serial:
			t.Fatalf("step %d: %s: serial %d after nothing was pending", at, found, h.serial())
		case (h.undone() != nil) != (pending && serial == 2):
			t.Fatalf("step %d: %s: undone is %v", at, found, h.undone())
		}
		// What never came in force may come still, what went back may not.
		back := h.undone() != nil
		if e := h.poll(2); e != nil || (h.serial() == 1) != back {
			t.Fatalf("step %d: %s: serial %d after a poll: %v", at, found, h.serial(), e)
		}
		h.clean()
		if !killed {
			if at < 12 {
				t.Errorf("only %d steps", at)
			}
			break
		}
	}
}

// TestKilledActivating kills an activation that puts documents in force and confirms them, before
// each change to the disk. Afterwards the old documents are in force, or the new ones and they are
// reverted, or the new ones and they stay. The next activation ends with the new or with the
// reverted documents.
func TestKilledActivating(t *testing.T) {
	whole := newHost(t)
	whole.forge.SetWatch(true)
	found := map[string]int{}
	for at := 0; ; at++ {
		h := whole.copy(t)
		killed := h.start("activate", at)
		serial, pending := h.serial(), h.pending() != nil
		at1 := fmt.Sprintf("step %d: serial %d, pending %v", at, serial, pending)
		found[at1[strings.Index(at1, "serial"):]]++
		if !killed && (serial != 2 || pending) {
			t.Fatalf("%s, not killed", at1)
		}
		again := h.copy(t) // without a deadline in between
		again.start("activate", 1<<30)
		again.want(2)
		if p, u := again.pending(), again.undone(); p != nil || u != nil {
			t.Fatalf("%s: after the next, pending %v, undone %v", at1, p, u)
		}
		h.supervise()
		back := h.undone() != nil
		if back != (pending && serial == 2) {
			t.Fatalf("%s: undone is %v", at1, h.undone())
		}
		h.start("activate", 1<<30)
		h.want(map[bool]int64{true: 1, false: 2}[back])
		if u := h.undone(); h.pending() != nil || back && u.Answered.IsZero() {
			t.Fatalf("%s: after the deadline and the next, pending %v, undone %+v", at1, h.pending(), u)
		}
		h.clean()
		if !killed {
			break
		}
	}
	if len(found) != 4 {
		t.Errorf("found %v", found)
	}
}

// TestKilledGoingBack kills the process that reverts documents before each change to the disk. The
// next one completes the work.
func TestKilledGoingBack(t *testing.T) {
	whole := newHost(t)
	whole.begin()
	whole.expire()
	for at := 0; ; at++ {
		h := whole.copy(t)
		killed := h.start("undo", at)
		if serial := h.serial(); serial == 2 && h.pending() == nil {
			t.Fatalf("step %d: what was not confirmed stays", at)
		}
		h.supervise()
		h.want(1)
		if h.undone() == nil {
			t.Fatalf("step %d: nobody knows that it went back", at)
		}
		if e := h.poll(2); e != nil {
			t.Fatal(e)
		}
		h.want(1)
		h.clean()
		if !killed {
			if at < 8 {
				t.Errorf("only %d steps", at)
			}
			return
		}
	}
}
