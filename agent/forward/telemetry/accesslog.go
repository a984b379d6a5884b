package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/time/rate"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

const (
	// linesPerSecond and lineBurst limit the rate of the access log. They are a third of what the
	// journal accepts from a unit (10,000 lines in 30 s), so that the journal does not drop other
	// lines of the forwarder.
	linesPerSecond = 100
	lineBurst      = 300
	// lostPause is the minimum time between two warnings about dropped entries.
	lostPause = 10 * time.Second
	// SampledEvery is the number of connections for each entry in the access log, if the log of a
	// service is sampled.
	SampledEvery = 100
)

// Access is an entry of the access log, for a connection or UDP session that has ended.
type Access struct {
	Caller    spiffe.ID          `json:"caller"`
	Outside   string             `json:"outside,omitempty"` // name of a caller without an identity
	Service   spiffe.ID          `json:"service"`
	Port      string             `json:"port,omitempty"` // name of the port if the service has several
	From      string             `json:"from"`           // address of the caller's forwarder
	Upstream  string             `json:"upstream"`       // address of the upstream
	Protocol  document.Protocol  `json:"protocol,omitempty"`
	Transport document.Transport `json:"transport"` // transport between the forwarders
	Begun     time.Time          `json:"begun"`
	Duration  time.Duration      `json:"nanoseconds"`
	Sent      int64              `json:"sent"`     // bytes from caller to service
	Received  int64              `json:"received"` // bytes from service to caller
	End       string             `json:"end"`
	Session   string             `json:"session,omitempty"` // ID of a session over SSH, RDP or VNC
	By        string             `json:"by,omitempty"`      // operator who ended the session
}

// AccessLog is a log of the connections and UDP sessions to published services. When a connection
// has ended, it writes one line with the caller, the service, the addresses, the numbers of bytes,
// the duration and the reason for the end. It never contains forwarded data or keys.
//
// If standard error is systemd's journal, each value is a field of the journal entry, such as
// FLORETE_CALLER. Otherwise, the line is JSON. An AccessLog is safe for concurrent use.
type AccessLog struct {
	log    *slog.Logger
	limit  *rate.Limiter
	random func(n int) int
	write  func(Access) error

	mu    sync.Mutex
	lost  int       // number of entries dropped since noted
	noted time.Time // time of the last warning about dropped entries
}

// NewAccessLog returns an access log that writes to systemd's journal if standard error is
// connected to it, and otherwise to w. If it has to drop entries, it logs a warning to log.
func NewAccessLog(w io.Writer, log *slog.Logger) *AccessLog {
	l := &AccessLog{log: log, limit: rate.NewLimiter(linesPerSecond, lineBurst), random: rand.IntN}
	l.write = func(e Access) error { return json.NewEncoder(w).Encode(e) }
	if ok, err := journal.StderrIsJournalStream(); err == nil && ok {
		l.write = sendToJournal
	}
	return l
}

// Wants reports whether the next connection to a service gets an entry in the log. This depends on
// the log mode of the service. If the mode is to sample, one connection in SampledEvery gets an
// entry, chosen at random. For a nil AccessLog, Wants returns false.
func (l *AccessLog) Wants(which document.AccessLog) bool {
	if l == nil {
		return false
	}
	return which == document.AccessFull || which == document.AccessSampled && l.random(SampledEvery) == 0
}

// Write writes an entry. If entries come too fast, it drops and counts the entry instead.
func (l *AccessLog) Write(e Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.lost++
		return
	}
	if time.Since(l.noted) > lostPause {
		l.note()
	}
	if err := l.write(e); err != nil {
		l.log.Warn("access log", "error", err)
	}
}

// Close logs how many entries were dropped since the last warning.
func (l *AccessLog) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
}

// note logs the number of dropped entries. The caller holds the lock.
func (l *AccessLog) note() {
	if l.lost > 0 {
		l.log.Warn("access log: too many connections", "left out", l.lost, "a second at most", linesPerSecond)
		l.lost, l.noted = 0, time.Now()
	}
}

// sendToJournal writes an entry to the journal, in the journal's native protocol.
func sendToJournal(e Access) error {
	fields := map[string]string{
		"FLORETE_CALLER": e.Caller.String(), "FLORETE_SERVICE": e.Service.String(), "FLORETE_FROM": e.From, "FLORETE_UPSTREAM": e.Upstream,
		"FLORETE_TRANSPORT": string(e.Transport), "FLORETE_SENT": fmt.Sprint(e.Sent), "FLORETE_RECEIVED": fmt.Sprint(e.Received),
		"FLORETE_BEGUN": e.Begun.UTC().Format(time.RFC3339Nano), "FLORETE_SECONDS": fmt.Sprintf("%.6f", e.Duration.Seconds()), "FLORETE_END": e.End,
		"SYSLOG_IDENTIFIER": "flor",
	}
	if e.Outside != "" {
		fields["FLORETE_OUTSIDE"] = e.Outside
	}
	if e.Session != "" {
		fields["FLORETE_SESSION"] = e.Session
	}
	if e.By != "" {
		fields["FLORETE_BY"] = e.By
	}
	if e.Port != "" {
		fields["FLORETE_PORT"] = e.Port
	}
	if e.Protocol != document.TCP {
		fields["FLORETE_PROTOCOL"] = string(e.Protocol)
	}
	return journal.Send(accessLine(e), journal.PriInfo, fields)
}

// accessLine returns an entry as a line for people to read.
func accessLine(e Access) string {
	caller := "caller=" + e.Caller.ShortIn(e.Service.TrustDomain())
	if e.Outside != "" {
		caller += " outside=" + e.Outside
	}
	end := "end=" + e.End
	if e.Session != "" {
		end += " session=" + e.Session
	}
	if e.By != "" {
		end += " by=" + e.By
	}
	return strings.Join([]string{
		"access", caller, "service=" + strings.TrimSuffix(e.Service.Short()+":"+e.Port, ":"), "from=" + e.From,
		fmt.Sprintf("sent=%d received=%d duration=%s", e.Sent, e.Received, e.Duration.Round(time.Microsecond)),
		"transport=" + string(e.Transport), end,
	}, " ")
}
