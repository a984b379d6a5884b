// Package handover replaces the running process of the forwarder by a new one without closing
// connections. There are two ways. In a restart, the old process ends before the new one starts,
// and systemd keeps the sockets in between (Store). In a handover, both processes run at the same
// time. The old process passes all open sockets and secrets to the new one (Offer, Take), and keeps
// its connections until they end (Tasks).
//
// For a handover, the new process connects to a Unix socket (SOCK_SEQPACKET) of the old process.
// The old process checks with SO_PEERCRED that both processes have the same account. It then sends
//
//	files    names, and the open files with these names (SCM_RIGHTS), in as many messages as needed
//	state    the last message, see State
//
// Up to this point, either process may end and the other one continues. Then the new process sends
// "ready". The old process answers "yours" or ends. From then on, only the new process accepts
// connections. The Unix connection between them stays open. As long as it does, the new process
// passes datagrams and streams that belong to the old process on to it.
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
	maxFiles    = 200 // per message; the kernel's limit is 253
	maxMessage  = 1 << 16
	readyFor    = 15 * time.Second // time that the new process has to become ready; systemd's watchdog has twice that
	messageTime = 10 * time.Second
)

// State contains data that the running process of the forwarder sends to the new process that
// replaces it, after the open files.
type State struct {
	Version  int           `json:"version"`
	Number   int           `json:"number"`             // number of the process; the first process of a unit has 0
	Watchdog time.Duration `json:"watchdog,omitempty"` // interval in which systemd expects notifications
	Running  bool          `json:"running"`            // whether the process serves
}

type message struct {
	Files []string `json:"files,omitempty"`
	State *State   `json:"state,omitempty"`
	Ready bool     `json:"ready,omitempty"`
	Yours bool     `json:"yours,omitempty"`
}

// Next is a new process of the forwarder that is ready to replace this one. Both run for a while,
// so that the replacement, called handover, interrupts no connection.
type Next struct{ conn *net.UnixConn }

// Offer passes files and state to a new process at the other end of conn, and returns when that
// process is ready to take over. It gets the state and the files from the function offer, and
// closes the files. If Offer returns an error, it has closed conn, and this process continues to
// serve.
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

// Yield tells the next process to take over. The caller must have stopped accepting connections.
func (n *Next) Yield() {
	_ = n.conn.SetDeadline(time.Time{})
	_ = send(n.conn, message{Yours: true}) // if the message is lost, the process notices the end of the connection
}

// Wait waits until the next process has ended, or ctx ends.
func (n *Next) Wait(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = n.conn.SetReadDeadline(time.Unix(1, 0)) })()
	_, _ = n.conn.Read(make([]byte, 1))
}

// Close closes the connection to the next process.
func (n *Next) Close() { n.conn.Close() }

// Before is the older process of the forwarder, which this process is about to replace in a
// handover. It contains the state and the files that the older process has passed on.
type Before struct {
	State State
	Files []*os.File
	conn  *net.UnixConn
}

// Take begins a handover to this process. It connects to the running process, which listens on the
// Unix socket at path, and receives its state and files. The running process continues to serve
// until TakeOver is called. The caller must close the files.
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

// TakeOver makes the running process stop accepting connections. It returns when that process has
// confirmed this or has ended.
func (b *Before) TakeOver() {
	_ = b.conn.SetDeadline(time.Now().Add(messageTime))
	if send(b.conn, message{Ready: true}) == nil {
		_, _, _ = receive(b.conn) // receives "yours", or the end of the connection
	}
	_ = b.conn.SetDeadline(time.Time{})
}

// Conn returns the connection to the process that this process replaces. It must stay open as long
// as this process passes packets on to that process. A later handover passes the connection on to
// the next process.
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
