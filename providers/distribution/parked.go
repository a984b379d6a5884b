package distribution

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/providers/server"
)

// parking holds the connections of waiting nodes, so that net/http does not have to hold them.
// net/http would need two goroutines and buffers for each connection, and most of a provider's
// memory is used for idle hosts. When a node has its answer, its next request arrives on the same
// connection.
type parking struct {
	back chan net.Conn // connections of answered nodes

	mu    sync.Mutex
	all   map[*parked]struct{}
	round int           // number of calls of wake
	over  chan struct{} // closed when no node waits any more
	empty sync.WaitGroup
}

func newParking() *parking {
	return &parking{back: make(chan net.Conn), all: map[*parked]struct{}{}, over: make(chan struct{})}
}

// parked is the connection of a waiting node.
type parked struct {
	*watching
	conn  net.Conn
	until time.Time
	round int // round of the parking in which the node was told to wait
}

// past is a read deadline in the past. It ends a Read at once.
var past = time.Unix(1, 0)

// wake makes the distribution decide again about each node that waits.
func (p *parking) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	for w := range p.all {
		_ = w.conn.SetReadDeadline(past)
	}
}

// endAfter answers all waiting nodes when ctx ends. It returns when all nodes have an answer, or
// after a limited time.
func (p *parking) endAfter(ctx context.Context) {
	<-ctx.Done()
	close(p.over)
	p.wake()
	answered := make(chan struct{})
	go func() { defer close(answered); p.empty.Wait() }()
	select {
	case <-answered:
	case <-time.After(watchAnswer):
	}
}

// state returns the number of calls of wake so far. It also reports whether the parking has ended.
func (p *parking) state() (round int, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.over:
		return p.round, true
	default:
		return p.round, false
	}
}

// park takes a node's connection over from net/http. The argument round is the round in which a
// handler decided that the node waits.
func (p *parking) park(w *watching, rw http.ResponseWriter, round int) {
	conn, buffered, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		w.done()
		server.Reply(rw, nil, err)
		return
	}
	if buffered.Reader.Buffered() > 0 { // a node sends nothing before it has its answer
		w.done()
		conn.Close()
		return
	}
	waits := &parked{watching: w, conn: conn, until: time.Now().Add(w.lasts), round: round}
	p.mu.Lock()
	p.all[waits] = struct{}{}
	p.empty.Add(1)
	p.mu.Unlock()
	conns.EndTurn(w.ctx)
	go p.wait(waits)
}

// wait waits until a decision about a node is due, or until the node closes its connection. Each
// wait uses a new goroutine, because a decision makes the goroutine's stack large.
func (p *parking) wait(w *parked) {
	_ = w.conn.SetReadDeadline(w.until)
	if round, ended := p.state(); round == w.round && !ended {
		// From here on, a call of wake sets the deadline after this function has set it.
		if err := conns.WaitReadable(w.conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			p.leave(w)
			w.conn.Close()
			return
		}
	}
	go p.decide(w)
}

// decide answers a waiting node if new documents are there. Otherwise it lets the node wait again.
func (p *parking) decide(w *parked) {
	round, ended := p.state()
	answer := w.look(ended || !time.Now().Before(w.until))
	if answer == nil {
		w.round = round
		go p.wait(w)
		return
	}
	p.leave(w)
	written := response{header: http.Header{}}
	if ended {
		written.header.Set("Connection", "close")
	}
	answer(&written)
	_ = w.conn.SetWriteDeadline(time.Now().Add(watchAnswer))
	if written.send(w.conn) != nil || ended || w.conn.SetDeadline(time.Time{}) != nil {
		w.conn.Close()
		return
	}
	select {
	case p.back <- w.conn:
	case <-p.over:
		w.conn.Close()
	}
}

func (p *parking) leave(w *parked) {
	w.done()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, w)
	p.empty.Done()
}

// listener returns a listener that accepts two types of connections: new connections from l, and
// connections of nodes that have their answer.
func (p *parking) listener(l net.Listener) net.Listener {
	r := &returning{Listener: l, back: p.back, come: make(chan incoming), closed: make(chan struct{})}
	go r.run()
	return r
}

type returning struct {
	net.Listener
	back   chan net.Conn
	come   chan incoming
	once   sync.Once
	closed chan struct{}
}

type incoming struct {
	conn net.Conn
	err  error
}

func (r *returning) run() {
	for {
		c, err := r.Listener.Accept()
		select {
		case r.come <- incoming{c, err}:
		case <-r.closed:
			if err == nil {
				c.Close()
			}
			return
		}
	}
}

func (r *returning) Accept() (net.Conn, error) {
	select {
	case c := <-r.back:
		return c, nil
	case i := <-r.come:
		return i.conn, i.err
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *returning) Close() error {
	r.once.Do(func() { close(r.closed) })
	return r.Listener.Close()
}

// response writes an HTTP/1.1 response on a connection that net/http no longer serves.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *response) send(c net.Conn) error {
	r.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if r.status != http.StatusNotModified {
		r.header.Set("Content-Length", strconv.Itoa(r.body.Len()))
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 " + strconv.Itoa(r.status) + " " + http.StatusText(r.status) + "\r\n")
	_ = r.header.Write(&b)
	b.WriteString("\r\n")
	b.Write(r.body.Bytes())
	_, err := c.Write(b.Bytes())
	return err
}
