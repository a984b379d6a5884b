package sim

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// network is the simulated network between hosts and providers. It is in memory.
type network struct {
	f *Fleet

	mu        sync.Mutex
	link      Link
	listeners map[string]*listener // listeners by their address
	wires     map[*wire]bool
	apart     map[[2]string]bool   // pairs of a host and a provider that cannot reach each other
	dials     map[string]int       // number of connection attempts by host
	dialled   map[string]time.Time // time of dialling by the simulated address of the host
	perSecond map[int64]int        // number of connection attempts by Unix second
}

func newNetwork(f *Fleet, l Link) *network {
	return &network{
		f: f, link: l, listeners: map[string]*listener{}, wires: map[*wire]bool{}, apart: map[[2]string]bool{},
		dials: map[string]int{}, dialled: map[string]time.Time{}, perSecond: map[int64]int{},
	}
}

// dial connects a life of a host to a provider. It fails as TCP does. If nobody listens, the
// connection is refused. If the network is parted, there is no answer.
func (n *network) dial(ctx context.Context, host string, l *life, address string) (net.Conn, error) {
	if err := l.moment("dial"); err != nil {
		return nil, err
	}
	provider, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	w := n.newWire(host, provider)
	select {
	case <-time.After(2 * w.latency):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	parted, at := n.apart[[2]string{host, provider}], n.listeners[address]
	if !parted && at != nil {
		w.ends[1].life = at.life
		n.wires[w] = true
	}
	n.mu.Unlock()
	w.ends[0].life = l
	switch {
	case parted:
		<-ctx.Done()
		return nil, ctx.Err()
	case at == nil || !at.offer(w.ends[1]):
		return nil, &net.OpError{Op: "dial", Net: "sim", Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	return w.ends[0], nil
}

// newWire returns the next connection of a host. The seed determines the faults of the connection.
func (n *network) newWire(host, provider string) *wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials[host]++
	n.perSecond[time.Now().Unix()]++
	here, there := addr(fmt.Sprintf("%s#%d", host, n.dials[host])), addr(provider)
	n.dialled[string(here)] = time.Now()
	w := &wire{fate: n.link.fate(n.f.rand("wire", here)), host: host, provider: provider}
	a, b := newPipe(), newPipe()
	w.ends = [2]*conn{
		{wire: w, in: a, out: b, local: here, remote: there},
		{wire: w, in: b, out: a, local: there, remote: here},
	}
	return w
}

// cut resets every connection of a host or provider, as happens when its process dies.
func (n *network) cut(name string) {
	for _, w := range n.of(func(w *wire) bool { return w.host == name || w.provider == name }) {
		w.reset()
	}
}

// of removes connections from the network and returns them, so that a fault can end them. The
// function passed as which selects the connections.
func (n *network) of(which func(*wire) bool) []*wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := slices.DeleteFunc(slices.Collect(maps.Keys(n.wires)), func(w *wire) bool { return !which(w) })
	for _, w := range found {
		delete(n.wires, w)
	}
	return found
}

// part makes a host and a provider unreachable for each other, or reachable again.
func (n *network) part(host, provider string, apart bool) {
	n.mu.Lock()
	n.apart[[2]string{host, provider}] = apart
	n.mu.Unlock()
	if apart {
		for _, w := range n.of(func(w *wire) bool { return w.host == host && w.provider == provider }) {
			w.stalls()
		}
	}
}

// calm ends all faults of the network. Parted hosts and providers can reach each other again.
func (n *network) calm() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link.Cuts, n.link.Stalls = 0, 0
	clear(n.apart)
}

// count returns the number of connection attempts of a host. If no host is named, it returns the
// number for all hosts.
func (n *network) count(host string) (all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for h, dials := range n.dials {
		if host == "" || h == host {
			all += dials
		}
	}
	return all
}

// listener accepts connections for one life of a provider.
type listener struct {
	n     *network
	at    string // address of the listener
	life  *life
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (n *network) listen(address string, l *life) *listener {
	at := &listener{n: n, at: address, life: l, conns: make(chan net.Conn, 4096), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = at
	return at
}

func (l *listener) offer(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	default:
		return false
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and resets connections that have not been accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		if l.n.listeners[l.at] == l {
			delete(l.n.listeners, l.at)
		}
		l.n.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.conns:
				c.(*conn).reset()
				continue
			default:
			}
			return
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.at) }

// when returns the time at which the connection with a host's simulated address was dialled.
func (n *network) when(from string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialled[from]
}

// Peak returns the highest number of connection attempts in any one second between two times.
func (f *Fleet) Peak(from, until time.Time) (most int) {
	f.net.mu.Lock()
	defer f.net.mu.Unlock()
	for second, n := range f.net.perSecond {
		if second > from.Unix() && second <= until.Unix() {
			most = max(most, n)
		}
	}
	return most
}
