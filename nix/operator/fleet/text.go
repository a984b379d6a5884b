package fleet

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

// maxNotes is the maximum number of notes for each host in the table.
const maxNotes = 3

// Text writes a table of the hosts to w. Below the line of each host are the notes about it. Text
// makes control characters in the reports of hosts harmless for terminals.
func Text(w io.Writer, hosts []Host, now time.Time) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tSEEN\tRELEASE\tSERIAL\tNEEDS\tENDS\tCONNECTIONS\tSYSTEM")
	for _, h := range hosts {
		fmt.Fprintln(t, strings.Join(h.cells(now), "\t"))
	}
	t.Flush()
	lines := strings.Split(table.String(), "\n")
	b := &strings.Builder{}
	fmt.Fprintln(b, lines[0])
	well := 0
	for i, h := range hosts {
		fmt.Fprintln(b, strings.TrimRight(lines[i+1], " "))
		if len(h.Notes) == 0 {
			well++
		}
		for _, n := range h.Notes[:min(len(h.Notes), maxNotes)] {
			fmt.Fprintf(b, "  ! %s\n", terminal.Text(n.Text))
		}
		if more := len(h.Notes) - maxNotes; more > 0 {
			fmt.Fprintf(b, "  and %d more: --json has them\n", more)
		}
	}
	fmt.Fprintf(b, "%d of %d hosts are well\n", well, len(hosts))
	_, err := io.WriteString(w, b.String())
	return err
}

// cells returns the cells of a host's line.
func (h Host) cells(now time.Time) []string {
	if h.Report == nil {
		seen := "never"
		if !h.Received.IsZero() {
			seen = age(now.Sub(h.Received.Time))
		}
		return []string{h.Name, seen, "", "", "", "", "", ""}
	}
	r := h.Report
	serial, ends, connections := "-", "-", "-"
	for _, d := range r.Documents {
		if d.Kind == document.DocManifest {
			serial = fmt.Sprint(d.Serial)
		}
	}
	fulfilled := 0
	var first time.Time
	for _, n := range r.Needs {
		if n.State == hostdir.NeedFulfilled {
			fulfilled++
		}
		if end := n.Expires.Time; !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	if !first.IsZero() {
		ends = age(first.Sub(now))
	}
	if r.Forwarder != nil {
		connections = fmt.Sprint(r.Forwarder.Connections)
	}
	system := r.Facts.System
	if r.Facts.DeviceKey == hostdir.InTPM {
		system += ", key in TPM"
	}
	return []string{
		h.Name, age(now.Sub(h.Received.Time)), terminal.Text(r.Release), serial,
		fmt.Sprintf("%d/%d", fulfilled, len(r.Needs)), ends, connections, terminal.Text(system),
	}
}

// age formats a duration in the largest unit that fits, such as days.
func age(d time.Duration) string {
	sign := ""
	if d = d.Truncate(time.Second); d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%s%ds", sign, int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%s%dm", sign, int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%dh", sign, int(d.Hours()))
	}
	return fmt.Sprintf("%s%dd", sign, int(d.Hours())/24)
}
