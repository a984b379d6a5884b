package binarycache

import (
	"math"
	"os"
	"strings"
	"testing"
)

// TestRoom checks the space that uploads reserve. An upload reserves space for the data that it is
// about to receive, but not for data that the client has only announced.
func TestRoom(t *testing.T) {
	c := newCache(Config{Dir: t.TempDir()})
	if err := os.Mkdir(c.temp(), 0o700); err != nil {
		t.Fatal(err)
	}
	// What a writer says that it is about to send takes nothing from another.
	slow, other := claim{cache: c}, claim{cache: c}
	if err := slow.fits(1 << 20); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*claim{&slow, &other} {
		if n, err := w.Write(make([]byte, 1<<10)); n != 1<<10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if c.claim != 2*claimed {
		t.Errorf("%d bytes are claimed by two that began", c.claim)
	}
	for range 3 * claimed >> 20 {
		if _, err := slow.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if c.claim != 2*claimed {
		t.Errorf("%d bytes are claimed by two", c.claim)
	}
	slow.free()
	c.claim += math.MaxInt64 / 2
	if _, err := slow.Write(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "0 bytes would be left of its file system") {
		t.Error(err)
	}
	if err := slow.fits(1 << 10); err == nil || !strings.Contains(err.Error(), "0 bytes would be left of its file system") {
		t.Error(err)
	}
	c.claim -= math.MaxInt64 / 2
	slow.free()
	if other.free(); c.claim != 0 {
		t.Errorf("%d bytes are claimed", c.claim)
	}
}
