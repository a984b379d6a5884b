package conns

import (
	"container/list"
	"net/netip"
	"time"
)

// room is a set of connections with a limit. The lock of the Listener guards it.
type room struct {
	limit    Limit
	open     int
	networks map[netip.Prefix]*network // networks that have an open connection
}

func newRoom(limit Limit) room { return room{limit: limit, networks: map[netip.Prefix]*network{}} }

// admit adds the connection c to the room. If the room is full, admit removes another connection
// and returns it as evicted, and the caller must close it. If no connection can be removed, ok is
// false.
func (r *room) admit(c *conn) (evicted *conn, ok bool) {
	n := r.networks[c.from]
	switch {
	case n != nil && n.open >= r.limit.Prefix:
		evicted = n.slowest()
	case r.open >= r.limit.Total:
		evicted = r.greediest()
	default:
		r.add(c)
		return nil, true
	}
	if evicted == nil {
		return nil, false
	}
	r.remove(evicted)
	r.add(c)
	return evicted, true
}

// network contains the connections in a room that come from one network. The connection to close is
// found in constant time, so that a flood of connections costs the server little.
type network struct {
	open      int
	unvouched list.List // values are *conn, ordered by last progress, oldest first
}

// slowest returns the connection that has made no progress for the longest time, among those whose
// caller is not verified. It returns nil if all callers are verified.
func (n *network) slowest() *conn {
	if e := n.unvouched.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// greediest returns the connection to close if the room is full: the slowest connection of the
// network with the most unverified connections.
func (r *room) greediest() (greediest *conn) {
	most := 1
	for _, n := range r.networks {
		c := n.slowest()
		switch unvouched := n.unvouched.Len(); {
		case unvouched > most, unvouched == most && (greediest == nil || c.since.Before(greediest.since)):
			greediest, most = c, unvouched
		}
	}
	return greediest
}

func (r *room) add(c *conn) {
	n := r.networks[c.from]
	if n == nil {
		n = &network{}
		r.networks[c.from] = n
	}
	n.open++
	r.open++
	c.in, c.since = r, time.Now()
	c.place = n.unvouched.PushBack(c)
}

func (r *room) remove(c *conn) {
	c.vouch()
	c.in = nil
	r.open--
	n := r.networks[c.from]
	if n.open--; n.open == 0 {
		delete(r.networks, c.from)
	}
}

// progress records that the connection has made progress. It moves the connection to the end of the
// queue in which its network loses connections.
func (c *conn) progress() {
	if c.place != nil {
		c.since = time.Now()
		c.in.networks[c.from].unvouched.MoveToBack(c.place)
	}
}

// vouch records that the caller of the connection is verified, so that the connection is not closed
// to make room.
func (c *conn) vouch() {
	if c.place != nil {
		c.in.networks[c.from].unvouched.Remove(c.place)
		c.place = nil
	}
}

// Prefix returns the network by which connections from a peer are counted. For IPv4, it is the
// address itself. For IPv6, it is the /64 network, because one host can use any address in this
// network. If peer is not an IP address with a port, Prefix returns an invalid prefix.
func Prefix(peer string) netip.Prefix {
	addr, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Prefix{}
	}
	ip := addr.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}
