package secretfile_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/secretfile"
)

// roleEnv is an environment variable that selects the role of a copy of the test binary: the
// protected process, or the process that tries to read its memory.
const roleEnv = "FLORETE_TEST_MEMORY"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "protected":
		secretfile.ProtectMemory()
		// Our programs read these files of their own.
		_, err := os.ReadDir("/proc/self/fd")
		for _, name := range []string{"exe", "fd/0"} {
			if _, e := os.Readlink("/proc/self/" + name); e != nil {
				err = e
			}
		}
		for _, name := range []string{"cgroup", "status", "mounts"} {
			if _, e := os.ReadFile("/proc/self/" + name); e != nil {
				err = e
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fallthrough
	case "plain":
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
	default: // the process to inspect
		_, err := os.ReadFile("/proc/" + role + "/environ")
		if errors.Is(err, fs.ErrPermission) {
			os.Exit(3)
		}
		if err != nil {
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// TestProtect checks that another process of the same account cannot read the memory of a protected
// process, but can read the memory of an unprotected process.
func TestProtect(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	account := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // root may read everything
		account.Credential = &syscall.Credential{Uid: 64999, Gid: 64999}
		dir, err := os.MkdirTemp("/tmp", "memory")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		b, err := os.ReadFile(self)
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if self = filepath.Join(dir, "memory.test"); err == nil {
			err = os.WriteFile(self, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(role string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{roleEnv + "=" + role}, account
		return cmd
	}
	for role, want := range map[string]int{"plain": 0, "protected": 3} {
		cmd := as(role)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%s: %q, %v", role, line, err)
		}
		look := as(fmt.Sprint(cmd.Process.Pid))
		_ = look.Run()
		if got := look.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: whoever reads its memory ends with %d, want %d", role, got, want)
		}
		in.Close()
		cmd.Wait()
	}
}
