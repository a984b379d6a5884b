// Package fleet shows the state of hosts. It compares the report of each host with the flake that
// the host should run.
package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/join"
)

// ErrAttention is the error of a command that has already printed the problems of hosts. It only
// sets the exit status, so that scripts notice.
var ErrAttention = errors.New("a host needs attention")

// skew is the largest difference between the clocks of a host and of florctl that is acceptable. A
// host whose clock is wrong cannot enrol, because enrolment proofs are valid for a minute.
const skew = 30 * time.Second

// late is a divisor of a certificate's lifetime. If less than 1/late of the lifetime remains, the
// host has failed to renew the certificate in time.
const late = 4

// Host is a host in the flake, with its last report.
type Host struct {
	Name string `json:"name"`

	// Received is the time at which the host's last report arrived. It is zero if there is no
	// report.
	Received unixtime.Time      `json:"received"`
	Report   *hostreport.Report `json:"report,omitempty"`

	// Notes lists the problems and pending changes of the host, the most urgent first. It is empty
	// if the host is well.
	Notes []Note `json:"notes"`
}

// Note is a message to operators about a host.
type Note struct {
	Kind string `json:"kind"` // such as "silent", "behind" or "need"
	Text string `json:"text"`
}

// Seen contains the information about hosts that came from providers, such as the hosts' reports.
// The keys of the maps are names of hosts.
type Seen struct {
	Reports map[string]hostreport.Kept    // last report
	Waiting map[string]join.Request       // join request that waits for approval
	Stopped map[string]hostreport.Problem // problem of a config provider that serves no hosts
}

