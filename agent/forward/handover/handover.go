// Package handover lets a new process of the forwarder replace the running one without closing
// connections. During a restart systemd keeps the sockets (Store). In a handover both processes
// run: the new process receives all open sockets and secrets (Offer, Take), and the old process
// keeps its connections until they end (Tasks).
//
// In a handover the new process connects to a Unix socket (SOCK_SEQPACKET) of the old process,
// which checks by SO_PEERCRED that both have the same account, and sends
//
//	files    names, and the open files with these names (SCM_RIGHTS), in as many messages as needed
//	state    the last message, see State
//
// Up to this point either process may end and the other continues. Then the new process sends
// "ready" and receives "yours", or the end of the connection. After that only the new process
// accepts connections. The connection remains open, and as long as it does, datagrams and streams
// for the old process are passed on to it.
package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/unixsock"
)

const (
	version     = 1
	maxFiles    = 200 // of a message; the kernel's limit is 253
	maxMessage  = 1 << 16
	readyFor    = 15 * time.Second // within which a process must be ready: systemd's watchdog has twice that
	messageTime = 10 * time.Second
)

// State is what goes along with the files.
type State struct {
	Version  int           `json:"version"`
	Number   int           `json:"number"`             // of the process: the first one of a unit is 0
	Watchdog time.Duration `json:"watchdog,omitempty"` // within which systemd wants to be notified
	Running  bool          `json:"running"`            // serves
}

type message struct {
	Files []string `json:"files,omitempty"`
	State *State   `json:"state,omitempty"`
	Ready bool     `json:"ready,omitempty"`
	Yours bool     `json:"yours,omitempty"`
}

// Next is a process that is ready to take over.
type Next struct{ conn *net.UnixConn }

// Offer gives the process behind a connection what it needs, and waits until that is ready,
// or ctx ends. offer's files are closed. An error is of this process alone.
func Offer(ctx context.Context, conn *net.UnixConn, offer func() (State, []*os.File, error)) (*Next, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err := give(conn, offer); err != nil {
		conn.Close()
		stop()
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return &Next{conn}, nil
}

func give(conn *net.UnixConn, offer func() (State, []*os.File, error)) error {
	if err := sameAccount(conn); err != nil {
		return err
	}
	state, files, err := offer()
	defer closeAll(files)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(messageTime))
	for rest := files; len(rest) > 0; {
		some := rest[:min(len(rest), maxFiles)]
		rest = rest[len(some):]
		if err := sendFiles(conn, some); err != nil {
			return err
		}
	}
	state.Version = version
	if err := send(conn, message{State: &state}); err != nil {
		return err
	}
	conn.SetDeadline(time.Now().Add(readyFor))
	m, _, err := receive(conn)
	if err == nil && !m.Ready {
		err = errors.New("the next process is not ready")
	}
	return err
}

// Yield lets the process have what it was given.
func (n *Next) Yield() {
	_ = n.conn.SetDeadline(time.Time{})
	_ = send(n.conn, message{Yours: true}) // who does not get it notices the end
}

// Wait returns when the process is gone, or ctx ends.
func (n *Next) Wait(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = n.conn.SetReadDeadline(time.Unix(1, 0)) })()
	_, _ = n.conn.Read(make([]byte, 1))
}

// Close ends what Yield began.
func (n *Next) Close() { n.conn.Close() }

// Before is a process that gives what it has.
type Before struct {
	State State
	Files []*os.File
	conn  *net.UnixConn
}

// Take gets what the process behind a socket has.
func Take(path string) (*Before, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("handover from the forwarder at %s: %w, want one that runs: systemctl restart", path, err)
	}
	conn.SetDeadline(time.Now().Add(messageTime))
	b := &Before{conn: conn}
	for {
		m, files, err := receive(conn)
		b.Files = append(b.Files, files...)
		if err == nil && m.State != nil && m.State.Version != version {
			err = fmt.Errorf("version %d, want %d: systemctl restart", m.State.Version, version)
		}
		if err != nil {
			conn.Close()
			closeAll(b.Files)
			return nil, fmt.Errorf("handover from the forwarder at %s: %w", path, err)
		}
		if m.State != nil {
			b.State = *m.State
			return b, nil
		}
	}
}

// TakeOver has the process take no more connections, or end, and returns when it has.
func (b *Before) TakeOver() {
	_ = b.conn.SetDeadline(time.Now().Add(messageTime))
	if send(b.conn, message{Ready: true}) == nil {
		_, _, _ = receive(b.conn) // "yours", or the end
	}
	_ = b.conn.SetDeadline(time.Time{})
}

// Conn stays while this process passes on what is for the other; its file is the next one's.
func (b *Before) Conn() *net.UnixConn { return b.conn }

func send(conn *net.UnixConn, m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}

func sendFiles(conn *net.UnixConn, files []*os.File) error {
	var m message
	var fds []int
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return err
		}
		m.Files = append(m.Files, f.Name())
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, _, err = conn.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	return err
}

func receive(conn *net.UnixConn) (m message, files []*os.File, err error) {
	b, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(maxFiles*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		return m, nil, err
	}
	var fds []int
	if oobn > 0 {
		if fds, err = rights(oob[:oobn]); err != nil {
			return m, nil, err
		}
	}
	if err = json.Unmarshal(b[:n], &m); err == nil && len(m.Files) != len(fds) {
		err = fmt.Errorf("%d names of %d files", len(m.Files), len(fds))
	}
	for i, fd := range fds {
		if err != nil {
			unix.Close(fd)
			continue
		}
		files = append(files, os.NewFile(uintptr(fd), m.Files[i]))
	}
	return m, files, err
}

func rights(oob []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range all {
		some, err := unix.ParseUnixRights(&all[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, some...)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

func sameAccount(conn *net.UnixConn) error {
	peer, err := unixsock.Peer(conn)
	if err != nil {
		return err
	}
	if own := uint32(syscall.Geteuid()); peer.Uid != own {
		return fmt.Errorf("a process of uid %d wants to take over, want uid %d", peer.Uid, own)
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
