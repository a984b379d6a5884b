package transport

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/document"
)

// Parameters for measuring connections over QUIC, which TCP may replace.
const (
	watchPeriod = 100 * time.Millisecond
	// slack is the additional time that an answer may take. It allows for a busy host, which is not
	// a network fault.
	slack = 200 * time.Millisecond
	// A path counts as broken if it loses too many packets in lossRows consecutive periods of
	// lossPeriod. In each period, at least lossPackets packets must have been sent, and at least
	// one in lossShare must have been lost.
	lossPeriod  = time.Second
	lossPackets = 50
	lossShare   = 4
	lossRows    = 2
)

// doubt is the reason why a connection over QUIC may have to be replaced by TCP.
type doubt int

const (
	sure   doubt = iota
	silent       // nothing is received, although an answer is due
	lossy        // too many packets are lost
)

// measured holds the last measurements of a connection over QUIC.
type measured struct {
	packets    uint64 // packets received
	at         time.Time
	sent, lost uint64 // counters at the beginning of the period
	began      time.Time
	rows       int // consecutive periods with too much loss
	reason     string
}

// watch measures all connections regularly, and tries TCP for those over which UDP no longer
// passes. It also retires superseded connections.
func (p *Pool) watch() {
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	var renewed time.Time
	for last := time.Now(); ; {
		select {
		case <-ticker.C:
			now := time.Now()
			asleep := now.Sub(last) - watchPeriod
			last = now
			for _, c := range p.doubtful(now, asleep) {
				p.replace(c)
			}
			if now.Sub(renewed) > renewPeriod {
				renewed = now
				p.retireSuperseded(now)
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// doubtful measures all connections. It makes streams leave broken paths and makes silent
// connections migrate. It returns the connections that newly appear broken and that TCP may
// replace. The argument asleep is the time for which this host was suspended or busy, because no
// answer was due in that time.
func (p *Pool) doubtful(now time.Time, asleep time.Duration) (found []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		was := c.doubt
		if l, ok := c.link.(*quicLink); ok {
			p.judge(c, l, now, asleep)
		}
		if c.leaveBroken(now) {
			continue
		}
		if c.doubt != sure && was == sure && c.endpoint.current == c && c.route.Transport == document.AnyTransport {
			found = append(found, c)
		}
	}
	return found
}

// judge measures a connection over QUIC. If it is silent, judge makes it migrate. The caller holds
// the lock of the pool.
func (p *Pool) judge(c *conn, l *quicLink, now time.Time, asleep time.Duration) {
	if asleep > watchPeriod {
		c.measured.at = c.measured.at.Add(asleep)
		l.checks.began = l.checks.began.Add(asleep)
	}
	was := c.doubt
	c.doubt = c.measure(l, now)
	switch {
	case c.doubt == silent && was != silent && l.checks.overdue(now) == 0:
		// A check makes a restarted peer send a reset, because its packets are large enough.
		// Migration can wait until the next measurement.
		l.check(now)
	case c.doubt == silent:
		if now.Sub(l.paths.begun) > migratePause {
			l.paths.begun = now
			p.migrate(l)
		}
	case c.busy():
		p.prepare(l, now)
	}
	if c.doubt == silent {
		p.findTarget(c)
	}
}

// leaveBroken makes streams leave the path of a connection if the path is broken and the route has
// another path. It returns true if streams leave the path, now or since an earlier call. It does
// nothing for a path to an address of the route: TCP may replace such a path, see install. The
// caller holds the lock of the pool.
func (c *conn) leaveBroken(now time.Time) bool {
	switch {
	case c.lost.Err() != nil:
		return true
	case !c.broken(now):
		return false
	case c.endpoint.punched == nil && (c.endpoint.via == nil || c.route.paths() == 1):
		return false
	}
	if c.endpoint.current == c {
		c.endpoint.fail(now)
	}
	c.abandon()
	return true
}

// broken reports whether nothing passes on the path of a connection, or too little. A path through
// relays is broken if the relay is silent. This takes longer than for a direct path, because the
// connection to the relay may migrate or change to TCP first.
func (c *conn) broken(now time.Time) bool {
	if c.outer != nil {
		return c.outer.doubt == silent && now.Sub(c.outer.measured.at) >= silence
	}
	return c.doubt != sure
}

// abandon makes new streams use another path, and also the streams that wait for an answer. Other
// streams stay, because the path may recover. The caller holds the lock of the pool.
func (c *conn) abandon() {
	c.lose()
	if c.endpoint.current == c {
		c.endpoint.current = nil
	}
	c.retire()
}

// measure judges a connection by its counters. It expects a packet each second, because the peer
// acknowledges a keep-alive packet (keepAlive).
func (c *conn) measure(l *quicLink, now time.Time) doubt {
	m := &c.measured
	s := l.ConnectionStats()
	if l.paths.migrated.Swap(false) {
		l.paths.probed = time.Time{}
	}
	if c.busy() {
		l.checkMoved(s, now)
	}
	if m.at.IsZero() || s.PacketsReceived != m.packets {
		m.packets, m.at = s.PacketsReceived, now
	}
	if m.began.IsZero() {
		m.began, m.sent, m.lost = now, s.PacketsSent, s.PacketsLost
	}
	if now.Sub(m.began) >= lossPeriod {
		sent, lost := s.PacketsSent-m.sent, max(s.PacketsLost, m.lost)-m.lost
		m.began, m.sent, m.lost = now, s.PacketsSent, s.PacketsLost
		if m.rows++; sent < lossPackets || lost < sent/lossShare {
			m.rows = 0
		} else {
			m.reason = fmt.Sprintf("%d of %d packets over UDP were lost", lost, sent)
		}
	}
	due := max(keepAlive, 3*(s.SmoothedRTT+4*s.MeanDeviation)/2) + 2*s.SmoothedRTT + slack
	unanswered := l.checks.overdue(now)
	switch {
	case now.Sub(m.at) > due:
		m.reason = fmt.Sprintf("nothing came over UDP for %s", now.Sub(m.at).Round(100*time.Millisecond))
		return silent
	case unanswered > checkDue+3*max(s.SmoothedRTT, s.LatestRTT)+4*s.MeanDeviation+slack:
		m.reason = fmt.Sprintf("packets over UDP, or the answers to them, were lost for %s", unanswered.Round(100*time.Millisecond))
		return silent
	case m.rows >= lossRows:
		return lossy
	}
	return sure
}

// replace makes another connection to the endpoint of a connection that appears broken.
func (p *Pool) replace(c *conn) {
	svid := p.identities().SVID(c.route.Caller)
	if svid == nil || !p.begin() {
		return
	}
	go func() {
		defer p.busy.Done()
		<-p.dial(c.route, svid, c.endpoint)
	}()
}
