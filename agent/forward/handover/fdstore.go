package handover

import (
	"errors"
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
)

// Store keeps listening sockets open over a restart of the process: systemd stores them
// (sd_notify(3), FDSTORE=1) and passes them to the next process (sd_listen_fds(3)). Connections and
// datagrams in between wait in the kernel's queue, and no other process can take the address.
// Without systemd, sockets are ordinary. The zero Store is empty.
type Store struct {
	mu        sync.Mutex
	inherited map[addr]io.Closer    // not used yet
	open      map[addr]syscall.Conn // in use
	stored    map[addr]bool         // stored by systemd

	secrets map[string][]byte // of this process or inherited
	others  map[string]*os.File
}

// addr is the address of a listening socket.
type addr struct {
	network string // "tcp" or "udp"; for sockets that other hosts use "tls" or "quic"
	at      netip.AddrPort
}

// OpenStore returns a Store with the files that systemd passed to this process. It must be called
// at most once.
func OpenStore() *Store { return InheritStore(activation.Files(true)) }

// InheritStore returns a Store with the files of a process that is still running. Their names are
// those under which systemd stores them.
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

// Own is the prefix of names of sockets that do not belong to a Store.
const Own = "own-"

// Others removes and returns the files whose names begin with prefix, by the rest of their names.
// They are neither sockets nor secrets of the Store. The caller owns them.
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

// Other removes and returns the file with a name, as Others does, or nil if there is none.
func (s *Store) Other(name string) *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.others[name]
	delete(s.others, name)
	return f
}

// Files returns duplicates of all open sockets and secrets, for a process that takes over. The
// caller closes them.
func (s *Store) Files() (files []*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, socket := range s.inherited {
		if f, err := Dup(socket.(syscall.Conn), a.name()); err == nil {
			files = append(files, f)
		}
	}
	for a, socket := range s.open {
		if f, err := Dup(socket, a.name()); err == nil { // an error means that it was closed
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

// Dup returns a duplicate of an open socket with a name. It remains non-blocking.
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

// listening returns the listening socket behind a file, or nil if the file is something else.
func listening(f *os.File) (addr, io.Closer) {
	if ln, err := net.FileListener(f); err == nil {
		if bound, ok := ln.Addr().(*net.TCPAddr); ok {
			if strings.HasPrefix(f.Name(), "tls-") {
				return peerAddr("tls", bound.AddrPort()), ln
			}
			return addr{"tcp", bound.AddrPort()}, ln
		}
		ln.Close()
	} else if c, err := net.FilePacketConn(f); err == nil {
		if bound, ok := c.LocalAddr().(*net.UDPAddr); ok {
			if strings.HasPrefix(f.Name(), "quic-") {
				return peerAddr("quic", bound.AddrPort()), c
			}
			return addr{"udp", bound.AddrPort()}, c
		}
		c.Close()
	}
	return addr{}, nil
}

// Listen returns a listener for an address. It uses an inherited one if there is one. It fails only
// if listening itself fails; a socket that systemd does not store is lost at the next restart.
func (s *Store) Listen(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, addr{"tcp", at}, func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	})
}

// ListenUDP is like Listen for UDP.
func (s *Store) ListenUDP(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, addr{"udp", at}, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// ListenQUIC is like ListenUDP for an address to which other hosts send. Datagrams that arrive
// between two processes wait for the next one.
func (s *Store) ListenQUIC(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(s, peerAddr("quic", at), func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// ListenTLS is like Listen for an address to which other hosts connect.
func (s *Store) ListenTLS(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, peerAddr("tls", at), func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	})
}

// peerAddr returns an address in the form reported by the socket. The unspecified address stands
// for both address families.
func peerAddr(network string, at netip.AddrPort) addr {
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

// Retain removes all local listeners that are not wanted. The caller closes the sockets that Listen
// returned.
func (s *Store) Retain(tcp, udp map[netip.AddrPort]bool) {
	s.retain(func(a addr) bool {
		return a.forPeers() || tcp[a.at] && a.network == "tcp" || udp[a.at] && a.network == "udp"
	})
}

// RetainForPeers is like Retain for addresses that other hosts use.
func (s *Store) RetainForPeers(quic, tls []netip.AddrPort) {
	s.retain(func(a addr) bool {
		at := quic
		if a.network == "tls" {
			at = tls
		}
		return !a.forPeers() || slices.ContainsFunc(at, func(at netip.AddrPort) bool { return a == peerAddr(a.network, at) })
	})
}

// forPeers reports whether other hosts use the address.
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

// Hold makes systemd keep an open file for the next process under a unique name, until Drop is
// called. Without systemd it does nothing.
func Hold(name string, file syscall.Conn) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	// File() would make the socket blocking for all who share it.
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = notify("FDSTORE=1\nFDNAME="+name, int(fd)) }); err != nil {
		return err
	}
	return failed
}

// Drop ends Hold.
func Drop(name string) error { return notify("FDSTOREREMOVE=1\nFDNAME=" + name) }

// name returns the address in characters that are valid in FDNAME.
func (a addr) name() string { return a.network + "-" + strings.ReplaceAll(a.at.String(), ":", "-") }

// notify sends a message with files to systemd. Without systemd it does nothing.
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

// Barrier waits until systemd has handled all earlier messages of this process
// (sd_notify_barrier(3)). Without systemd it returns at once.
func Barrier() error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	raw, err := w.SyscallConn()
	if err != nil {
		w.Close()
		return err
	}
	var failed error
	_ = raw.Control(func(fd uintptr) { failed = notify("BARRIER=1", int(fd)) })
	w.Close()
	if failed != nil {
		return failed
	}
	_ = r.SetReadDeadline(time.Now().Add(barrierTimeout))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// barrierTimeout equals that of systemd.
const barrierTimeout = 5 * time.Second
