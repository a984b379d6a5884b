package unixsock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/unixsock"
)

// TestLongSocket checks the error for a path that is too long for a Unix socket. The error must
// contain the path and the limit.
func TestLongSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := func(length int) string { return filepath.Join(dir, strings.Repeat("s", length-len(dir)-1)) }
	ln, err := unixsock.Listen(path(107), "unix", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if c, err := unixsock.Dial(t.Context(), path(107)); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	_, listened := unixsock.Listen(path(108), "unix", 0o600)
	_, dialled := unixsock.Dial(t.Context(), path(108))
	for _, err := range []error{listened, dialled} {
		if err == nil || !strings.Contains(err.Error(), path(108)+": 108 bytes, want at most 107") {
			t.Errorf("%v", err)
		}
	}
}
