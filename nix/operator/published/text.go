package published

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
)

// PrintRevocations prints a revocation list and the hosts that do not use it yet, which Lagging
// returns. The list may be nil.
func PrintRevocations(w io.Writer, list *trust.Revocations, late map[string]string, now time.Time) error {
	if list == nil {
		_, err := fmt.Fprintln(w, "nothing has been revoked in this cluster")
		return err
	}
	fmt.Fprintf(w, "revocation list %d of %s; the next one is due on %s\n", list.Number, list.Signed.UTC().Format(time.RFC3339), list.NextUpdate.UTC().Format(time.DateOnly))
	if due := list.Reported().Overdue(now); due > 0 {
		fmt.Fprintf(w, "it is overdue by %s: florctl revoke --renew\n", due)
	}
	if len(list.Entries)+len(list.Certificates) == 0 {
		fmt.Fprintln(w, "nothing is revoked")
		return printLagging(w, late)
	}
	t := terminal.NewTable(w, "REVOKED", "ISSUED BEFORE", "SSH HOST KEYS")
	for _, e := range list.Entries {
		what, before := e.ID.Short(), "whenever"
		if e.ID.IsZero() {
			what, before = "-", "-"
		} else if e.Suspended {
			before = "suspended"
		} else if !e.ValidAfter.IsZero() {
			before = e.ValidAfter.UTC().Format(time.RFC3339)
		}
		t.Row(what, before, strings.Join(e.EnrolKeyFingerprints, " "))
	}
	for _, c := range list.Certificates {
		t.Row("certificate "+c.Serial, "whenever", "")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printLagging(w, late)
}

// printLagging prints the hosts that Lagging returned.
func printLagging(w io.Writer, late map[string]string) error {
	for _, host := range slices.Sorted(maps.Keys(late)) {
		if _, err := fmt.Fprintf(w, "not yet in force on %s: %s\n", host, terminal.Text(late[host])); err != nil {
			return err
		}
	}
	return nil
}
