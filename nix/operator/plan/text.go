package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
)

// The colours on a terminal are green for additions, red for removals and yellow for changes.
// Changes that permit more access stand out.
const (
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1;33m"
	plain  = "\x1b[0m"
)

// Text writes the plan to w as text for people. Hosts with the same changes share one paragraph. If
// colour is true, the text contains the escape sequences of terminals for colours.
func (p Plan) Text(w io.Writer, colour bool) error {
	if p.Empty() && len(p.Stays) == 0 {
		_, err := fmt.Fprintf(w, "cluster %s: nothing changes on any of %d hosts\n", p.Cluster, p.Unchanged)
		return err
	}
	t := &page{colour: colour}
	var order []string
	alike := map[string][]Host{}
	for _, h := range p.Hosts {
		key := h.Change + "\n" + (&page{colour: colour}).changes(h)
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], h)
	}
	for _, key := range order {
		same := alike[key]
		var names []string
		for _, h := range same {
			names = append(names, h.Name)
		}
		mark := map[string]string{"added": "+", "removed": "-", "changed": "~"}[same[0].Change]
		_, lines, _ := strings.Cut(key, "\n")
		noun := "host "
		if len(names) > 1 {
			noun = "hosts "
		}
		t.line("", mark, noun+some(names, 4))
		t.b.WriteString(lines)
	}
	if len(p.Inputs) > 0 {
		t.section("Inputs of the flake")
		for _, i := range p.Inputs {
			t.line("  ", i.mark(), i.prose())
		}
	}
	if len(p.Facts) > 0 {
		t.section("Facts: configurations of other hosts may read them, and the plan does not see which do")
		for _, f := range p.Facts {
			t.line("  ", "!", f.prose())
		}
	}
	if len(p.Losses) > 0 {
		t.section("Lost")
		for _, l := range p.Losses {
			t.line("  ", "!", l.What+" "+l.Then)
		}
	}
	if len(p.Notes) > 0 {
		t.section("Before you publish")
		for _, n := range p.Notes {
			t.line("  ", "!", n.Place+": "+n.Text)
		}
	}
	if len(p.Placement)+len(p.Stays) > 0 {
		t.section("Placement")
		for _, m := range p.Placement {
			t.line("  ", "~", m.prose())
		}
		for _, s := range p.Stays {
			t.line("  ", "!", fmt.Sprintf("%s: %s does not move: %s", s.Drain, s.What, s.Remedy))
		}
	}
	if len(p.Opened)+len(p.Closed) > 0 {
		t.section("Access")
		for _, s := range sentences(p.essential(p.Closed), "may no longer") {
			t.line("  ", "-", s)
		}
		for _, s := range sentences(p.essential(p.Opened), "may now") {
			t.line("  ", "!", s)
		}
	}
	t.section(p.summary())
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (p Plan) summary() string {
	hosts := map[string]int{}
	for _, h := range p.Hosts {
		hosts[h.Change]++
	}
	var parts []string
	for _, change := range []string{"added", "removed", "changed"} {
		if n := hosts[change]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, change))
		}
	}
	parts = append(parts, fmt.Sprintf("%d unchanged", p.Unchanged))
	access := "access stays as it is"
	switch {
	case len(p.Opened) > 0:
		access = "access widens"
	case len(p.Closed) > 0:
		access = "access narrows"
	}
	if n := len(p.Inputs); n > 0 {
		access += fmt.Sprintf("; %s to review", count(n, "input"))
	}
	if n := len(p.Facts); n > 0 {
		access += fmt.Sprintf("; %s to review", count(n, "fact"))
	}
	return fmt.Sprintf("Hosts: %s; %s", strings.Join(parts, ", "), access)
}

// count formats a number and a noun, such as "3 hosts".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

type page struct {
	b      strings.Builder
	colour bool
}

func (t *page) line(indent, mark, s string) {
	if t.colour {
		code := map[string]string{"+": green, "-": red, "~": yellow, "!": bold}[mark]
		t.b.WriteString(indent + code + mark + " " + s + plain + "\n")
		return
	}
	t.b.WriteString(indent + mark + " " + s + "\n")
}

func (t *page) section(title string) {
	if t.b.Len() > 0 {
		t.b.WriteString("\n")
	}
	t.b.WriteString(title + "\n")
}

// changes describes the changes of one host. If there are many of one type, it only counts them.
func (t *page) changes(h Host) string {
	type sort struct{ mark, noun string }
	lines := map[sort][]string{}
	var order []sort
	for _, c := range h.Changes {
		if c.follows() {
			continue
		}
		noun, s := c.prose(h.domain)
		if c.Document == document.DocManifest {
			s = relativeTo(h.Name, s)
		}
		of := sort{c.mark(), noun}
		if lines[of] == nil {
			order = append(order, of)
		}
		if !slices.Contains(lines[of], s) {
			lines[of] = append(lines[of], s)
		}
	}
	for _, of := range order {
		if n := len(lines[of]); n > 8 {
			t.line("    ", of.mark, fmt.Sprintf("%d %ss", n, of.noun))
			continue
		}
		for _, s := range lines[of] {
			t.line("    ", of.mark, s)
		}
	}
	if h.Format != "" {
		t.line("    ", "!", fmt.Sprintf("needs programs that understand format %s: florctl status names this host if its own do not; upgrade them before its documents come over the network", h.Format))
	}
	for _, u := range h.Units {
		t.line("    ", "!", fmt.Sprintf("restarts %s, for %s", u.Unit, u.Need))
	}
	return t.b.String()
}

// essential returns those of the rights that no other right implies.
func (p Plan) essential(rights []Right) []Right {
	return slices.DeleteFunc(slices.Clone(rights), func(r Right) bool { return p.implied[r] })
}
