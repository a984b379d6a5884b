package doctor

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostreport"
)

// agent checks that the forwarder runs and reports no problems. The check is left out while the
// node has no SVID, because the forwarder waits for the SVID.
func (h *host) agent(ctx context.Context) (string, []Finding) {
	if h.identities.SVID(h.manifest.Identity.ID) == nil {
		return "nothing: it starts with the node's identity", nil
	}
	r, _, err := status.Fetch(ctx, h.Socket)
	if err != nil {
		return "no answer", []Finding{h.unreadable(err, h.restart("agent"))}
	}
	var found []Finding
	missing := h.missing()
	for _, p := range r.Problems {
		if !lacksAccount(p, missing) {
			found = append(found, h.agentProblem(p))
		}
	}
	found = append(found, h.exhausted(r.PeerConnections)...)
	found = append(found, h.uplinks(r.Uplinks)...)
	if r.State != hostreport.Running {
		found = append(found, fix(fmt.Sprintf("agent is %s although the node's identity is there", r.State), h.restart("agent")))
	}
	seen := fmt.Sprintf("%s, %d connections", r.State, r.Connections)
	if len(r.Uplinks) > 0 {
		seen += fmt.Sprintf(", %d of %d uplinks", connected(r.Uplinks), len(r.Uplinks))
	}
	if kind := nats[r.NAT]; kind != "" {
		seen += ", " + kind
	}
	if r.Unconfined != "" {
		seen += ", unconfined: " + r.Unconfined
	}
	return seen, found
}

// nats maps each type of NAT to the words that describe it in the report.
var nats = map[transport.NAT]string{
	transport.NoNAT:    "no NAT",
	transport.SameNAT:  "behind a NAT: relays see the same port, and direct connections can be made",
	transport.OtherNAT: "behind a symmetric NAT: relays see different ports, and only connections through relays can be made",
	transport.SomeNAT:  "behind a NAT of which one relay alone was seen",
}

// connected returns the number of uplinks that have a connection to their relay.
func connected(all []status.Uplink) (n int) {
	for _, u := range all {
		if u.Transport != "" {
			n++
		}
	}
	return n
}

// lacksAccount reports whether a problem of the forwarder is caused by a missing account. Such a
// problem is left out, because the check of the accounts reports it. The forwarder looks the
// account up again by itself.
func lacksAccount(problem string, missing map[string]string) bool {
	for name := range missing {
		if strings.HasSuffix(problem, user.UnknownUserError(name).Error()) {
			return true
		}
	}
	return false
}

// exhausted reports connections to other forwarders that accept no more streams. The cause is a
// program that does not close or read its connections.
func (h *host) exhausted(conns []usage.Row) (found []Finding) {
	for _, l := range conns {
		if l.Full || l.Allowed > 0 && l.Streams >= l.Allowed {
			found = append(found, do(
				fmt.Sprintf("%s has all of its %d streams to %s at %s open: further connections are refused", l.Caller.Short(), l.Allowed, l.Target.Short(), l.Remote),
				fmt.Sprintf("end what holds them; all at once: %s", h.restart("agent"))))
		}
	}
	return found
}

// uplinks reports each relay to which this host has no connection. Callers cannot reach the host
// through such a relay.
func (h *host) uplinks(all []status.Uplink) (found []Finding) {
	for _, u := range all {
		if u.Transport != "" || u.Error == "" {
			continue
		}
		found = append(found, do(
			fmt.Sprintf("no uplink to relay %s for %s: %s", u.Relay.Name(), h.now.Sub(u.Since).Round(time.Second), u.Error),
			fmt.Sprintf("%s; and let the forwarder's port of %s out from here, UDP or TCP", examineOn(u.Relay.Name()), u.Relay.Name())))
	}
	return found
}

// agentProblem returns the finding for a problem that the forwarder reports.
func (h *host) agentProblem(text string) Finding {
	problem := "agent: " + text
	switch {
	case strings.Contains(text, unix.EADDRINUSE.Error()):
		return do(problem, "stop what has the address; it is among: ss --listening --processes --numeric --tcp --udp")
	case strings.Contains(text, unix.EACCES.Error()):
		return do(problem, "give the agent's account what it may not read, see permissions")
	}
	return fix(problem, h.restart("agent"))
}

// wantBuffer is the size in bytes that quic-go requests for each socket buffer.
const wantBuffer = 7 << 20

func (h *host) kernel(context.Context) (string, []Finding) {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return "no UDP", []Finding{fix(err.Error(), "sysctl -w net.ipv4.ip_local_port_range='32768 60999'")}
	}
	defer conn.Close()
	return "UDP buffers, GSO", append(h.buffers(conn, wantBuffer), offload(conn)...)
}

// buffers requests socket buffers of the wanted size, as quic-go does. It reports a problem if the
// kernel grants less.
func (h *host) buffers(conn *net.UDPConn, want int) (found []Finding) {
	conn.SetReadBuffer(want)
	conn.SetWriteBuffer(want)
	for _, b := range []struct {
		name, key string
		option    int
	}{{"receive", "rmem_max", unix.SO_RCVBUF}, {"send", "wmem_max", unix.SO_SNDBUF}} {
		if got, err := option(conn, unix.SOL_SOCKET, b.option); err != nil || got < want {
			found = append(found, fix(
				fmt.Sprintf("UDP %s buffers are at most %d KiB, QUIC wants %d KiB: it is slow", b.name, got>>10, want>>10),
				fmt.Sprintf("echo net.core.%s=%d >> /etc/sysctl.d/60-%s.conf && sysctl --system", b.key, want, h.Instance)))
		}
	}
	return found
}

// offload checks that the kernel can send and receive many packets with one system call (UDP
// segmentation offload). Without it, the transfer of data is several times slower.
func offload(conn *net.UDPConn) (found []Finding) {
	for _, o := range []struct {
		name   string
		option int
	}{{"GSO (UDP_SEGMENT)", unix.UDP_SEGMENT}, {"GRO (UDP_GRO)", unix.UDP_GRO}} {
		if _, err := option(conn, unix.IPPROTO_UDP, o.option); err != nil {
			found = append(found, do(fmt.Sprintf("the kernel has no %s: %v: QUIC is slow", o.name, err), "upgrade to Linux 5.0 or newer"))
		}
	}
	return found
}

func option(conn *net.UDPConn, level, name int) (value int, err error) {
	err = conns.Control(conn, func(fd int) (err error) {
		value, err = unix.GetsockoptInt(fd, level, name)
		return err
	})
	return value, err
}
