package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"
	"golang.org/x/sys/unix"

	"florete"
	"florete/agent/status"
)

// agent must run once the node's identity is there, and have no problems.
func (h *host) agent(ctx context.Context) (string, []Finding) {
	if h.identities.SVID(h.manifest.Identity.ID) == nil {
		return "nothing: it starts with the node's identity", nil
	}
	r, _, err := status.Fetch(ctx, h.Socket)
	if err != nil {
		return "no answer", []Finding{h.unreadable(err, h.restart("agent"))}
	}
	var found []Finding
	for _, p := range r.Problems {
		found = append(found, Finding{"agent: " + p, h.restart("agent")})
	}
	if r.State != "running" {
		found = append(found, Finding{fmt.Sprintf("agent is %s although the node's identity is there", r.State), h.restart("agent")})
	}
	return fmt.Sprintf("%s, %d connections", r.State, r.Connections), found
}

// Units tells how systemd units stand. ErrNoSystemd says that none can.
type Units func(ctx context.Context, names []string) ([]dbus.UnitStatus, error)

// ErrNoSystemd is the error where systemd does not run the host.
var ErrNoSystemd = errors.New("no systemd runs here")

func systemd(ctx context.Context, names []string) ([]dbus.UnitStatus, error) {
	if !util.IsRunningSystemd() {
		return nil, ErrNoSystemd
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("D-Bus: %w", err)
	}
	defer conn.Close()
	return conn.ListUnitsByNamesContext(ctx, names)
}

func (h *host) units(ctx context.Context) (string, []Finding) {
	unit, namesUnit, needUnit := h.Membership.Unit, h.namesUnit(), h.Membership.Unit("need-")
	names := []string{unit("activate.service"), namesUnit}
	if h.identities.SVID(h.manifest.Identity.ID) != nil {
		names = append(names, unit("agent.service"))
	}
	if _, err := os.Stat(filepath.Join(florete.Current(h.Layout.Documents()), florete.DocPolicy+".json")); err == nil {
		names = append(names, unit("provider.service"))
	}
	for _, n := range h.manifest.Needs {
		if len(n.Deliver.Files) > 0 {
			names = append(names, needUnit+n.ID+".path")
		}
	}
	units, err := h.Units(ctx, names)
	if errors.Is(err, ErrNoSystemd) {
		return err.Error(), nil
	}
	if err != nil {
		return "no answer", []Finding{{err.Error(), "systemctl start dbus.service"}}
	}
	var found []Finding
	known := len(units)
	for _, u := range units {
		switch {
		case u.LoadState == "not-found" && (u.Name == namesUnit || strings.HasPrefix(u.Name, needUnit)):
			known-- // NixOS keeps names itself; needs from the network bring no units
		case u.LoadState == "not-found":
			found = append(found, Finding{u.Name + " is not installed", "run install.sh of this host's bundle (florctl bundle)"})
		case u.LoadState == "masked":
			found = append(found, Finding{u.Name + " is masked", fmt.Sprintf("systemctl unmask %s && systemctl start %[1]s", u.Name)})
		case u.ActiveState == "failed":
			found = append(found, Finding{u.Name + " failed", fmt.Sprintf("journalctl -u %s -n 20; systemctl restart %[1]s", u.Name)})
		case u.ActiveState != "active" && u.ActiveState != "reloading":
			found = append(found, Finding{fmt.Sprintf("%s is %s (%s)", u.Name, u.ActiveState, u.SubState), "systemctl enable --now " + u.Name})
		}
	}
	return fmt.Sprintf("%d of %d active", known-len(found), known), found
}

// wantBuffer is what quic-go asks the kernel for, each way.
const wantBuffer = 7 << 20

func (h *host) kernel(context.Context) (string, []Finding) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return "no UDP", []Finding{{err.Error(), "sysctl -w net.ipv4.ip_local_port_range='32768 60999'"}}
	}
	defer conn.Close()
	return "UDP buffers, GSO", append(h.buffers(conn, wantBuffer), offload(conn)...)
}

// buffers asks for them as quic-go does, and looks at what it got.
func (h *host) buffers(conn *net.UDPConn, want int) (found []Finding) {
	conn.SetReadBuffer(want)
	conn.SetWriteBuffer(want)
	for _, b := range []struct {
		name, key string
		option    int
	}{{"receive", "rmem_max", unix.SO_RCVBUF}, {"send", "wmem_max", unix.SO_SNDBUF}} {
		if got, err := option(conn, unix.SOL_SOCKET, b.option); err != nil || got < want {
			found = append(found, Finding{
				fmt.Sprintf("UDP %s buffers are at most %d KiB, QUIC wants %d KiB: it is slow", b.name, got>>10, want>>10),
				fmt.Sprintf("echo net.core.%s=%d >> /etc/sysctl.d/60-%s.conf && sysctl --system", b.key, want, h.Membership),
			})
		}
	}
	return found
}

// offload sends and takes many packets at once, which is several times as fast.
func offload(conn *net.UDPConn) (found []Finding) {
	for _, o := range []struct {
		name   string
		option int
	}{{"GSO (UDP_SEGMENT)", unix.UDP_SEGMENT}, {"GRO (UDP_GRO)", unix.UDP_GRO}} {
		if _, err := option(conn, unix.IPPROTO_UDP, o.option); err != nil {
			found = append(found, Finding{fmt.Sprintf("the kernel has no %s: %v: QUIC is slow", o.name, err), "upgrade to Linux 5.0 or newer: apt install linux-image-amd64"})
		}
	}
	return found
}

func option(conn *net.UDPConn, level, name int) (value int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	if e := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }); e != nil {
		return 0, e
	}
	return value, err
}
