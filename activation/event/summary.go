package event

import (
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
)

// Summary is how the needs of a host stand, in the manifest's order.
type Summary struct {
	Needs []Need `json:"needs"`
	// Stale is how long no provider has answered about the documents, when that is too long.
	Stale time.Duration `json:"-"`
}

// Need is the standing of one need.
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

// Waits reports whether activation itself will still change the need.
func (n Need) Waits() bool { return !n.State.Well(n.Error) && !n.State.Lasting() }

// reason is why the need is not fulfilled.
func (n Need) reason() string {
	if n.Error == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s): %s", n.Error.Kind, n.Error.Code, terminal.Text(n.Error.Message))
}

// Exit codes of flor activate.
const (
	ExitFulfilled = 0
	ExitUsage     = 1
	ExitRefused   = 2 // something is denied or invalid
	ExitWaiting   = 3
)

// Exit is the exit code for how the needs stand.
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

// Line is the summary for a unit's status: what is not fulfilled, from whom, why
// and when it is tried next.
func (s Summary) Line() string {
	var open []string
	if s.Stale > 0 {
		open = append(open, StaleText(s.Stale))
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

// Table is the summary for people.
func (s Summary) Table() string {
	var b strings.Builder
	b.WriteString("summary: " + s.count() + "\n")
	t := terminal.NewTable(&b, "  NEED", "STATE", "ATTEMPTS", "PROVIDER", "REASON")
	for _, n := range s.Needs {
		t.Row("  "+n.ID, n.State, n.Attempts, n.Provider, n.reason())
	}
	_ = t.Flush() // a buffer takes all
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// Event is the summary as an event.
func (s Summary) Event() Event { return Event{Event: Summarized, Needs: s.Needs} }

// StaleText is the alarm. What was decided meanwhile, of access above all, does not hold here.
func StaleText(d time.Duration) string {
	return fmt.Sprintf("no provider has answered about this host's documents for %s: they may be outdated", wait(d))
}
