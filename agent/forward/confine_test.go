package forward_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
)

// confineEnv is the environment variable that makes this test binary act as the confined process.
const confineEnv = "FLORETE_TEST_CONFINE"

// actConfined acts as the confined process, and exits.
func actConfined(dir string) {
	if err := confined(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestConfine checks the restriction of a process that is confined like the agent, from each of its
// threads. Operations that the agent needs must succeed. Operations that only an attacker would try
// must fail.
func TestConfine(t *testing.T) {
	if abi, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 || abi == 0 {
		t.Skip("NOT RUN: this kernel has no Landlock")
	}
	dir := t.TempDir()
	for _, d := range []string{"state/documents", "run", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"state/documents/manifest.json", "other/secret"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "other/upstream.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), confineEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
}

func confined(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := forward.Confine(hostdir.Layout(at("state")), at("run/status.sock")); err != nil {
		return err
	}
	may := map[string]func() error{
		"read a document":    func() error { return openFile(at("state/documents/manifest.json"), os.O_RDONLY) },
		"list documents":     func() error { _, err := os.ReadDir(at("state/documents")); return err },
		"read names":         func() error { return openFile("/etc/hosts", os.O_RDONLY) },
		"read name servers":  func() error { return openFile("/etc/resolv.conf", os.O_RDONLY) },
		"read accounts":      func() error { return openFile("/etc/passwd", os.O_RDONLY) },
		"read its own group": func() error { return openFile("/proc/self/cgroup", os.O_RDONLY) },
		"look an account up": func() error {
			var unknown user.UnknownUserError
			if _, err := nss.Lookup("florete-nobody-has-this"); !errors.As(err, &unknown) {
				return err
			}
			cmd := exec.Command(nss.Program(), "passwd", "root")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), &strings.Builder{}, &strings.Builder{}
			return cmd.Run()
		},
		"connect to upstream": func() error { return connectUnix(at("other/upstream.sock")) },
	}
	mayNot := map[string]func() error{
		"read another file":             func() error { return openFile(at("other/secret"), os.O_RDONLY) },
		"read the program":              func() error { return openFile("/proc/self/exe", os.O_RDONLY) },
		"list a home":                   func() error { _, err := os.ReadDir("/root"); return err },
		"write a document":              func() error { return openFile(at("state/documents/manifest.json"), os.O_WRONLY) },
		"truncate a document":           func() error { return os.Truncate(at("state/documents/manifest.json"), 0) },
		"remove a document":             func() error { return os.Remove(at("state/documents/manifest.json")) },
		"make a file in its state":      func() error { return openFile(at("state/more"), os.O_WRONLY|os.O_CREATE) },
		"make a file beside its socket": func() error { return openFile(at("run/more"), os.O_WRONLY|os.O_CREATE) },
		"link to a file":                func() error { return os.Symlink("/etc/shadow", at("run/shadow")) },
		"start a program":               func() error { return exec.Command("/bin/true").Run() },
		"write below /etc":              func() error { return openFile("/etc/florete-test", os.O_WRONLY|os.O_CREATE) },
	}
	for name, f := range may {
		if err := f(); err != nil {
			return fmt.Errorf("may not %s: %w", name, err)
		}
	}
	var threads sync.WaitGroup
	var mu sync.Mutex
	var wrong []string
	for range 8 {
		threads.Go(func() {
			for name, f := range mayNot {
				if err := f(); !errors.Is(err, fs.ErrPermission) {
					mu.Lock()
					wrong = append(wrong, fmt.Sprintf("may %s: %v", name, err))
					mu.Unlock()
				}
			}
		})
	}
	threads.Wait()
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	ln, err := net.Listen("unix", at("run/status.sock"))
	if err != nil {
		return err
	}
	if err := os.Chmod(at("run/status.sock"), 0o660); err != nil {
		return err
	}
	return ln.Close()
}

func openFile(name string, how int) error {
	f, err := os.OpenFile(name, how, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

func connectUnix(name string) error {
	c, err := net.Dial("unix", name)
	if err == nil {
		c.Close()
	}
	return err
}
