package graph

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// What a picture is made of, in pixels. In detail, edges end at single services
// and users; in a large cluster they end at the frames of the inventory, and
// services and users carry the numbers of their roles.
const (
	margin   = 28
	gutter   = 150 // beside the roles, for edges
	pillW    = 184
	pillH    = 34
	pillGap  = 12
	rowH     = 20
	rowGap   = 4
	headerH  = 24
	gap      = 14 // between boxes
	framePad = 14
	frameTop = 26 // for the label
	lane     = 14 // between lines to providers
	head     = 64 // the title
)

type rect struct{ x, y, w, h int }

type row struct {
	rect
	name, class string // class is "service" or "user"
	note        string // "public", "host"
	dots        []int  // numbers of its roles
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

// picture is a cluster with a place for everything.
type picture struct {
	Cluster
	detail      bool
	left, right []*frame // hosts that only call; hosts that serve
	framed      bool     // there is an inventory to show
	pills       []*pill
	boxes       map[string]*box
	lanes       []string // hosts that provide, sorted
	joined      []*edge
	w, h, top   int
}

func lay(c Cluster) *picture {
	p := &picture{Cluster: c, boxes: map[string]*box{}}
	roles := c.roles()
	numbers := map[string]int{}
	for i, r := range roles {
		p.pills = append(p.pills, &pill{role: r, number: i + 1, rect: rect{w: pillW, h: pillH}})
		numbers[r.name] = i + 1
	}
	for _, kinds := range c.Needs {
		for provider := range kinds {
			if _, drawn := c.Hosts[provider]; drawn && !slices.Contains(p.lanes, provider) {
				p.lanes = append(p.lanes, provider)
			}
		}
	}
	slices.Sort(p.lanes)
	left, right := map[string]*frame{}, map[string]*frame{}
	for name, h := range c.Hosts {
		side := left
		if len(h.Services) > 0 || slices.Contains(p.lanes, name) {
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

// nowhere stands for a host in the boxes of users whom no host acts as, last for
// their group; no name of the inventory comes after it.
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
	for _, s := range h.Services {
		service := p.Services[s]
		r := &row{name: s, class: "service", note: service.Visibility}
		if r.note == "cluster" {
			r.note = ""
		}
		for _, pill := range p.pills {
			if slices.Contains(pill.services, s) {
				r.dots = append(r.dots, pill.number)
			}
		}
		b.rows = append(b.rows, r)
	}
	for _, u := range h.Users {
		b.rows = append(b.rows, &row{name: u, class: "user", dots: dots(p.Users[u].Roles, numbers)})
	}
	return b
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

// natural orders web2 before web10.
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

// place chooses how many columns of hosts there are, so that the picture is small
// and about as wide as a screen, and puts everything where it belongs.
func (p *picture) place() {
	rows := func(frames []*frame) (n int) {
		for _, f := range frames {
			for _, b := range f.boxes {
				n += 2 + len(b.rows)
			}
		}
		return n
	}
	p.detail = rows(p.left) <= 60 && rows(p.right) <= 60
	p.framed = !p.detail || slices.ContainsFunc(append(slices.Clone(p.left), p.right...), func(f *frame) bool { return f.label != "" })
	best := math.Inf(1)
	leftCols, rightCols := 1, 1
	if !p.detail {
		for l := 1; l <= 6; l++ {
			for r := 1; r <= 14; r++ {
				w, h := p.try(l, r)
				area, shape := math.Log(float64(w)*float64(h)), math.Abs(math.Log(float64(w)/float64(h)/1.5))
				if waste := area + shape; waste < best {
					best, leftCols, rightCols = waste, l, r
				}
			}
		}
	}
	p.w, p.h = p.try(leftCols, rightCols)
}

func (p *picture) try(leftCols, rightCols int) (w, h int) {
	p.top = head + lane*(len(p.lanes)+1)
	x := margin + lane*len(p.lanes) + 8
	boxW := 210
	if !p.detail {
		boxW = 158
	}
	leftW, leftH := stack(p.left, rect{x, p.top, boxW, 0}, leftCols)
	pillX := x
	if leftW > 0 {
		pillX += leftW + gutter
	}
	rightX := pillX + pillW + gutter
	if len(p.pills) == 0 {
		rightX = pillX
	}
	rightW, rightH := stack(p.right, rect{rightX, p.top, boxW, 0}, rightCols)
	pillsH := len(p.pills) * (pillH + pillGap)
	h = max(leftH, rightH, pillsH)
	shift(p.left, (h-leftH)/2)
	shift(p.right, (h-rightH)/2)
	p.order()
	step := max(pillH+pillGap, min(90, h/max(1, len(p.pills))))
	y := p.top + (h-step*len(p.pills))/2 + (step-pillH)/2
	for _, pill := range p.pills {
		pill.x, pill.y = pillX, y
		y += step
	}
	return rightX + rightW + lane*len(p.lanes) + 8 + margin, p.top + h + legendH
}

const legendH = 96

// stack puts frames below each other, the boxes of each in so many columns. Hosts
// that provide are in the last column, where the lines to them arrive.
func stack(frames []*frame, at rect, cols int) (w, h int) {
	if len(frames) == 0 {
		return 0, 0
	}
	y := at.y
	w = cols*(at.w+gap) - gap + 2*framePad
	for _, f := range frames {
		f.rect = rect{at.x, y, w, 0}
		y += framePad
		if f.label != "" {
			y += frameTop - framePad
		}
		for line := range lines(f.boxes, cols) {
			tallest := 0
			for col, b := range line {
				if b == nil {
					continue
				}
				b.rect = rect{at.x + framePad + col*(at.w+gap), y, at.w, 0}
				b.fill()
				tallest = max(tallest, b.h)
			}
			y += tallest + gap
		}
		f.h = y - f.y
		y += gap
	}
	return w, y - gap - at.y
}

// lines are boxes in so many columns, nil where there is none.
func lines(boxes []*box, cols int) iter.Seq[[]*box] {
	return func(yield func([]*box) bool) {
		provide := func(b *box) bool { return len(b.kinds) > 0 && cols > 1 }
		var first, plain []*box
		for _, b := range boxes {
			if provide(b) {
				first = append(first, b)
			} else {
				plain = append(plain, b)
			}
		}
		for len(first)+len(plain) > 0 {
			line, room := make([]*box, cols), cols
			if len(first) > 0 {
				room--
				line[room], first = first[0], first[1:]
			}
			n := copy(line[:room], plain)
			plain = plain[n:]
			if !yield(line) {
				return
			}
		}
	}
}

// fill places the rows of a box below its head.
func (b *box) fill() {
	y := b.y + headerH
	if len(b.kinds) > 0 {
		y += 18
	}
	for _, r := range b.rows {
		r.rect = rect{b.x + 8, y + rowGap, b.w - 16, rowH}
		y += rowH + rowGap
	}
	b.h = y + 8 - b.y
}

func shift(frames []*frame, dy int) {
	for _, f := range frames {
		f.y += dy
		for _, b := range f.boxes {
			b.y += dy
			for _, r := range b.rows {
				r.y += dy
			}
		}
	}
}
