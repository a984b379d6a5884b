package doctor

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestBuffers(t *testing.T) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if found := (&host{}).buffers(conn, 4<<10); len(found) > 0 {
		t.Errorf("4 KiB is too much: %q", found)
	}
	found := (&host{}).buffers(conn, 1<<30)
	if len(found) != 2 || !strings.Contains(found[0].Fix, "net.core.rmem_max=1073741824") || !strings.Contains(found[1].Fix, "net.core.wmem_max=") {
		t.Errorf("1 GiB: %q", found)
	}
}

func TestOwns(t *testing.T) {
	fi, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if root := owns("root", fi); root != (os.Getuid() == 0) {
		t.Errorf("root owns what uid %d made: %v", os.Getuid(), root)
	}
	if os.Getuid() == 0 && owns("nobody", fi) {
		t.Error("nobody owns it")
	}
}
