package event

import (
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// Summary says how far a host is with its needs, the files that it must fetch from providers. It
// contains the status of each need, in the order of the manifest.
type Summary struct {
	Needs []Need `json:"needs"`
	// Stale is the time since a provider last answered a request for documents, if that time is so
	// long that an alarm is raised. Otherwise it is zero.
	Stale time.Duration `json:"-"`
	// Withheld is a document in force that is older than the revocation list allows, or nil.
	Withheld *trust.Withheld `json:"-"`
}

// Need is the status of one need.
type Need struct {
	ID       string             `json:"id"`
	Kind     string             `json:"kind"`
	State    hostdir.NeedStatus `json:"state"`
	Attempts int                `json:"attempts"`
	Total    int                `json:"total"`
	Provider string             `json:"provider,omitempty"`
	Error    *hostdir.NeedError `json:"error,omitempty"`
	Next     unixtime.Time      `json:"next"`
}

// Waits reports whether activation is still working on the need, so that the need may be fulfilled
// without any action of an operator.
func (n Need) Waits() bool { return !n.State.Well(n.Error) && !n.State.Lasting() }

// reason returns a text that says why the need is not fulfilled.
func (n Need) reason() string {
	if n.Error == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s): %s", n.Error.Kind, n.Error.Code, terminal.Text(n.Error.Message))
}

// Exit codes of flor activate, which depend on the status of the needs.
const (
	ExitFulfilled = 0
	ExitUsage     = 1
	ExitRefused   = 2 // a need was denied or is invalid
	ExitWaiting   = 3
)

// Exit returns the exit code of flor activate: ExitRefused if any need was denied or is invalid,
// ExitWaiting if activation is still working on a need, and otherwise ExitFulfilled.
func (s Summary) Exit() int {
	code := ExitFulfilled
	for _, n := range s.Needs {
		if n.State.Lasting() {
			return ExitRefused
		}
		if n.Waits() {
			code = ExitWaiting
		}
	}
	return code
}

// Line returns the summary as one line, for the status of the systemd unit. It contains the number
// of fulfilled needs and the alarms. For each need that is not fulfilled, it adds the provider, the
// reason and the time of the next attempt.
func (s Summary) Line() string {
	var open []string
	if s.Stale > 0 {
		open = append(open, StaleText(s.Stale))
	}
	if s.Withheld != nil {
		open = append(open, "withheld: "+s.Withheld.String())
	}
	for _, n := range s.Needs {
		if n.State.Well(n.Error) {
			continue
		}
		text := fmt.Sprintf("%s %s", n.ID, n.State)
		if n.Provider != "" {
			text += " (" + n.Provider + ")"
		}
		if n.Error != nil {
			text += ": " + n.reason()
		}
		if !n.Next.IsZero() && n.State != hostdir.NeedFulfilled {
			text += ", next " + n.Next.UTC().Format(time.TimeOnly) + "Z"
		}
		open = append(open, text)
	}
	return strings.Join(append([]string{s.count()}, open...), "; ")
}

func (s Summary) count() string {
	fulfilled := 0
	for _, n := range s.Needs {
		if n.State == hostdir.NeedFulfilled {
			fulfilled++
		}
	}
	return fmt.Sprintf("%d/%d needs fulfilled", fulfilled, len(s.Needs))
}

// Table returns the summary as a text table for people, with one row for each need and no newline
// at the end.
func (s Summary) Table() string {
	var b strings.Builder
	b.WriteString("summary: " + s.count() + "\n")
	t := terminal.NewTable(&b, "  NEED", "STATE", "ATTEMPTS", "PROVIDER", "REASON")
	for _, n := range s.Needs {
		t.Row("  "+n.ID, n.State, n.Attempts, n.Provider, n.reason())
	}
	_ = t.Flush() // writing to a buffer cannot fail
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// Event returns an event that reports the summary.
func (s Summary) Event() Event { return Event{Event: Summarized, Needs: s.Needs} }

// StaleText returns the text of the alarm that no provider has answered a host's requests for
// documents for the duration d.
func StaleText(d time.Duration) string {
	return fmt.Sprintf("no provider has answered about this host's documents for %s: they may be outdated", wait(d))
}
