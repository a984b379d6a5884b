package confirm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostdir"
)

// switcherScript stands for NixOS's switch script: it puts its own system in force and records its
// arguments.
const switcherScript = `#!/bin/sh
echo "$(basename "$(dirname "$(dirname "$0")")") $1 $NIXOS_NO_CHECK" >> %[1]s/called
ln -sfn "$(dirname "$(dirname "$0")")" %[1]s/run/current-system
exit 4
`

// nixos is an enrolled host on a machine with three generations of a system.
type nixos struct {
	*host
	root string
}

func newNixOS(t *testing.T) *nixos {
	n := &nixos{newHost(t), t.TempDir()}
	for _, dir := range []string{"run", "nix/var/nix/profiles"} {
		n.must(os.MkdirAll(filepath.Join(n.root, dir), 0o755))
	}
	for i, name := range []string{"first", "second", "third"} {
		at := n.system(name)
		n.must(os.MkdirAll(filepath.Join(at, "bin"), 0o755))
		n.must(os.WriteFile(switcher(at), fmt.Appendf(nil, switcherScript, n.root), 0o755))
		if name != "third" {
			n.must(os.Symlink(at, n.root+fmt.Sprintf("%s-%d-link", NixOSProfile, i+9)))
		}
	}
	n.must(os.Symlink("system-10-link", n.root+NixOSProfile))
	n.run("first")
	return n
}

func (n *nixos) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func (n *nixos) system(name string) string { return filepath.Join(n.root, "nix/store", name) }

func (n *nixos) run(name string) {
	n.Helper()
	os.Remove(n.root + NixOSCurrent)
	n.must(os.Symlink(n.system(name), n.root+NixOSCurrent))
}

func (n *nixos) arm(name, action string) (*hostdir.Change, error) {
	n.Helper()
	return Installation{
		State: n.State, Dir: n.system(name), Action: action, root: n.root, Arm: func(context.Context) error { return nil },
	}.Begin(n.Context(), time.Hour)
}

func (n *nixos) goesBack() {
	n.Helper()
	n.expire()
	n.must(SuperviseSystem(n.Context(), n.State, func() {}))
	if c := n.pending(); c != nil {
		n.Fatalf("%s is pending", c)
	}
}

func (n *nixos) wantSystem(current, profile, called string) {
	n.Helper()
	for link, want := range map[string]string{NixOSCurrent: n.system(current), NixOSProfile: n.system(profile)} {
		if got, _ := filepath.EvalSymlinks(n.root + link); got != want {
			n.Errorf("%s leads to %s, want %s", link, got, want)
		}
	}
	got, _ := os.ReadFile(n.root + "/called")
	if string(got) != called {
		n.Errorf("called %q, want %q", got, called)
	}
}

func TestSystemGoesBack(t *testing.T) {
	n := newNixOS(t)
	c, err := n.arm("second", "switch")
	n.must(err)
	if c == nil || n.pending() == nil || n.pending().Generation == 0 {
		t.Fatalf("pending: %+v", n.pending())
	}
	if again, err := n.arm("second", "switch"); again != nil || err != nil {
		t.Errorf("the same switch once more: %v, %v", again, err)
	}
	if back, err := n.arm("first", "switch"); back != nil || err != nil {
		t.Errorf("the way back: %v, %v", back, err)
	}
	if other, err := n.arm("third", "switch"); other != nil || err == nil || !strings.Contains(err.Error(), c.ID+", "+n.system("second")+" is pending") {
		t.Errorf("another: %v, %v", other, err)
	}
	n.run("second")
	n.goesBack()
	n.wantSystem("first", "first", "first switch 1\n")
	if u := n.undone(); u == nil || u.ID != c.ID {
		t.Errorf("undone: %v", u)
	}
	n.run("third")
	if u := n.undone(); u != nil {
		t.Errorf("undone: %s, though another system is in force", u)
	}
}

func TestSystemConfirmed(t *testing.T) {
	n := newNixOS(t)
	c, err := n.arm("second", "switch")
	n.must(err)
	if err := Confirm(n.State, c.ID); err == nil || !strings.Contains(err.Error(), "second is not in force") {
		t.Errorf("before it is in force: %v", err)
	}
	n.run("second")
	n.must(Confirm(n.State, c.ID))
	n.goesBack()
	n.wantSystem("second", "second", "")
}

