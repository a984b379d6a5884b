package conns

import (
	"container/list"
	"net/netip"
	"time"
)

// room is for as many connections as its limit has. A Listener's lock guards it.
type room struct {
	limit    Limit
	open     int
	networks map[netip.Prefix]*network // that have a connection open
}

func newRoom(limit Limit) room { return room{limit: limit, networks: map[netip.Prefix]*network{}} }

// admit finds a place for c, and whose it was.
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

// network is what a room has of one network. Finding the connection that makes
// room costs nothing: a flood costs the server no more than those who send it.
type network struct {
	open      int
	unvouched list.List // of *conn, the one whose last progress is the longest ago first
}

// slowest is the connection that has made no progress for the longest, nil where all are
// vouched for.
func (n *network) slowest() *conn {
	if e := n.unvouched.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// greediest is the slowest connection of the network with the most that nobody vouched for.
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

// progress makes c the last of its network to make room.
func (c *conn) progress() {
	if c.place != nil {
		c.since = time.Now()
		c.in.networks[c.from].unvouched.MoveToBack(c.place)
	}
}

// vouch makes c one that makes no room.
func (c *conn) vouch() {
	if c.place != nil {
		c.in.networks[c.from].unvouched.Remove(c.place)
		c.place = nil
	}
}

// Prefix is the network of a peer's address: IPv4's whole address, and 64 bits of IPv6, in
// which a host has as many addresses as it likes. It is invalid where there is none.
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
