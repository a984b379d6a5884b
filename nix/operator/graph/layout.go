package graph

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// These constants are dimensions of the picture in pixels. In the detailed picture, edges end at
// single services and users. In the picture of a large cluster, edges end at the frames of host
// groups, and services and users show the numbers of their roles.
const (
	margin   = 28
	gutter   = 150 // beside the roles, for edges
	pillW    = 184 // minimum width of a role
	pillH    = 34
	pillGap  = 12
	rowH     = 20
	rowGap   = 4
	rowPad   = 16 // total horizontal padding of rows
	headerH  = 24
	gap      = 14 // between boxes
	framePad = 14
	frameTop = 26 // space for the label
	lane     = 14 // between lines to providers
	head     = 64 // height of the title
)

type rect struct{ x, y, w, h int }

type row struct {
	rect
	name, class string // class is "service", "user" or "stranger"
	mark        string // visibility and "outside"
	note        string // text for that
	dots        []int  // numbers of its roles, or of the roles that lead to a service
	holds       []int  // numbers of the roles that a service holds
}

type box struct {
	rect
	host  string
	kinds []string
	dots  []int
	rows  []*row
}

type frame struct {
	rect
	label string
	boxes []*box
}

type pill struct {
	rect
	*role
	number int
}

// picture is a cluster with the positions of all parts.
type picture struct {
	Cluster
	detail      bool
	left, right []*frame // hosts that only call; hosts that serve
	framed      bool     // whether there are host groups
	pills       []*pill
	boxes       map[string]*box
	lanes       []string // provider hosts, sorted
	joined      []*edge
	w, h, top   int
	pillW       int
}

func lay(c Cluster) *picture {
	p := &picture{Cluster: c, boxes: map[string]*box{}}
	roles := c.roles()
	numbers := map[string]int{}
	for i, r := range roles {
		p.pills = append(p.pills, &pill{role: r, number: i + 1})
		numbers[r.name] = i + 1
		p.pillW = min(max(p.pillW, pillW, width(r.name, 13)+46, width(r.under(), 11)+46), 2*pillW)
	}
	for _, pill := range p.pills {
		pill.rect = rect{w: p.pillW, h: pillH}
	}
	for host, kinds := range c.Needs {
		for provider := range kinds {
			if host == provider {
				continue
			}
			if _, drawn := c.Hosts[provider]; drawn && !slices.Contains(p.lanes, provider) {
				p.lanes = append(p.lanes, provider)
			}
		}
	}
	slices.Sort(p.lanes)
	left, right := map[string]*frame{}, map[string]*frame{}
	for name, h := range c.Hosts {
		side := left
		if len(h.Services) > 0 || len(c.entered(name)) > 0 || slices.Contains(p.lanes, name) {
			side = right
		}
		if side[h.Group] == nil {
			side[h.Group] = &frame{label: h.Group}
		}
		b := p.box(name, numbers)
		p.boxes[name] = b
		side[h.Group].boxes = append(side[h.Group].boxes, b)
	}
	var idle []*row
	for name, u := range c.Users {
		if len(u.Hosts) == 0 {
			idle = append(idle, &row{name: name, class: "user", dots: dots(u.Roles, numbers)})
		}
	}
	slices.SortFunc(idle, func(a, b *row) int { return natural(a.name, b.name) })
	for part := range slices.Chunk(idle, 8) {
		if left[last] == nil {
			left[last] = &frame{}
		}
		left[last].boxes = append(left[last].boxes, &box{host: nowhere, rows: part})
	}
	p.left, p.right = ordered(left), ordered(right)
	p.place()
	p.connect()
	return p
}

// The constant nowhere is the name under which users on no host are shown. The constant last sorts
// after all names of host groups.
const nowhere, last = "on no host", "~"

func (p *picture) box(name string, numbers map[string]int) *box {
	h := p.Hosts[name]
	b := &box{host: name, kinds: h.Kinds}
	for _, r := range h.Roles {
		if n := numbers[r]; n > 0 && !p.pills[n-1].every {
			b.dots = append(b.dots, n)
		}
	}
	slices.Sort(b.dots)
	if entered := p.entered(name); len(entered) > 0 {
		b.rows = append(b.rows, &row{name: "strangers", class: "stranger", note: " → " + strings.Join(entered, ", ")})
	}
	for _, s := range h.Services {
		service := p.Services[s]
		r := &row{name: s, class: "service", mark: service.Visibility, note: seen(service), holds: dots(service.Roles, numbers)}
		if service.Outside != "" {
			r.mark += " outside"
			r.note += " → " + service.Outside
		}
		var roles []*role
		for _, pill := range p.pills {
			roles = append(roles, pill.role)
			if slices.Contains(p.reached(pill.role, s, name), s) {
				r.dots = append(r.dots, pill.number)
			}
		}
		b.rows = append(b.rows, r)
		for _, port := range p.apart(roles, s, name) {
			r := &row{name: port, class: "service", mark: "port"}
			for _, pill := range p.pills {
				if slices.Contains(p.reached(pill.role, s, name), port) {
					r.dots = append(r.dots, pill.number)
				}
			}
			b.rows = append(b.rows, r)
		}
	}
	for _, u := range h.Users {
		b.rows = append(b.rows, &row{name: u, class: "user", dots: dots(p.Users[u].Roles, numbers)})
	}
	return b
}

// seen returns notes about a service: its protocol if that is UDP or one in which people open
// sessions, whether these are recorded, its visibility unless the whole cluster sees it, and
// additional names.
func seen(s compile.Service) (note string) {
	switch s.Protocol {
	case "udp", "ssh", "rdp", "vnc":
		note = " · " + s.Protocol
	}
	if len(s.Record.Recipients) > 0 {
		note += ", recorded"
	}
	if s.Visibility == "public" || s.Visibility == "host" {
		note += " · " + strings.Join(append([]string{cmp.Or(s.TLSName, s.Visibility)}, s.TLSAliases...), ", ")
	}
	if len(s.Aliases) > 0 {
		note += " · " + strings.Join(s.Aliases, ", ")
	}
	return note
}

func dots(roles []string, numbers map[string]int) (list []int) {
	for _, r := range roles {
		if n := numbers[r]; n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

func ordered(frames map[string]*frame) (list []*frame) {
	for _, f := range frames {
		slices.SortStableFunc(f.boxes, func(a, b *box) int { return natural(a.host, b.host) })
	}
	for _, group := range slices.SortedFunc(maps.Keys(frames), natural) {
		list = append(list, frames[group])
	}
	return list
}

// natural compares names so that web2 comes before web10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if d := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); d != 0 {
				return d
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