// TestSystemTested checks that a system that was only tested becomes a generation, so that there is
// one to return to.
func TestSystemTested(t *testing.T) {
	n := newNixOS(t)
	n.run("third")
	c, err := n.arm("second", "switch")
	n.must(err)
	if c.System.Generation != "system-11-link" {
		t.Errorf("generation %s", c.System.Generation)
	}
	n.run("second")
	n.goesBack()
	n.wantSystem("third", "third", "third switch 1\n")
	_, err = n.arm("first", "test")
	n.must(err)
	n.run("first")
	n.goesBack()
	n.wantSystem("third", "third", "third switch 1\nthird test 1\n")
}

func TestSystemNotArmed(t *testing.T) {
	n := newNixOS(t)
	for _, x := range [][2]string{{"first", "switch"}, {"second", "boot"}, {"second", "dry-activate"}} {
		if c, err := n.arm(x[0], x[1]); c != nil || err != nil || n.pending() != nil {
			t.Errorf("%s: %v, %v", x, c, err)
		}
	}
	n.must(os.Remove(switcher(n.system("first"))))
	if c, err := n.arm("second", "switch"); c != nil || err == nil || !strings.Contains(err.Error(), "cannot be switched to") {
		t.Errorf("%v, %v", c, err)
	}
	_, err := Installation{State: n.State, Dir: t.TempDir()}.Begin(t.Context(), time.Hour)
	if err == nil || !strings.Contains(err.Error(), "neither a NixOS system nor an unpacked bundle") {
		t.Error(err)
	}
}

// TestSystemOfNewHost checks that the record of a host without documents contains no null, which
// providers refuse in reports.
func TestSystemOfNewHost(t *testing.T) {
	n := newNixOS(t)
	n.State = hostdir.Layout(t.TempDir())
	_, err := n.arm("second", "switch")
	n.must(err)
	b, err := os.ReadFile(n.State.ChangeFile())
	n.must(err)
	if strings.Contains(string(b), "null") {
		t.Errorf("%s", b)
	}
	n.run("second")
	n.goesBack()
	n.wantSystem("first", "first", "first switch 1\n")
}

// TestSystemGoesBackToDocuments checks that the previous documents are in force again although the
// closure that came back is older.
func TestSystemGoesBackToDocuments(t *testing.T) {
	n := newNixOS(t)
	if e := n.poll(2); e != nil {
		t.Fatal(e)
	}
	_, err := n.arm("second", "switch")
	n.must(err)
	before, after := n.closure(1), n.closure(3)
	n.open(after)
	n.want(3)
	n.open(before)
	n.want(1)
	n.run("second")
	n.goesBack()
	n.want(2)
	n.open(before)
	n.want(2)
	n.clean()
}

// TestSystemGoesBackUnseen checks a return during which activation did not run.
func TestSystemGoesBackUnseen(t *testing.T) {
	n := newNixOS(t)
	if e := n.poll(2); e != nil {
		t.Fatal(e)
	}
	_, err := n.arm("second", "switch")
	n.must(err)
	n.open(n.closure(3))
	n.run("second")
	n.goesBack()
	n.want(2)
	n.open(n.closure(1))
	n.want(2)
}

// TestBundle checks that a bundle is reverted to the previous one, and the first one to none.
func TestBundle(t *testing.T) {
	h := newHost(t)
	root := t.TempDir()
	base := filepath.Join(root+bundles, "florete")
	for _, version := range []string{"1-a", "2-b"} {
		dir := filepath.Join(base, version)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "version"), []byte(version+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	system := func(dir string) *hostdir.System {
		s, _, err := Installation{State: h.State, Dir: dir, root: root}.system()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := filepath.Join(base, "1-a")
	if s := system(first); s.Before != "" || strings.Join(s.Undo, " ") != first+"/install.sh --remove" {
		t.Errorf("%+v", s)
	}
	if err := os.Symlink("1-a", filepath.Join(base, "current")); err != nil {
		t.Fatal(err)
	}
	if s := system(first); s != nil {
		t.Errorf("%+v", s)
	}
	if s := system(filepath.Join(base, "2-b")); s.Before != first || strings.Join(s.Undo, " ") != first+"/install.sh" {
		t.Errorf("%+v", s)
	}
}

// closure returns a directory with documents.
func (h *host) closure(serial int64) string {
	h.Helper()
	dir := h.TempDir()
	d := h.version(serial)
	for name, text := range map[string]string{"manifest.json": d.Body, "manifest.envelope.json": d.Envelope} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			h.Fatal(err)
		}
	}
	return dir
}

// open starts an activation with a closure.
func (h *host) open(closure string) {
	h.Helper()
	if _, _, err := documents.Open(h.State, closure, nil); err != nil {
		h.Fatal(err)
	}
}
