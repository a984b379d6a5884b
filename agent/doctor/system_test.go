package doctor

import (
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
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

// TestFixes checks that a remedy that is not a systemctl command also names the instance.
func TestFixes(t *testing.T) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for m, want := range map[hostdir.Instance][]string{
		"":     {"sudo flor doctor", ">> /etc/sysctl.d/60-florete.conf &&"},
		"blue": {"sudo flor_blue doctor", ">> /etc/sysctl.d/60-florete_blue.conf &&"},
	} {
		h := &host{Config: Config{Instance: m}}
		if got := h.unreadable(fs.ErrPermission, "").Fix; got != want[0] {
			t.Errorf("got %q, want %q", got, want[0])
		}
		if got := h.restart("agent"); got != "systemctl restart "+m.Unit("agent.service") {
			t.Errorf("got %q", got)
		}
		for _, f := range h.buffers(conn, 1<<30) {
			if !strings.Contains(f.Fix, want[1]) {
				t.Errorf("got %q, want %q", f.Fix, want[1])
			}
		}
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

func TestExhausted(t *testing.T) {
	service := kit.ID("service/outline")
	row := func(streams int64, full bool) usage.Row {
		return usage.Row{Target: service, Caller: service, Remote: "192.0.2.1:4610", Streams: streams, Allowed: 4096, Full: full}
	}
	if found := (&host{}).exhausted([]usage.Row{row(4095, false), row(4096, false), row(3, true)}); len(found) != 2 ||
		!strings.Contains(found[0].Problem, "all of its 4096 streams to service/outline") || !strings.Contains(found[0].Do, "systemctl restart florete-agent.service") {
		t.Errorf("found %q", found)
	}
}

// TestUplinks checks that the doctor finds a relay without a connection, and that it shows the last
// error.
func TestUplinks(t *testing.T) {
	h := &host{now: time.Now()}
	since := h.now.Add(-time.Minute)
	found := h.uplinks([]status.Uplink{
		{Relay: kit.ID("vertex/gate"), Transport: document.OverQUIC, Since: since},
		{Relay: kit.ID("vertex/new"), Since: h.now},
		{Relay: kit.ID("vertex/far"), Since: since, Error: "no route to host"},
	})
	if len(found) != 1 || found[0].Problem != "no uplink to relay far for 1m0s: no route to host" {
		t.Errorf("found %+v", found)
	}
}
