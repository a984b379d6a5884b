package delivery

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

func TestGenerations(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "needs", "a")}
	for i, text := range []string{"a", "a", "b", "c", "c", "d"} {
		want := []int{1, 1, 2, 3, 3, 4}[i]
		if gen, err := d.Deliver(version(text)); err != nil || gen != want {
			t.Fatalf("%d: generation %d, want %d: %v", i, gen, want, err)
		}
		if got := whole(t, d.Path); got != text {
			t.Fatalf("%d: %q is in force", i, got)
		}
	}
	if names := generations(t, d.Path); !slices.Equal(names, []string{"current", "gen-3", "gen-4"}) {
		t.Errorf("kept %v", names)
	}
	gone := filepath.Join(hostdir.Current(d.Path), "key")
	if err := os.Chmod(gone, 0o444); err != nil {
		t.Fatal(err)
	}
	if gen, err := d.Deliver(version("d")); err != nil || gen != 5 {
		t.Errorf("a file with another mode: generation %d, want 5: %v", gen, err)
	}
}

// TestReaderKeepsItsGeneration checks that a reader that has opened a generation can still read it
// after the next one arrives.
func TestReaderKeepsItsGeneration(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	if _, err := d.Deliver(version("old")); err != nil {
		t.Fatal(err)
	}
	gen, err := hostdir.OpenCurrent(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer gen.Close()
	if _, err := d.Deliver(version("new")); err != nil {
		t.Fatal(err)
	}
	f, err := gen.Open("key")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64)
	n, _ := f.Read(b)
	if string(b[:n]) != "key old" {
		t.Errorf("read %q", b[:n])
	}
}

func TestModesAndOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root can give files away")
	}
	uid, gid, err := Owner(document.Deliver{Owner: "daemon"})
	if err != nil {
		t.Skipf("NOT RUN: this host lacks an account: %v", err)
	}
	d := Dir{Path: t.TempDir()}
	var early []string
	d.Step = func(name string) { // nobody else gets to what is not the owner's yet
		files, _ := filepath.Glob(filepath.Join(d.Path, "gen-*", "secret"))
		for _, f := range files {
			file, err1 := os.Stat(f)
			dir, err2 := os.Stat(filepath.Dir(f))
			if err1 == nil && err2 == nil && file.Sys().(*syscall.Stat_t).Uid == 0 && dir.Mode().Perm() != 0o700 {
				early = append(early, name)
			}
		}
	}
	if _, err := d.Deliver(map[string]File{"secret": {Data: []byte("x"), Mode: 0o440, UID: uid, GID: gid}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(hostdir.Current(d.Path), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	owner, _ := user.Lookup("daemon")
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o440 || int(st.Uid) != uid || int(st.Gid) != gid || gid <= 0 || owner.Uid == "0" {
		t.Errorf("mode %s, owner %d:%d, want 0440 %d:%d", info.Mode(), st.Uid, st.Gid, uid, gid)
	}
	if len(early) > 0 {
		t.Errorf("readable before it was given away: at %v", early)
	}
}

func TestOwnerRefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root can give files away")
	}
	for want, d := range map[string]document.Deliver{
		`owner "no-such": no such account on this host: create it`: {Owner: "no-such"},
	} {
		if _, _, err := Owner(d); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if uid, gid, err := Owner(document.Deliver{}); uid != -1 || gid != -1 || err != nil {
		t.Errorf("nobody: %d:%d %v", uid, gid, err)
	}
}

func TestCurrentRefuses(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	if err := os.Symlink("/etc", hostdir.Current(d.Path)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Deliver(version("a")); err == nil || !strings.Contains(err.Error(), `points to "/etc", want gen-<number>: remove it`) {
		t.Errorf("error %v", err)
	}
}

func TestNumber(t *testing.T) {
	for s, want := range map[string]int{"gen-1": 1, "gen-20": 20, "gen-0": 0, "gen-01": 0, "gen--1": 0, "gen-": 0, "1": 0, "gen-1x": 0, "gen-+1": 0} {
		if n, ok := number(s); ok != (want > 0) || ok && n != want {
			t.Errorf("%q: %d %v", s, n, ok)
		}
	}
}

// TestRestore checks that a restored generation is whole, keeps its modes and has a number of its
// own.
func TestRestore(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "need")}
	for _, text := range []string{"old", "new"} {
		if _, err := d.Deliver(version(text)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.Restore(1); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if !d.holds(3, version("old")) || whole(t, d.Path) != "old" {
		t.Fatal(generations(t, d.Path))
	}
	if n, err := d.Restore(1); err == nil {
		t.Errorf("generation %d: of what is not there any more", n)
	}
}
