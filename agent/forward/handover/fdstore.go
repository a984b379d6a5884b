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

// Store keeps listening sockets open while the process that listens is started again: systemd stores
// them meanwhile (sd_notify(3), FDSTORE=1) and passes them to the next process (sd_listen_fds(3)). Who connects
// or sends in between waits in the kernel's queue, and nobody else can take the address. Where systemd does not
// run the process, sockets are plain. The zero Store has nothing yet.
type Store struct {
	mu        sync.Mutex
	inherited map[addr]io.Closer    // not listened on yet
	open      map[addr]syscall.Conn // listened on
	stored    map[addr]bool         // by systemd

	secrets map[string][]byte // of this process, or of the one before
	others  map[string]*os.File
}

// addr is where a socket listens.
type addr struct {
	network string // "tcp", "udp"; for what other hosts send to "tls" and "quic"
	at      netip.AddrPort
}

// OpenStore takes over what systemd passes to this process, which it does once.
func OpenStore() *Store { return InheritStore(activation.Files(true)) }

// InheritStore takes over the files of a process that is still there, which have the names that
// systemd stores them under.
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

// Own begins the names of sockets that are not a Store's.
const Own = "own-"

// Others removes and returns the files whose names begin with a prefix, by the rest of them.
// They are neither sockets nor secrets of a Store, and the caller's.
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

// Other is the one of Others that has a name, nil when there is none.
func (s *Store) Other(name string) *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.others[name]
	delete(s.others, name)
	return f
}

// Files are all sockets that are open and all secrets, for a process that takes over. The
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
		if f, err := Dup(socket, a.name()); err == nil { // else it was closed
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

// Dup is another file of an open socket, under a name. It does not block either.
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

// listening is the socket that a file is, nil when it is another kind of file.
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
	return listen(s, peerAddr("quic", at), func() (*net.UDPConn, error) {
		return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	})
}

// ListenTLS is Listen for what other hosts connect to.
func (s *Store) ListenTLS(at netip.AddrPort) (*net.TCPListener, error) {
	return listen(s, peerAddr("tls", at), func() (*net.TCPListener, error) {
		return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	})
}

// peerAddr is an address as the socket has it: one that is bound to all addresses is
// bound to those of both families.
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

// Retain drops all local listeners that are not wanted. Sockets that Listen returned are the
// caller's to close.
func (s *Store) Retain(tcp, udp map[netip.AddrPort]bool) {
	s.retain(func(a addr) bool {
		return a.forPeers() || tcp[a.at] && a.network == "tcp" || udp[a.at] && a.network == "udp"
	})
}

// RetainForPeers is Retain for what other hosts send to.
func (s *Store) RetainForPeers(quic, tls []netip.AddrPort) {
	s.retain(func(a addr) bool {
		at := quic
		if a.network == "tls" {
			at = tls
		}
		return !a.forPeers() || slices.ContainsFunc(at, func(at netip.AddrPort) bool { return a == peerAddr(a.network, at) })
	})
}

// forPeers reports whether other hosts send there.
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

// Barrier waits until systemd has handled what this process sent before (sd_notify_barrier(3)).
// Without systemd there is nothing to wait for.
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

// barrierTimeout is that of systemd's own.
const barrierTimeout = 5 * time.Second
