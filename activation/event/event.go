// Package event defines what activation reports to its caller: events, such as a failed request,
// and the status of all needs.
package event

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
)

// Values of Event.Event.
const (
	Documents    = "documents"     // a set of documents is in force
	Kept         = "kept"          // a need is already fulfilled, so no request is sent
	Adopted      = "adopted"       // a need was fulfilled by existing files; Message contains their directory
	Fulfilled    = "fulfilled"     // a need was answered and delivered
	Bundle       = "bundle"        // an unchanged SVID was delivered with the roots of the manifest in force
	Failed       = "failed"        // an attempt failed
	Blocked      = "blocked"       // a need waits for other needs to be fulfilled
	Notified     = "notified"      // a unit was restarted, or nothing here can restart it
	NotifyFailed = "notify-failed" // a unit could not be restarted
	Stale        = "stale"         // no provider has answered about the documents for too long
	Withheld     = "withheld"      // the documents are older than the revocation list allows
	Audit        = "audit"         // a provider's audit log has a fault
	Grant        = "grant"         // an access grant was refused
	Confirm      = "confirm"       // new documents were confirmed or rolled back
	Disk         = "disk"          // the state directory cannot be read or written
	Summarized   = "summary"       // status of all needs
)

// Event is one step of activation, such as the delivery of a certificate. Events are written to the
// log and shown to people. They contain no secrets.
type Event struct {
	Time      time.Time     `json:"time"`
	Event     string        `json:"event"`
	Need      string        `json:"need,omitempty"`
	Provider  string        `json:"provider,omitempty"` // provider that received a request; empty for none
	Attempt   int           `json:"attempt,omitempty"`
	Kind      hostapi.Class `json:"kind,omitempty"`
	Code      string        `json:"code,omitempty"`
	Message   string        `json:"message,omitempty"`
	BlockedBy []string      `json:"blockedBy,omitempty"` // needs that must be fulfilled first
	Next      time.Time     `json:"next,omitzero"`       // time of the next attempt or renewal
	Needs     []Need        `json:"needs,omitempty"`     // status of all needs, in a summary
}

// Level returns the level at which the event is logged. For example, a failed attempt is a warning.
func (e Event) Level() slog.Level {
	switch e.Event {
	case Disk, Audit:
		return slog.LevelError
	case Failed, NotifyFailed, Grant:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// JSON returns the event as one line of JSON.
func (e Event) JSON() []byte {
	b := strictjson.Encode(e)
	return append(b, '\n')
}

// String returns the event as one line of text for people. Only the event that summarizes all needs
// has several lines.
func (e Event) String() string {
	switch e.Event {
	case Kept:
		if e.Provider == "" && e.Message == "" {
			return fmt.Sprintf("%s: adopted before%s", e.Need, e.in("renewal"))
		}
		return fmt.Sprintf("%s: fulfilled already by %s%s", e.Need, cmp.Or(e.Provider, e.Message), e.in("renewal"))
	case Adopted:
		return fmt.Sprintf("%s: adopted from %s", e.Need, e.Message)
	case Fulfilled:
		return fmt.Sprintf("%s: fulfilled by %s in attempt %d%s", e.Need, cmp.Or(e.Provider, e.Message), e.Attempt, e.in("renewal"))
	case Bundle:
		return fmt.Sprintf("%s: delivered with the roots of the manifest in force", e.Need)
	case Failed:
		return fmt.Sprintf("%s: attempt %d%s failed: %s%s", e.Need, e.Attempt, to(e.Provider), e.reason(), e.then())
	case Blocked:
		return fmt.Sprintf("%s: waits for %s", e.Need, strings.Join(e.BlockedBy, ", "))
	case Notified:
		return fmt.Sprintf("%s: %s", e.Need, terminal.Text(e.Message))
	case NotifyFailed:
		return fmt.Sprintf("%s: fulfilled, but units could not be notified: %s%s", e.Need, terminal.Text(e.Message), e.in("next"))
	case Disk:
		return fmt.Sprintf("%s: state: %s", e.Need, e.Message)
	case Audit:
		return fmt.Sprintf("audit: %s: %s", e.Provider, terminal.Text(e.Message))
	case Summarized:
		return Summary{Needs: e.Needs}.Table()
	}
	return e.Event + ": " + e.Message
}

func (e Event) reason() string {
	return fmt.Sprintf("%s (%s): %s", e.Kind, e.Code, terminal.Text(e.Message))
}

func (e Event) then() string {
	if e.Kind == hostapi.Invalid && e.Next.IsZero() {
		return "; no more requests until the need or the manifest changes"
	}
	return e.in("next")
}

// in returns a text that says how long it is until e.Next, or "" if e.Next is zero.
func (e Event) in(what string) string {
	if e.Next.IsZero() {
		return ""
	}
	return fmt.Sprintf("; %s in %s", what, wait(e.Next.Sub(e.Time)))
}

func to(provider string) string {
	if provider == "" {
		return ""
	}
	return " to " + provider
}

// wait formats a duration for people, rounded to two significant digits.
func wait(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < 100*time.Millisecond:
		return max(d.Round(time.Millisecond), time.Millisecond).String()
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
