package journal

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

const (
	// Interval is the usual interval at which a Summary logs.
	Interval = time.Minute
	// maxStrangers is the maximum number of unknown sources with their own lines in one interval.
	// Further sources are counted together.
	maxStrangers = 256
	// maxKnown is the maximum number of known sources. It is far above the number of identities and
	// accounts in a host's documents.
	maxKnown = 1 << 16
)

// Source identifies the events that a Summary counts together.
type Source struct {
	Reason string
	Who    string // an identity or account that the documents name, or an address
	Known  bool   // true if the documents name Who
}

// Summary writes few log lines about many similar events. It logs the first event of a source at
// once. At the end of each interval, it logs the number of further events. Events of unknown
// sources cannot crowd out those of known ones. The caller must close a Summary.
type Summary struct {
	log      *slog.Logger
	interval time.Duration

	mu        sync.Mutex
	events    map[Source]*event
	strangers int
	timer     *time.Timer // nil while there are no events
}

// event is the latest event of a source, with the number of events that are not logged yet.
type event struct {
	more  int // number of events since the last line
	msg   string
	attrs []any
}

// NewSummary returns a Summary that logs to log, with the given interval.
func NewSummary(log *slog.Logger, interval time.Duration) *Summary {
	return &Summary{log: log, interval: interval, events: map[Source]*event{}}
}

// Warn logs an event of a source as a warning. If an event of the same source was logged recently,
// Warn only counts the event. The line at the end of the interval contains the count and the
// attributes of the latest event.
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

// write logs the events that were counted in an interval.
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

// Close logs the events that were counted and not logged yet.
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

// Address returns the name under which a Summary counts events from an unknown IP address. This is
// an IPv4 address itself, or the /64 network of an IPv6 address, because one host can use every
// address of its network.
func Address(a netip.AddrPort) string {
	ip := a.Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
