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

// doubtful measures all connections and returns those that newly appear broken, which TCP may have
// to replace. It also makes silent connections migrate. The argument asleep is the time for which
// this host was suspended or busy; no answer was due in that time.
func (p *Pool) doubtful(now time.Time, asleep time.Duration) (found []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		l, ok := c.link.(*quicLink)
		if !ok {
			c.loseRelay(now)
			continue
		}
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
		switch {
		case c.doubt == sure || was != sure || c.endpoint.current != c:
		case c.endpoint.punched != nil:
			c.losePunched(now)
		case c.route.Transport == document.AnyTransport:
			found = append(found, c)
		}
	}
	return found
}

// loseRelay gives up a connection through a silent relay if there is another path to the target.
// Streams that wait for an answer then use the other path. The caller holds the lock of the pool.
func (c *conn) loseRelay(now time.Time) {
	if o := c.outer; o == nil || o.doubt != silent || now.Sub(o.measured.at) < silence || c.route.paths() == 1 {
		return
	}
	c.lose()
	if c.endpoint.current == c {
		c.endpoint.current = nil
		c.retire()
		c.endpoint.fail(now)
	}
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
