package kit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAddress checks that test processes that run at the same time get different addresses,
// although nobody listens on them.
func TestAddress(t *testing.T) {
	const each = 300 // of several blocks
	if os.Getenv("ADDRESSES") != "" {
		for range each {
			os.Stdout.WriteString(Address() + "\n")
		}
		os.Stdin.Read(make([]byte, 1)) // goes on until all are given
		return
	}
	seen := map[string]bool{}
	add := func(at string) {
		if seen[at] {
			t.Errorf("%s is given twice", at)
		}
		seen[at] = true
	}
	for range 3 {
		c := exec.Command(os.Args[0], "-test.run", "^TestAddress$")
		c.Env = append(os.Environ(), "ADDRESSES=1")
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stdin.Close(); c.Wait() })
		var got strings.Builder
		for buf := make([]byte, 1<<12); strings.Count(got.String(), "\n") < each; {
			n, err := out.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(buf[:n])
		}
		for at := range strings.Lines(got.String()) {
			add(strings.TrimSpace(at))
		}
	}
	for range each {
		add(Address())
	}
}
