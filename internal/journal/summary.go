package journal

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

const (
	// Interval is the interval at which most Summaries log.
	Interval = time.Minute
	// maxStrangers bounds the number of unknown sources that have lines of their own in an
	// interval. Further ones are counted together.
	maxStrangers = 256
	// maxKnown is far above the number of identities and accounts in a host's documents.
	maxKnown = 1 << 16
)

// Source identifies similar events, which a Summary counts together.
type Source struct {
	Reason string
	Who    string // an identity or account that the documents name, or an address
	Known  bool   // the documents name Who
}

// Summary logs many similar events in few lines. It logs the first event at once, and the number of
// further events at the end of each interval. Lines about unknown sources cannot displace lines
// about known sources from a log that is limited by rate. A Summary must be closed.
type Summary struct {
	log      *slog.Logger
	interval time.Duration

	mu        sync.Mutex
	events    map[Source]*event
	strangers int
	timer     *time.Timer // nil while there are no events
}

// event is the latest event of a source.
type event struct {
	more  int // since the last line
	msg   string
	attrs []any
}

// NewSummary returns a Summary that writes to log at every interval.
func NewSummary(log *slog.Logger, interval time.Duration) *Summary {
	return &Summary{log: log, interval: interval, events: map[Source]*event{}}
}

// Warn logs an event, or counts it for the line at the end of the interval. The line for several
// events has the attributes of the latest event.
func (l *Summary) Warn(k Source, msg string, attrs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[k]
	if e == nil && l.crowded(k) {
		k.Who = ""
		e = l.events[k]
	}
	if e != nil {
		e.more++
		e.msg, e.attrs = msg, attrs
		return
	}
	l.events[k] = &event{}
	if !k.Known {
		l.strangers++
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.interval, l.write)
	}
	l.log.Warn(msg, attrs...)
}

func (l *Summary) crowded(k Source) bool {
	if k.Known {
		return len(l.events)-l.strangers >= maxKnown
	}
	return l.strangers >= maxStrangers
}

// write logs the counts at the end of an interval.
func (l *Summary) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.events {
		if e.more > 0 {
			l.log.Warn(e.msg, append(e.attrs, "more", e.more, "from", from(k), "within", l.interval)...)
			e.more = 0
			continue
		}
		delete(l.events, k)
		if !k.Known {
			l.strangers--
		}
	}
	if len(l.events) == 0 {
		l.timer = nil
		return
	}
	l.timer = time.AfterFunc(l.interval, l.write)
}

func from(k Source) string {
	if k.Who == "" {
		return "others"
	}
	return k.Who
}

// Close logs the counts that are not logged yet.
func (l *Summary) Close() {
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Address returns the name under which a Summary counts events from an unknown address. It is the
// address for IPv4, and the /64 network for IPv6, because one host can use any address in that
// network.
func Address(a netip.AddrPort) string {
	ip := a.Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
