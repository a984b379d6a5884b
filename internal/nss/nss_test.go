package nss_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/nss"
)

// dirEnv is an environment variable. If it is set, the test binary is the process that looks up
// accounts, in its own mount namespace.
const dirEnv = "FLORETE_TEST_NSS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirEnv); dir != "" {
		if err := inside(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSource checks that an account and a group are found by name and by ID if only one source in
// nsswitch.conf(5) contains them. The source is libnss-extrausers with files of this test.
func TestSource(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, for a mount namespace")
	}
	beside, _ := filepath.Glob("/usr/lib/libnss_extrausers.so.2")
	if below, _ := filepath.Glob("/usr/lib/*/libnss_extrausers.so.2"); len(beside)+len(below) == 0 {
		t.Skip("NOT RUN: needs libnss-extrausers")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nsswitch.conf": "passwd: files extrausers\ngroup: files extrausers\nshadow: files\n",
		"passwd":        "ada:x:61001:61002:Ada:/home/ada:/bin/sh\n4711:x:61003:61003::/:/bin/sh\n",
		"group":         "ada:x:61002:\n",
		"shadow":        "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), dirEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "mount: ") {
		t.Skipf("NOT RUN: no mounts here: %s", out)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func inside(dir string) error {
	if err := os.MkdirAll("/var/lib/extrausers", 0o755); err != nil {
		return err
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount(dir, "/var/lib/extrausers", "", unix.MS_BIND, "")
	}
	if err == nil {
		err = unix.Mount(filepath.Join(dir, "nsswitch.conf"), "/etc/nsswitch.conf", "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	u, err := nss.Lookup("ada")
	if err != nil || u.Uid != "61001" || u.Gid != "61002" || u.HomeDir != "/home/ada" {
		return fmt.Errorf("ada is %+v, %w", u, err)
	}
	if u, err = nss.LookupID(61001); err != nil || u.Username != "ada" {
		return fmt.Errorf("uid 61001 is %+v, %w", u, err)
	}
	g, err := nss.LookupGroup("ada")
	if err != nil || g.Gid != "61002" {
		return fmt.Errorf("group ada is %+v, %w", g, err)
	}
	// getent would take these names for IDs.
	if u, err := nss.Lookup("61001"); err == nil {
		return fmt.Errorf("name 61001 is %+v", u)
	}
	if u, err := nss.LookupID(4711); err == nil {
		return fmt.Errorf("uid 4711 is %+v", u)
	}
	return nil
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"florete-nobody-has-this", "--version", "", "a:b", "0"} {
		var unknown user.UnknownUserError
		if u, err := nss.Lookup(name); !errors.As(err, &unknown) {
			t.Errorf("account %q: %+v, %v", name, u, err)
		}
		var noGroup user.UnknownGroupError
		if g, err := nss.LookupGroup(name); !errors.As(err, &noGroup) {
			t.Errorf("group %q: %+v, %v", name, g, err)
		}
	}
	var noID user.UnknownUserIdError
	if u, err := nss.LookupID(4242424); !errors.As(err, &noID) {
		t.Errorf("uid 4242424: %+v, %v", u, err)
	}
	if u, err := nss.Lookup("root"); err != nil || u.Uid != "0" {
		t.Errorf("root: %+v, %v", u, err)
	}
	if u, err := nss.Current(); err != nil || u.Uid != fmt.Sprint(os.Getuid()) {
		t.Errorf("this process: %+v, %v", u, err)
	}
}
