// Package unixsock listens on Unix sockets, connects to them, and finds the process at the other
// end of a connection. It also serves HTTP to the accounts of the host, and limits the number of
// connections of each account.
package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/conns"
)

// longest is the maximum length of the path of a Unix socket. According to unix(7), sun_path has
// 108 bytes, the last of which is 0.
const longest = 107

// Check returns an error if path is too long for a Unix socket. The error says so, unlike the
// "invalid argument" of the kernel.
func Check(path string) error {
	if len(path) > longest {
		return fmt.Errorf("socket %s: %d bytes, want at most %d, the limit of Unix sockets: choose a shorter directory, such as one below /run", path, len(path), longest)
	}
	return nil
}

// Dial connects to the Unix socket at path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// Listen listens on a Unix socket at path, with the given file mode, and replaces a socket that an
// earlier process has left. The network is "unix" or "unixpacket".
func Listen(path, network string, mode fs.FileMode) (*net.UnixListener, error) {
	err := Check(path)
	if err == nil {
		err = atomicfile.Replaceable(path, fs.ModeSocket)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// Peer returns the process ID, uid and gid of the process at the other end of a Unix socket. They
// are those of the moment at which the process connected or began to listen (SO_PEERCRED of
// unix(7)).
func Peer(conn syscall.Conn) (peer *unix.Ucred, err error) {
	err = conns.Control(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	return peer, err
}
