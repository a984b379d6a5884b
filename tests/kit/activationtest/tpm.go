package activationtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/tests/kit"
)

// TPM starts a software TPM and returns the path of its Unix socket. The TPM stops when the test
// ends, or earlier if stop is called. If the program swtpm is not installed, the test is skipped.
func TPM(t *testing.T) (socket string, stop func()) {
	t.Helper()
	swtpm, err := exec.LookPath("swtpm")
	if err != nil {
		t.Skip("NOT RUN: no swtpm in PATH, on Debian it is in the package swtpm")
	}
	dir, err := os.MkdirTemp("", "tpm") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "tpm")
	cmd := exec.Command(swtpm, "socket", "--tpm2", "--tpmstate", "dir="+dir, "--server", "type=unixio,path="+socket, "--flags", "not-need-init,startup-clear")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL} // when the thread that started it ends
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.Remove(socket)
	}
	t.Cleanup(stop)
	kit.Succeeds(t, "swtpm to listen", func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
	return socket, stop
}
