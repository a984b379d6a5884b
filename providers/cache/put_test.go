package cache

import (
	"math"
	"os"
	"strings"
	"testing"
)

// Uploads that are under way count as written.
func TestRoom(t *testing.T) {
	c := newCache(Config{Dir: t.TempDir()})
	if err := os.Mkdir(c.temp(), 0o700); err != nil {
		t.Fatal(err)
	}
	free, err := c.room(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	c.claim += math.MaxInt64 / 2
	if _, err := c.room(1 << 10); err == nil || !strings.Contains(err.Error(), "0 bytes would be left of its file system") {
		t.Errorf("no room: %v", err)
	}
	c.claim -= math.MaxInt64 / 2
	if free(); c.claim != 0 {
		t.Errorf("%d bytes are claimed", c.claim)
	}
}
