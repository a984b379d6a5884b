// Package fdstore keeps listening sockets open while the process that accepts on
// them is started again: systemd holds them meanwhile (sd_notify(3), FDSTORE=1) and
// passes them to the next process (sd_listen_fds(3)). Who connects in between waits
// in the kernel's queue. Where systemd does not run the process, sockets are plain.
package fdstore

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Store has what systemd holds for this process. The zero Store holds nothing yet.
type Store struct {
	mu     sync.Mutex
	passed map[netip.AddrPort]net.Listener // not taken yet
	held   map[netip.AddrPort]bool
}

// Open takes over what systemd passes to this process, which it does once.
func Open() (*Store, error) {
	all, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	}
	s := &Store{passed: map[netip.AddrPort]net.Listener{}, held: map[netip.AddrPort]bool{}}
	for _, ln := range all {
		if tcp, ok := ln.(*net.TCPListener); ok {
			addr := tcp.Addr().(*net.TCPAddr).AddrPort()
			s.passed[addr], s.held[addr] = ln, true
		}
	}
	return s, nil
}

// Listen returns the listener of an address, one that was passed where there is
// one. Without an error of the address itself it always does: a socket that
// systemd does not take is lost at the next start, and no worse.
func (s *Store) Listen(addr netip.AddrPort) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln, ok := s.passed[addr]; ok {
		delete(s.passed, addr)
		return ln, nil
	}
	ln, err := net.Listen("tcp", addr.String())
	if err != nil {
		return nil, err
	}
	if s.held == nil {
		s.held = map[netip.AddrPort]bool{}
	}
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err == nil {
		// Not its File: that would make it block, for all who have it.
		raw.Control(func(fd uintptr) {
			s.held[addr] = notify("FDSTORE=1\nFDNAME="+name(addr), int(fd)) == nil
		})
	}
	return ln, nil
}

// Retain drops all that is not wanted. Listeners that were taken are the caller's
// to close.
func (s *Store) Retain(wanted map[netip.AddrPort]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr := range s.held {
		if wanted[addr] {
			continue
		}
		if ln, ok := s.passed[addr]; ok {
			ln.Close()
			delete(s.passed, addr)
		}
		if notify("FDSTOREREMOVE=1\nFDNAME="+name(addr)) == nil {
			delete(s.held, addr)
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
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = notify("FDSTORE=1\nFDNAME="+name, int(fd)) }); err != nil {
		return err
	}
	return failed
}

// Drop undoes Hold.
func Drop(name string) error { return notify("FDSTOREREMOVE=1\nFDNAME=" + name) }

// name is an address in the letters that FDNAME may have.
func name(addr netip.AddrPort) string { return "tcp-" + strings.ReplaceAll(addr.String(), ":", "-") }

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
