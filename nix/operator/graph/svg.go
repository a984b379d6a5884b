package graph

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

//go:embed style.css
var style string

// These are the colours of roles. They are distinguishable on white and on black.
var colours = []string{
	"#3b7dd8", "#d9730d", "#2f9e6e", "#b5489b", "#a08000", "#1f9db3", "#8560d0", "#c4483c", "#5f8f2f", "#8a6a4f",
}

// SVG draws the cluster as an SVG file without external references. If the viewer prefers a dark
// scheme, the colours are dark.
func SVG(c Cluster) []byte {
	p := lay(c)
	s := &svg{}
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`, p.w, p.h, p.w, p.h)
	s.printf(`<title>%s</title><style>%s</style>`, text("cluster "+c.Name), style)
	s.printf(`<rect class="paper" width="%d" height="%d"/>`, p.w, p.h)
	title := c.Name
	if c.around != "" {
		title += " around " + c.around
	}
	s.text("title", margin, 34, title)
	s.text("dim", margin, 54, p.summary())
	for _, f := range append(slices.Clone(p.left), p.right...) {
		if p.framed {
			s.rect("frame", f.rect, 10)
			s.text("label", f.x+framePad, f.y+18, f.label)
		}
	}
	p.needs(s)
	for _, side := range [][]*frame{p.left, p.right} {
		for _, f := range side {
			for _, b := range f.boxes {
				p.host(s, b)
			}
		}
	}
	for _, pill := range p.pills {
		p.role(s, pill)
	}
	p.legend(s)
	s.printf("</svg>")
	return []byte(s.String())
}

func (p *picture) summary() string {
	return fmt.Sprintf("%s · %s, %s, %s, %s", p.TrustDomain,
		plural(len(p.Hosts), "host"), plural(len(p.Services), "service"), plural(len(p.Users), "user"), plural(len(p.pills), "role"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (p *picture) host(s *svg, b *box) {
	class := "host"
	if b.host == nowhere {
		class = "host none"
	} else if p.Hosts[b.host].Kind == "device" {
		class = "host device"
	}
	if p.around != "" && b.host == p.around {
		class += " focus"
	}
	s.rect(class, b.rect, 7)
	s.fit("name", b.x+10, b.y+17, b.host, b.w-20-15*len(b.dots), 13)
	p.dots(s, b.x+b.w-10, b.y+12, b.dots)
	if len(b.kinds) > 0 {
		s.fit("provides", b.x+10, b.y+headerH+10, "provides "+strings.Join(b.kinds, ", "), b.w-20, 11)
	}
	for _, r := range b.rows {
		corner := 3
		if r.class == "user" {
			corner = rowH / 2
		}
		s.rect(strings.TrimSpace(r.class+" "+r.mark), r.rect, corner)
		s.fit("row", r.x+9, r.y+14, r.name+r.note, r.w-18-p.badges(r), 12)
		x := r.x + r.w - 4
		x -= p.dots(s, x, r.y+rowH/2, r.dots)
		p.rings(s, x, r.y+rowH/2, r.holds)
		if r.class == "stranger" {
			s.printf(`<path class="way" d="M%d %dh12l-6 -4m6 4l-6 4"/>`, b.x-6, r.y+rowH/2)
		}
	}
}

// badges returns the width that the role numbers on a row need.
func (p *picture) badges(r *row) int {
	if p.detail {
		return 0
	}
	return 14 * (min(len(r.dots), most) + min(len(r.holds), most))
}

// most is the maximum number of role numbers that are shown on one part.
const most = 4

// dots draws the numbers of roles from right to left, beginning at x, and returns their width. It
// draws nothing in the detailed picture, which has edges instead.
func (p *picture) dots(s *svg, x, y int, roles []int) int {
	return p.numbers(s, x, y, roles, s.dot)
}

// rings draws the numbers of the roles that a service holds. They are beside the numbers drawn by
// dots.
func (p *picture) rings(s *svg, x, y int, roles []int) int {
	return p.numbers(s, x, y, roles, s.ring)
}

func (p *picture) numbers(s *svg, x, y int, roles []int, number func(x, y, role int)) int {
	if p.detail {
		return 0
	}
	start := x
	if more := len(roles) - most; more > 0 {
		s.printf(`<text class="more" x="%d" y="%d" text-anchor="end">+%d</text>`, x, y+3, more+1)
		x -= 16
		roles = roles[:most-1]
	}
	for i := len(roles) - 1; i >= 0; i-- {
		number(x-6, y, roles[i])
		x -= 14
	}
	return start - x
}

// role draws a role with its edges: a thin line to each holder and an arrow to each target.
func (p *picture) role(s *svg, r *pill) {
	s.printf(`<g class="role" stroke="%s" fill="%s">`, colour(r.number), colour(r.number))
	label := "role " + r.name
	if len(r.groups) > 0 {
		label += ", groups " + strings.Join(r.groups, ", ")
	}
	s.printf(`<title>%s</title>`, text(label))
	for _, e := range p.joined {
		if e.role == r {
			s.join(e)
		}
	}
	class := "pill"
	if len(r.services) == 0 || !r.every && len(r.nodes)+len(r.users)+len(r.by) == 0 {
		class = "pill idle"
	}
	s.rect(class, r.rect, pillH/2)
	x := r.x + 14
	if !p.detail {
		s.dot(x+4, r.y+r.h/2, r.number)
		x += 18
	}
	under := r.under()
	room := r.x + r.w - 12 - x
	if under == "" {
		s.fit("name", x, r.y+22, r.name, room, 13)
	} else {
		s.fit("name", x, r.y+15, r.name, room, 13)
		s.fit("dim", x, r.y+28, under, room, 11)
	}
	s.printf(`</g>`)
}

// under returns the text that is drawn below a role's name.
func (r *role) under() string {
	var parts []string
	if r.every {
		parts = append(parts, "every node")
	}
	if len(r.groups) > 0 {
		parts = append(parts, "via "+strings.Join(r.groups, ", "))
	}
	return strings.Join(parts, " · ")
}

type svg struct{ strings.Builder }

func (s *svg) printf(format string, args ...any) {
	fmt.Fprintf(s, format+"\n", args...)
}

func (s *svg) rect(class string, r rect, corner int) {
	s.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, r.x, r.y, r.w, r.h, corner)
}

func (s *svg) text(class string, x, y int, v string) {
	s.printf(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, text(v))
}

func (s *svg) dot(x, y, role int) {
	s.printf(`<circle class="dot" cx="%d" cy="%d" r="6.5" fill="%s" stroke="none"/><text class="number" x="%d" y="%d">%d</text>`, x, y, colour(role), x, y+3, role)
}

func (s *svg) ring(x, y, role int) {
	s.printf(`<circle class="ring" cx="%d" cy="%d" r="6" stroke="%s"/><text class="more" x="%d" y="%d" text-anchor="middle">%d</text>`, x, y, colour(role), x, y+3, role)
}

// join draws an edge that is horizontal at both ends, with a dot at a holder or an arrow at a
// target.
func (s *svg) join(e *edge) {
	x, port, out := e.side.x, e.role.x+e.role.w, 1
	if e.left {
		x, port, out = e.side.x+e.side.w, e.role.x, -1
	}
	class, width, tip, dash := "holds", 1.2+0.6*math.Log2(float64(e.count)), 0, ""
	if e.reaches {
		class, width, tip = "reaches", width+0.5, 8*out
	}
	if e.relayed {
		dash = ` stroke-dasharray="6 4"`
	}
	y := e.role.y + e.role.h/2
	d := (x - port) / 2
	s.printf(`<path class="%s" stroke-width="%.1f"%s d="M%d %dC%d %d %d %d %d %d"/>`, class, width, dash, port, y, port+d, y, x-tip-d, e.y, x-tip, e.y)
	if e.reaches {
		s.printf(`<path class="end" d="M%d %dl%d -4v8z"/>`, x, e.y, -tip)
	} else {
		s.printf(`<circle class="end" cx="%d" cy="%d" r="3"/>`, x, e.y)
	}
}

func colour(role int) string { return colours[(role-1)%len(colours)] }

// text escapes s for XML.
func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// fit draws a text in a space of limited width, in pixels. If the text must be cut, the full text
// is shown as a tooltip.
func (s *svg) fit(class string, x, y int, v string, room, size int) {
	if width(v, size) <= room {
		s.text(class, x, y, v)
		return
	}
	cut := []rune(v)
	for len(cut) > 0 && width(string(cut)+"…", size) > room {
		cut = cut[:len(cut)-1]
	}
	s.printf(`<text class="%s" x="%d" y="%d">%s<title>%s</title></text>`, class, x, y, text(string(cut)+"…"), text(v))
}

// width estimates the width of a text in pixels. It assumes DejaVu Sans, the widest of the fonts
// that the picture names.
func width(v string, size int) int {
	hundredths := 0
	for _, r := range v {
		switch {
		case strings.ContainsRune("ijl'|", r):
			hundredths += 30
		case strings.ContainsRune(" ,.:;-·/()[]tfr", r):
			hundredths += 40
		case strings.ContainsRune("mw@%…→", r) || unicode.IsUpper(r):
			hundredths += 95
		default:
			hundredths += 63
		}
	}
	return hundredths * size / 100
}
