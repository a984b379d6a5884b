package delivery

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/hostdir"
)

// killStep and killDir make a copy of this test binary deliver generation "new" to a directory and
// die before a step.
const (
	killStep = "DELIVERY_KILL_STEP"
	killDir  = "DELIVERY_KILL_DIR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		victim(dir)
	}
	os.Exit(m.Run())
}

func victim(dir string) {
	at, err := strconv.Atoi(os.Getenv(killStep))
	if err != nil {
		panic(err)
	}
	d := Dir{Path: dir, Step: func(string) {
		if at--; at < 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	_, err = d.Deliver(version("new"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// version returns a generation with two files of the same content.
func version(text string) map[string]File {
	return map[string]File{
		"key":  {Data: []byte("key " + text), Mode: 0o400, UID: -1, GID: -1},
		"cert": {Data: []byte("cert " + text), Mode: 0o444, UID: -1, GID: -1},
	}
}

// whole returns the content in force, which must be the same in all files, or "" if there is none.
func whole(t *testing.T, dir string) string {
	t.Helper()
	gen, err := hostdir.OpenCurrent(dir)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer gen.Close()
	var texts []string
	for _, name := range []string{"key", "cert"} {
		b, err := os.ReadFile(filepath.Join(gen.Name(), name))
		if err != nil {
			t.Fatalf("the generation in force is not whole: %v", err)
		}
		texts = append(texts, strings.TrimPrefix(string(b), name+" "))
	}
	if texts[0] != texts[1] {
		t.Fatalf("the generation in force is mixed: %q", texts)
	}
	return texts[0]
}

// generations returns the names in dir.
func generations(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestKilledAtEachStep delivers in a process that dies by SIGKILL before each of its steps, to a
// directory with no, one or more generations.
func TestKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	for i, before := range []int{0, 1, 3, 0, 3} {
		clean := i < 3 // as at the next start, or not before the next delivery
		t.Run(fmt.Sprint(before, " before, cleaned ", clean), func(t *testing.T) {
			swapped := false
			for at := 0; ; at++ {
				dir := filepath.Join(t.TempDir(), "need")
				d, old := Dir{Path: dir}, ""
				for i := range before {
					old = fmt.Sprint("old ", i)
					if _, err := d.Deliver(version(old)); err != nil {
						t.Fatal(err)
					}
				}
				killed := kill(t, dir, at)
				found := whole(t, dir)
				switch {
				case found == "new":
					swapped = true
				case found != old:
					t.Fatalf("step %d: %q is in force, want %q or new", at, found, old)
				case swapped:
					t.Fatalf("step %d: old is in force, though an earlier step had brought the new", at)
				}
				again := Dir{Path: dir}
				if clean {
					if err := again.Clean(); err != nil {
						t.Fatal(err)
					}
					if got := whole(t, dir); got != found {
						t.Fatalf("step %d: cleaning changed %q to %q", at, found, got)
					}
					if names := generations(t, dir); len(names) > 3 || slices.Contains(names, "current.new") {
						t.Fatalf("step %d: cleaning left %v", at, names)
					}
				}
				gen, err := again.Deliver(version("new"))
				if err != nil || gen != before+1 || whole(t, dir) != "new" {
					t.Fatalf("step %d: after it: generation %d, %q: %v", at, gen, whole(t, dir), err)
				}
				if names := generations(t, dir); len(names) != min(before, 1)+2 && (clean || found != "new") {
					t.Fatalf("step %d: left over: %v", at, names)
				}
				if !killed {
					if at < 12 {
						t.Fatalf("only %d steps", at)
					}
					return
				}
			}
		})
	}
}

// kill delivers in a process that dies before a step, and reports whether it died.
func kill(t *testing.T, dir string, at int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killDir+"="+dir, fmt.Sprintf("%s=%d", killStep, at))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("step %d: %v: %s", at, err, out)
	}
	return true
}