// Join combines the hosts in the flake with the information about them that came from providers. It
// returns every host in the flake, sorted by name.
func Join(s compile.Snapshot, seen Seen, now time.Time) ([]Host, error) {
	all := []Host{}
	for _, name := range slices.Sorted(maps.Keys(s.Topology.Hosts)) {
		h := Host{Name: name, Notes: []Note{}}
		if p, ok := seen.Stopped[name]; ok {
			h.note("provider", "%s, and hosts cannot report to it: flor doctor there", p.Detail)
		}
		if r, ok := seen.Waiting[name]; ok {
			h.note("join", "device %s waits for approval as this host: florctl join approve %s", r.Fingerprint(), name)
		}
		if r, ok := seen.Reports[name]; ok {
			h.Received = r.Received
			report, err := r.Decode()
			if err != nil { // one host's invalid report must not hide the others
				h.note("report", "its report cannot be read: %v", err)
			} else {
				h.Report = &report
			}
		}
		if err := h.examine(s, now); err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

func (h *Host) note(kind, format string, args ...any) {
	h.Notes = append(h.Notes, Note{kind, fmt.Sprintf(format, args...)})
}

// examine adds the notes about a host.
func (h *Host) examine(s compile.Snapshot, now time.Time) error {
	if h.Received.IsZero() {
		h.note("silent", "has never reported")
	}
	if h.Report == nil {
		return nil
	}
	r := h.Report
	if d := now.Sub(h.Received.Time); d > hostreport.Overdue {
		h.note("silent", "last reported %s ago", age(d))
	}
	if d := r.Sent.Sub(h.Received.Time); !r.Sent.IsZero() && d.Abs() > skew {
		h.note("clock", "its clock is off by %s", d.Round(time.Second))
	}
	if err := h.behind(s.Documents[h.Name]); err != nil {
		return err
	}
	if r.Closure != nil {
		h.note("format", "%s", r.Closure.Message)
	}
	if r.Pending != nil {
		h.note("pending", "%s goes back at %s unless it is confirmed", r.Pending, r.Pending.Deadline.UTC().Format(time.RFC3339))
	}
	if r.Undone != nil {
		h.note("undone", "%s went back, for %s", r.Undone, r.Undone.Missing())
	}
	if w := r.Withheld; w != nil {
		h.note("withheld", "%s: see which version its config provider serves, florctl versions, and flor doctor there", w)
	}
	if late := r.Revocations.Overdue(now); late > 0 {
		h.note("revocations", "a newer revocation list than %d has been due for %s: florctl revoke --renew", r.Revocations.Number, late.Round(time.Minute))
	} else if ends := r.Revocations.Ends(now); ends > 0 {
		h.note("revocations", "a newer revocation list than %d is due in %s: florctl publish, or florctl revoke --renew", r.Revocations.Number, ends.Round(time.Minute))
	}
	for _, a := range r.Audit {
		h.note("audit", "audit log of kind %s on %s: %s", a.Kind, a.Provider, a.Fault)
	}
	if d := r.Facts.Disk; d.Total > 0 && d.Free < hostreport.DiskFull {
		h.note("disk", "its disk is full, %d KiB are free: flor doctor there", d.Free>>10)
	}
	h.needs(now)
	h.programs()
	h.capabilities(s.Topology.Hosts[h.Name].Capabilities)
	return nil
}

// behind adds a note for each document in force on the host that differs from the flake's document.
func (h *Host) behind(documents map[string]compile.Raw) error {
	for _, kind := range slices.Sorted(maps.Keys(documents)) {
		e, err := documents[kind].Head()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(h.Report.Documents, func(r document.Reported) bool { return r.Kind == kind })
		switch {
		case i < 0:
			h.note("behind", "has no %s yet", kind)
		case h.Report.Documents[i].Digest == e.Digest:
		case h.Report.Documents[i].Serial > e.Serial:
			h.note("ahead", "its %s is of serial %d, the flake's is %d", kind, h.Report.Documents[i].Serial, e.Serial)
		default:
			h.note("behind", "its %s is of serial %d, the flake's is %d", kind, h.Report.Documents[i].Serial, e.Serial)
		}
		if e.Format.Newer(h.Report.Format) {
			h.note("format", "its programs understand formats up to %s, its %s needs %s: upgrade them", h.Report.Format, kind, e.Format)
		}
	}
	return nil
}

// needs adds notes about needs and certificates. A need has a note if it was not fulfilled at the
// time of the report, or if its units were not restarted. A certificate has a note if it has
// expired since the report, or will expire soon.
func (h *Host) needs(now time.Time) {
	for _, n := range h.Report.Needs {
		ended := ""
		if n.State != hostdir.NeedFulfilled && !n.Expires.IsZero() && n.Expires.Before(now) {
			ended = ", and what it has expired at " + n.Expires.UTC().Format(time.RFC3339)
		}
		p, well := n.Problem()
		switch {
		case !well:
			h.note(p.Kind, "%s%s", p.Detail, ended)
		case !n.Expires.IsZero() && n.Expires.Before(now):
			h.note("expired", "need %s expired at %s", n.ID, n.Expires.UTC().Format(time.RFC3339))
		case !n.Expires.IsZero() && n.Expires.Sub(now) < n.Expires.Sub(n.Fulfilled.Time)/late:
			h.note("expires", "need %s expires in %s", n.ID, n.Expires.Sub(now).Round(time.Minute))
		}
	}
}

// programs adds notes about the problems of units and of the forwarder.
func (h *Host) programs() {
	for _, p := range hostreport.Problems(*h.Report) {
		if p.Kind != hostreport.OfNeed {
			h.note(p.Kind, "%s", p.Detail)
		}
	}
	if f := h.Report.Forwarder; f != nil {
		for _, x := range f.Fallbacks {
			h.note("transport", "reaches the forwarder at %s over TCP since %s: %s: flor doctor there", strings.Join(x.Forwarder, ", "), x.Since.UTC().Format(time.RFC3339), x.Reason)
		}
		// Every host reports the same ones, but only those on provider hosts need an action.
		provides := slices.ContainsFunc(h.Report.Documents, func(d document.Reported) bool { return d.Kind == document.DocPolicy })
		for _, c := range f.Ending {
			if provides {
				h.note("ending", "the %s certificate %q ends on %s: flor doctor there", c.Part, c.Name, c.Ends.UTC().Format(time.DateOnly))
			}
		}
	}
}

// ingress is the name of a capability. Only the flake declares it, because a machine cannot detect
// it.
const ingress = "ingress"

// capabilities adds notes about capabilities that the flake declares but the host does not report.
func (h *Host) capabilities(declared []string) {
	for _, c := range declared {
		if c != ingress && !slices.Contains(h.Report.Facts.Capabilities, c) {
			h.note("capability", "the flake declares capability %s, which it does not report", c)
		}
	}
}
