package units

import (
	"os"
	"os/exec"
	"testing"
)

// TestDescriptors checks that the limit of open files is that of the running process, even if the
// unit file has another.
func TestDescriptors(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -n 20; echo; exec cat")
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
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := descriptors(cmd.Process.Pid); got != 20 {
		t.Errorf("%d, want 20", got)
	}
	if got := descriptors(os.Getpid()); got < 21 {
		t.Errorf("%d of this process", got)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
