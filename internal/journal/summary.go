package journal

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

const (
	// Interval is how often what was counted is written.
	Interval = time.Minute
	// maxStrangers bounds how many have lines of their own in an interval; those beyond are
	// summed up together.
	maxStrangers = 256
	// maxKnown is far more than the documents of a host name.
	maxKnown = 1 << 16
)

// Source makes events alike.
type Source struct {
	Reason string
	Who    string // an identity or account that the documents name, or an address
	Known  bool   // it is no stranger
}

// Summary writes one line for many like events: the first at once, and then, at the end of each
// interval, how many more there were. Strangers cannot push the lines about known parties out of a
// log that takes so many a second and no more. One part of a program has it, and closes it.
type Summary struct {
	log      *slog.Logger
	interval time.Duration

	mu        sync.Mutex
	events    map[Source]*event
	strangers int
	timer     *time.Timer // nil while there are no events
}

// event is the latest of its kind.
type event struct {
	more  int // since the last line
	msg   string
	attrs []any
}

// NewSummary writes to log, every interval.
func NewSummary(log *slog.Logger, interval time.Duration) *Summary {
	return &Summary{log: log, interval: interval, events: map[Source]*event{}}
}

// Warn writes or counts an event. The line of many has the attributes of the latest.
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

// write ends an interval.
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

// Close writes what was counted.
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

// Address is whom a stranger's address stands for: one of IPv6 is one of 2^64 that it has.
func Address(a netip.AddrPort) string {
	ip := a.Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
