package announced

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixsock"
	"github.com/florete/florete/providers/server"
)

// patience is the longest time that listener waits for the forwarder to announce the caller of a
// connection.
const patience = 5 * time.Second

// conn is a connection with the caller that the forwarder announced for it.
type conn struct {
	net.Conn
	r       *bufio.Reader
	caller  Caller
	from    net.Addr
	release func()
	once    sync.Once
}

func (c *conn) Read(b []byte) (int, error) { return c.r.Read(b) }
func (c *conn) RemoteAddr() net.Addr       { return c.from }

func (c *conn) Close() error {
	c.once.Do(c.release)
	return c.Conn.Close()
}

// listener accepts connections and waits until the forwarder has announced their callers. A
// connection that is not announced yet does not delay others.
type listener struct {
	*net.UnixListener
	Config
	free     chan struct{}
	callers  *conns.PerKey[string]
	accepted chan *conn
	end      context.CancelFunc
	ended    <-chan struct{}
	all      sync.WaitGroup
}

// listen creates the Unix socket so that the forwarder's group can use it. It replaces a socket
// that an earlier process left behind.
func (c Config) listen() (*listener, error) {
	u, err := unixsock.Listen(c.Socket, "unix", 0o660)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	l := &listener{UnixListener: u, Config: c, free: make(chan struct{}, c.Conns), callers: conns.NewPerKey[string](c.ConnsOfCaller),
		accepted: make(chan *conn), end: end, ended: ctx.Done()}
	l.all.Go(l.run)
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.end()
	err := l.UnixListener.Close()
	l.all.Wait()
	return err
}

func (l *listener) run() {
	defer l.end()
	failures := conns.Failures{Log: l.Logger}
	for {
		select {
		case l.free <- struct{}{}:
		case <-l.ended:
			return
		}
		u, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			failures.Pause(l.Socket, err)
			<-l.free
			continue
		}
		l.all.Go(func() { l.admit(u) })
	}
}

// admit passes a connection on once its caller is announced, and closes any other connection.
func (l *listener) admit(u *net.UnixConn) {
	c, err := l.announcedBy(u)
	if err == nil {
		select {
		case l.accepted <- c:
			return
		case <-l.ended:
			c.Close()
			return
		}
	}
	defer func() { u.Close(); <-l.free }()
	if errors.Is(err, io.EOF) {
		return // flor doctor, which sends nothing
	}
	row := server.Row{Time: time.Now().UTC(), Kind: l.Kind}.Refuse(hostapi.AsError(err))
	if err := l.Audit.Stranger(context.Background(), row); err != nil {
		l.Logger.Error("a refusal is in this log alone", "error", err, "refused", row.Message)
	}
}

// announcedBy reads the announcement of a connection's caller. It accepts an announcement only from
// the forwarder.
func (l *listener) announcedBy(u *net.UnixConn) (*conn, error) {
	if err := u.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	c := &conn{Conn: u, r: bufio.NewReader(u)}
	if _, err := c.r.Peek(1); err != nil {
		return nil, err
	}
	if err := l.fromForwarder(u); err != nil {
		return nil, err
	}
	h, err := proxyproto.Read(c.r)
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "%s: no caller is announced: %v", l.Socket, err)
	}
	tlvs, err := h.TLVs()
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "%s: no caller is announced: %v", l.Socket, err)
	}
	for _, v := range tlvs {
		switch v.Type {
		case spiffe.ProxyCaller:
			if c.caller.ID, err = spiffe.ParseID(string(v.Value)); err != nil {
				return nil, hostapi.Errorf(hostapi.CodeMalformed, "%s: the caller that is announced: %v", l.Socket, err)
			}
		case proxyproto.PP2_TYPE_AUTHORITY:
			c.caller.Name = string(v.Value)
		}
	}
	if c.caller.ID.IsZero() || c.caller.Name == "" {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "%s: no caller is announced", l.Socket)
	}
	c.from = h.SourceAddr
	free, ok := l.callers.Acquire(c.caller.ID.String())
	if !ok {
		return nil, hostapi.Errorf(hostapi.CodeBusy, "%s has %d connections open", c.caller.ID, l.callers.Max())
	}
	c.release = func() { free(); <-l.free }
	return c, u.SetReadDeadline(time.Time{})
}

// fromForwarder returns an error unless the process at the other end runs under the forwarder's
// account.
func (l *listener) fromForwarder(u *net.UnixConn) error {
	peer, err := unixsock.Peer(u)
	if err != nil {
		return err
	}
	account, err := nss.Lookup(l.Forwarder)
	if err != nil {
		return fmt.Errorf("account of the forwarder: %w", err)
	}
	if account.Uid != strconv.FormatUint(uint64(peer.Uid), 10) {
		return hostapi.Errorf(hostapi.CodeUntrusted, "uid %d connected to %s, want the forwarder's account %s: callers use service %s",
			peer.Uid, l.Socket, l.Forwarder, l.Service)
	}
	return nil
}
