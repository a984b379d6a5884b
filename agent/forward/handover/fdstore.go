package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

// Store keeps the forwarder's listening sockets open while the forwarder restarts. It passes them
// to systemd (FDSTORE=1 in sd_notify(3)), which passes them to the next process (sd_listen_fds(3)).
// Until then, connections and datagrams wait in the kernel's queues, and no other process can take
// the addresses. If systemd does not run the process, the sockets close with it. The zero Store is
// empty and ready for use. A Store is safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	inherited map[addr]io.Closer    // not used yet
	open      map[addr]syscall.Conn // in use
	stored    map[addr]bool         // whether systemd stores the socket
	shared    map[uint16]bool       // ports of which one socket may have all addresses

	secrets map[string][]byte // of this process or inherited
	others  map[string]*os.File
}

// addr is the address of a listening socket in a Store.
type addr struct {
	network string // "tcp" or "udp" for local programs; "tls" or "quic" for other hosts
	at      netip.AddrPort
}

// OpenStore returns a Store with the sockets that systemd has kept for this process. It must be
// called only once, because it takes the sockets out of the environment.
func OpenStore() *Store { return InheritStore(activation.Files(true)) }

// InheritStore returns a Store with files that a running process has passed to this one. The files
// must have the names that systemd knows them by. The Store takes ownership of the files.
func InheritStore(files []*os.File) *Store {
	s := &Store{
		inherited: map[addr]io.Closer{}, open: map[addr]syscall.Conn{}, stored: map[addr]bool{},
		secrets: map[string][]byte{}, others: map[string]*os.File{},
	}
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name(), secretPrefix); ok {
			s.secrets[name] = readSecret(f)
		} else if strings.HasPrefix(f.Name(), Own) {
			s.others[f.Name()] = f
			continue
		} else if p, socket := listening(f); socket != nil {
			s.inherited[p], s.stored[p] = socket, true
		} else {
			s.others[f.Name()] = f
			continue
		}
		f.Close()
	}
	return s
}

// Own is the prefix of the names of sockets that are passed to the next process but do not belong
// to a Store. The status socket is an example.
const Own = "own-"

// Others removes the files whose names begin with a prefix from the Store and returns them. The map
// contains them by their names without the prefix. Others is for files that an earlier process
// passed on but that are neither listening sockets nor secrets. The caller must close the files.
func (s *Store) Others(prefix string) map[string]*os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*os.File{}
	for name, f := range s.others {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			found[rest] = f
			delete(s.others, name)
		}
	}
	return found
}

// Other removes the file with the given name from the Store and returns it, or returns nil if there
// is no such file. The caller must close the file.
func (s *Store) Other(name string) *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.others[name]
	delete(s.others, name)
	return f
}

// Files returns duplicates of all sockets and secrets in the Store, for a process that takes over.
// The caller must close them.
func (s *Store) Files() (files []*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, socket := range s.inherited {
		if f, err := Dup(socket.(syscall.Conn), a.name()); err == nil {
			files = append(files, f)
		}
	}
	for a, socket := range s.open {
		if f, err := Dup(socket, a.name()); err == nil { // an error means that the socket was closed
			files = append(files, f)
		}
	}
	for name, secret := range s.secrets {
		if f, err := secretFile(name, secret); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// Dup returns a duplicate of an open socket, as a file with the given name. Unlike File of
// net.TCPConn, it leaves the socket in non-blocking mode.
func Dup(c syscall.Conn, name string) (*os.File, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	if err := raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return os.NewFile(uintptr(fd), name), nil
}

// listening returns the listening socket in a file. It returns nil if the file is not a listening
// socket.
func listening(f *os.File) (addr, io.Closer) {
	if ln, err := net.FileListener(f); err == nil {
		if bound, ok := ln.Addr().(*net.TCPAddr); ok {
			if strings.HasPrefix(f.Name(), "tls-") {
				return anyAddr("tls", bound.AddrPort()), ln
			}
			return anyAddr("tcp", bound.AddrPort()), ln
		}
		ln.Close()
	} else if c, err := net.FilePacketConn(f); err == nil {
		if bound, ok := c.LocalAddr().(*net.UDPAddr); ok {
			if strings.HasPrefix(f.Name(), "quic-") {
				return anyAddr("quic", bound.AddrPort()), c
			}
			return anyAddr("udp", bound.AddrPort()), c
		}
		c.Close()
	}
	return addr{}, nil
}

// Listen returns a TCP listener for an address, and keeps its socket for the next process. It uses
// the socket of the previous process if there is one. Listen returns no error if systemd does not
// accept the socket, but the socket is then lost at the next restart.
func (s *Store) Listen(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, anyAddr("tcp", at), func() (*net.TCPListener, error) {
		ln, err := s.config(at).Listen(context.Background(), "tcp", hostPort(at))
		if err != nil {
			return nil, err
		}
		return ln.(*net.TCPListener), nil
	})
}

// ListenUDP returns a UDP socket for an address, and keeps it for the next process. Like Listen, it
// uses the socket of the previous process if there is one.
func (s *Store) ListenUDP(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, anyAddr("udp", at), func() (*net.UDPConn, error) {
		c, err := s.config(at).ListenPacket(context.Background(), "udp", hostPort(at))
		if err != nil {
			return nil, err
		}
		return c.(*net.UDPConn), nil
	})
}

