// Package fdstore keeps listening sockets open while the process that listens is
// started again: systemd stores them meanwhile (sd_notify(3), FDSTORE=1) and passes
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

// Store has what systemd stores for this process. The zero Store has nothing yet.
type Store struct {
	mu        sync.Mutex
	inherited map[addr]io.Closer // not listened on yet
	stored    map[addr]bool      // by systemd

	secrets map[string][]byte // of the process before
}

// addr is where a socket listens.
type addr struct {
	network string // "tcp", "udp", or "quic" for UDP that other hosts send to
	at      netip.AddrPort
}

// Open takes over what systemd passes to this process, which it does once.
func Open() *Store {
	s := &Store{inherited: map[addr]io.Closer{}, stored: map[addr]bool{}, secrets: map[string][]byte{}}
	for _, f := range activation.Files(true) {
		if name, ok := strings.CutPrefix(f.Name(), secretPrefix); ok {
			s.secrets[name] = readSecret(f)
		} else if p, socket := listening(f); socket != nil {
			s.inherited[p], s.stored[p] = socket, true
		}
		f.Close()
	}
	return s
}

// listening is the socket that a file is, nil when it is another kind of file.
func listening(f *os.File) (addr, io.Closer) {
	if ln, err := net.FileListener(f); err == nil {
		if bound, ok := ln.Addr().(*net.TCPAddr); ok {
			return addr{"tcp", bound.AddrPort()}, ln
		}
		ln.Close()
	} else if c, err := net.FilePacketConn(f); err == nil {
		if bound, ok := c.LocalAddr().(*net.UDPAddr); ok {
			if strings.HasPrefix(f.Name(), "quic-") {
				return quicAddr(bound.AddrPort()), c
			}
			return addr{"udp", bound.AddrPort()}, c
		}
		c.Close()
	}
	return addr{}, nil
}

// Listen returns the listener of an address, an inherited one where there is
// one. Without an error of the address itself it always does: a socket that
// systemd does not store is lost at the next start, and no worse.
func (s *Store) Listen(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, addr{"tcp", at}, func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	})
}

// ListenUDP is Listen for UDP.
func (s *Store) ListenUDP(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, addr{"udp", at}, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// ListenQUIC is ListenUDP for what other hosts send to: what comes while no process is
// there waits for the next one.
func (s *Store) ListenQUIC(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, quicAddr(at), func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// quicAddr is an address as the socket has it: one that is bound to all addresses is
// bound to those of both families.
func quicAddr(at netip.AddrPort) addr {
	ip := at.Addr().Unmap()
	if !ip.IsValid() || ip.IsUnspecified() {
		ip = netip.IPv6Unspecified()
	}
	return addr{"quic", netip.AddrPortFrom(ip, at.Port())}
}

func listen[S interface {
	io.Closer
	syscall.Conn
}](s *Store, a addr, bind func() (S, error)) (S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if socket, ok := s.inherited[a]; ok {
		delete(s.inherited, a)
		return socket.(S), nil
	}
	socket, err := bind()
	if err != nil {
		return socket, err
	}
	if s.stored == nil {
		s.stored = map[addr]bool{}
	}
	s.stored[a] = Hold(a.name(), socket) == nil
	return socket, nil
}

// Retain drops all local listeners that are not wanted. Sockets that Listen returned are the
// caller's to close.
func (s *Store) Retain(tcp, udp map[netip.AddrPort]bool) {
	s.retain(func(a addr) bool {
		return a.network == "quic" || tcp[a.at] && a.network == "tcp" || udp[a.at] && a.network == "udp"
	})
}

// RetainQUIC is Retain for what other hosts send to.
func (s *Store) RetainQUIC(addrs ...netip.AddrPort) {
	s.retain(func(a addr) bool {
		return a.network != "quic" || slices.ContainsFunc(addrs, func(at netip.AddrPort) bool { return a == quicAddr(at) })
	})
}

func (s *Store) retain(wanted func(addr) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.stored {
		if wanted(a) {
			continue
		}
		if socket, ok := s.inherited[a]; ok {
			socket.Close()
			delete(s.inherited, a)
		}
		if Drop(a.name()) == nil {
			delete(s.stored, a)
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

// name is the address in the letters that FDNAME may have.
func (a addr) name() string { return a.network + "-" + strings.ReplaceAll(a.at.String(), ":", "-") }

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
