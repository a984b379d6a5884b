// Package fdstore keeps listening sockets open while the process that listens is
// started again: systemd holds them meanwhile (sd_notify(3), FDSTORE=1) and passes
// them to the next process (sd_listen_fds(3)). Who connects or sends in between waits
// in the kernel's queue, and nobody else can take the address. Where systemd does not
// run the process, sockets are plain.
package fdstore

import (
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Store has what systemd holds for this process. The zero Store holds nothing yet.
type Store struct {
	mu     sync.Mutex
	passed map[place]io.Closer // not taken yet
	held   map[place]bool

	secrets map[string][]byte // of the process before
}

// place is where a socket listens.
type place struct {
	network string // "tcp", "udp", or "quic" for UDP that other hosts send to
	addr    netip.AddrPort
}

// Open takes over what systemd passes to this process, which it does once.
func Open() *Store {
	s := &Store{passed: map[place]io.Closer{}, held: map[place]bool{}, secrets: map[string][]byte{}}
	for _, f := range activation.Files(true) {
		if name, ok := strings.CutPrefix(f.Name(), secretPrefix); ok {
			s.secrets[name] = readSecret(f)
		} else if p, socket := listening(f); socket != nil {
			s.passed[p], s.held[p] = socket, true
		}
		f.Close()
	}
	return s
}

// listening is the socket that a file is, nil when it is another kind of file.
func listening(f *os.File) (place, io.Closer) {
	if ln, err := net.FileListener(f); err == nil {
		if addr, ok := ln.Addr().(*net.TCPAddr); ok {
			return place{"tcp", addr.AddrPort()}, ln
		}
		ln.Close()
	} else if c, err := net.FilePacketConn(f); err == nil {
		if addr, ok := c.LocalAddr().(*net.UDPAddr); ok {
			if strings.HasPrefix(f.Name(), "quic-") {
				return quicPlace(addr.AddrPort()), c
			}
			return place{"udp", addr.AddrPort()}, c
		}
		c.Close()
	}
	return place{}, nil
}

// Listen returns the listener of an address, one that was passed where there is
// one. Without an error of the address itself it always does: a socket that
// systemd does not take is lost at the next start, and no worse.
func (s *Store) Listen(addr netip.AddrPort) (*net.TCPListener, error) {
	return take(s, place{"tcp", addr}, func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	})
}

// ListenUDP is Listen for UDP.
func (s *Store) ListenUDP(addr netip.AddrPort) (*net.UDPConn, error) {
	return take(s, place{"udp", addr}, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	})
}

// ListenQUIC is ListenUDP for what other hosts send to: what comes while no process is
// there waits for the next one.
func (s *Store) ListenQUIC(addr netip.AddrPort) (*net.UDPConn, error) {
	return take(s, quicPlace(addr), func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	})
}

// quicPlace is an address as the socket has it: one that is bound to all addresses is
// bound to those of both families.
func quicPlace(addr netip.AddrPort) place {
	ip := addr.Addr().Unmap()
	if !ip.IsValid() || ip.IsUnspecified() {
		ip = netip.IPv6Unspecified()
	}
	return place{"quic", netip.AddrPortFrom(ip, addr.Port())}
}

func take[S interface {
	io.Closer
	syscall.Conn
}](s *Store, p place, bind func() (S, error)) (S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if socket, ok := s.passed[p]; ok {
		delete(s.passed, p)
		return socket.(S), nil
	}
	socket, err := bind()
	if err != nil {
		return socket, err
	}
	if s.held == nil {
		s.held = map[place]bool{}
	}
	s.held[p] = Hold(p.name(), socket) == nil
	return socket, nil
}

// Retain drops all local listeners that are not wanted. Sockets that were taken are the
// caller's to close.
func (s *Store) Retain(tcp, udp map[netip.AddrPort]bool) {
	s.retain(func(p place) bool {
		return p.network == "quic" || tcp[p.addr] && p.network == "tcp" || udp[p.addr] && p.network == "udp"
	})
}

// RetainQUIC is Retain for what other hosts send to.
func (s *Store) RetainQUIC(addrs ...netip.AddrPort) {
	s.retain(func(p place) bool {
		return p.network != "quic" || slices.ContainsFunc(addrs, func(a netip.AddrPort) bool { return p == quicPlace(a) })
	})
}

func (s *Store) retain(wanted func(place) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.held {
		if wanted(p) {
			continue
		}
		if socket, ok := s.passed[p]; ok {
			socket.Close()
			delete(s.passed, p)
		}
		if Drop(p.name()) == nil {
			delete(s.held, p)
		}
	}
}

// Hold has systemd keep an open file for the next process too, under a name that no
// other has; Drop ends that. Without systemd both do nothing.
func Hold(name string, file syscall.Conn) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	// Not its File: that would make it block, for all who have it.
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = notify("FDSTORE=1\nFDNAME="+name, int(fd)) }); err != nil {
		return err
	}
	return failed
}

// Drop undoes Hold.
func Drop(name string) error { return notify("FDSTOREREMOVE=1\nFDNAME=" + name) }

// name is the place in the letters that FDNAME may have.
func (p place) name() string { return p.network + "-" + strings.ReplaceAll(p.addr.String(), ":", "-") }

// notify sends a message with files to systemd. Without systemd it sends nothing.
func notify(message string, files ...int) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	// Not a net.UnixConn: it sends no files once it is connected.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return unix.Sendmsg(fd, []byte(message), rights, &unix.SockaddrUnix{Name: socket}, 0)
}
