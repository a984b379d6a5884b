// Package sessions describes the open sessions of people at services of a host. A session is a
// connection to a service whose protocol is SSH, RDP or VNC.
package sessions

import (
	"cmp"
	"io"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
)

// Session describes an open session. It is JSON in the status of a forwarder.
type Session struct {
	ID       string          `json:"id"` // random
	Service  spiffe.ID       `json:"service"`
	Protocol document.Remote `json:"protocol"`
	Caller   spiffe.ID       `json:"caller"`
	From     string          `json:"from"` // address of the caller's forwarder
	Begun    time.Time       `json:"begun"`
	Sent     int64           `json:"sent"`     // bytes from caller to service
	Received int64           `json:"received"` // bytes from service to caller
}

// Compare orders sessions by their beginning.
func Compare(a, b Session) int { return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.ID, b.ID)) }

// Head contains the titles of the columns in tables of sessions.
var Head = []any{"SESSION", "SERVICE", "PROTOCOL", "WHO", "FROM", "OPEN", "SENT", "RECEIVED"}

// Cells returns the cells of a session in a table.
func (s Session) Cells(now time.Time) []any {
	open := max(now.Sub(s.Begun), 0).Truncate(time.Second)
	return []any{s.ID, s.Service.Short(), s.Protocol, s.Caller.ShortIn(s.Service.TrustDomain()), s.From, open, s.Sent, s.Received}
}

// Print writes sessions as a table for people.
func Print(w io.Writer, all []Session, now time.Time) error {
	t := terminal.NewTable(w, Head...)
	for _, s := range all {
		t.Row(s.Cells(now)...)
	}
	return t.Flush()
}