// ListenQUIC is like ListenUDP, but for an address to which other hosts send. A socket that is no
// longer needed is dropped by RetainForPeers instead of Retain.
func (s *Store) ListenQUIC(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, anyAddr("quic", at), func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// ListenTLS is like Listen, but for an address to which other hosts connect. A socket that is no
// longer needed is dropped by RetainForPeers instead of Retain.
func (s *Store) ListenTLS(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, anyAddr("tls", at), func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	})
}

// hostPort returns an address in the form of package net. The host is empty for all addresses of
// both families, because a kernel may have only one of them.
func hostPort(at netip.AddrPort) string {
	if at.Addr() == netip.IPv6Unspecified() {
		return fmt.Sprintf(":%d", at.Port())
	}
	return at.String()
}

// config returns the configuration for a socket. The sockets of a shared port have SO_REUSEPORT, so
// that one can have all addresses of the host while others have loopback addresses.
func (s *Store) config(at netip.AddrPort) *net.ListenConfig {
	if !s.shared[at.Port()] {
		return &net.ListenConfig{}
	}
	return &net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return reusePort(c) }}
}

func reusePort(c syscall.RawConn) (err error) {
	if failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); failed != nil {
		return failed
	}
	return err
}

// Share sets the ports at which several local listeners may exist: one for all addresses of the
// host, and others for single addresses. The kernel passes each connection to the listener for
// exactly its address, if there is one.
func (s *Store) Share(ports map[uint16]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = ports
	share := func(a addr, socket syscall.Conn) {
		if a.forPeers() || !ports[a.at.Port()] {
			return
		}
		if raw, err := socket.SyscallConn(); err == nil {
			_ = reusePort(raw) // on error, opening the next socket fails
		}
	}
	for a, socket := range s.open {
		share(a, socket)
	}
	for a, socket := range s.inherited {
		share(a, socket.(syscall.Conn))
	}
}

// anyAddr returns an address in the form in which the socket reports it. The unspecified address
// stands for all addresses of both families.
func anyAddr(network string, at netip.AddrPort) addr {
	ip := at.Addr().Unmap()
	if !ip.IsValid() || ip.IsUnspecified() {
		ip = netip.IPv6Unspecified()
	}
	return addr{network, netip.AddrPortFrom(ip, at.Port())}
}

func listen[S interface {
	io.Closer
	syscall.Conn
}](s *Store, a addr, bind func() (S, error)) (S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		s.stored, s.open = map[addr]bool{}, map[addr]syscall.Conn{}
	}
	if socket, ok := s.inherited[a]; ok {
		delete(s.inherited, a)
		s.open[a] = socket.(S)
		return socket.(S), nil
	}
	socket, err := bind()
	if err != nil {
		return socket, err
	}
	s.open[a] = socket
	s.stored[a] = Hold(a.name(), socket) == nil
	return socket, nil
}

// Retain drops all local sockets except those for the given TCP and UDP addresses. systemd no
// longer keeps the dropped sockets. The caller must close those that it has opened.
func (s *Store) Retain(tcp, udp map[netip.AddrPort]bool) {
	s.retain(func(a addr) bool {
		return a.forPeers() || tcp[a.at] && a.network == "tcp" || udp[a.at] && a.network == "udp"
	})
}

// RetainForPeers drops all sockets that other hosts use, except those for the given QUIC and TLS
// addresses. systemd no longer keeps the dropped sockets. The caller must close those that it has
// opened.
func (s *Store) RetainForPeers(quic, tls []netip.AddrPort) {
	s.retain(func(a addr) bool {
		at := quic
		if a.network == "tls" {
			at = tls
		}
		return !a.forPeers() || slices.ContainsFunc(at, func(at netip.AddrPort) bool { return a == anyAddr(a.network, at) })
	})
}

// forPeers reports whether the address is one that other hosts use.
func (a addr) forPeers() bool { return a.network == "quic" || a.network == "tls" }

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
		delete(s.open, a)
		if Drop(a.name()) == nil {
			delete(s.stored, a)
		}
	}
}

// Hold makes systemd keep an open file for the next process, until Drop is called with the same
// name. The name must be unique. If systemd does not run this process, Hold does nothing.
func Hold(name string, file syscall.Conn) error {
	// File would make the socket blocking for all processes that share it.
	return conns.Control(file, func(fd int) error { return notify("FDSTORE=1\nFDNAME="+name, fd) })
}

// Drop makes systemd forget a file that Hold has passed to it.
func Drop(name string) error { return notify("FDSTOREREMOVE=1\nFDNAME=" + name) }

// name returns the address in a form that is valid as an FDNAME of systemd.
func (a addr) name() string { return a.network + "-" + strings.ReplaceAll(a.at.String(), ":", "-") }

// notify sends a message with files to systemd. If systemd does not run the process, it does
// nothing.
func notify(message string, files ...int) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	// A connected net.UnixConn cannot send files.
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

// Barrier waits until systemd has handled all earlier messages of this process, for at most five
// seconds (sd_notify_barrier(3)). If systemd does not run this process, Barrier returns nil at
// once.
func Barrier() error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	err = conns.Control(w, func(fd int) error { return notify("BARRIER=1", fd) })
	w.Close()
	if err != nil {
		return err
	}
	_ = r.SetReadDeadline(time.Now().Add(barrierTimeout))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// barrierTimeout is the time that Barrier waits. systemd's own function uses the same time.
const barrierTimeout = 5 * time.Second
