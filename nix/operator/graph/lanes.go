package graph

import (
	"slices"
	"strings"
)

// needs draws the lines from hosts to their providers. There is one line for each provider. It runs
// beside the hosts, on the left and over the top to the right.
func (p *picture) needs(s *svg) {
	s.printf(`<g class="needs">`)
	for i, provider := range p.lanes {
		at := p.boxes[provider]
		leftX, rightX, topY := margin+lane*i, p.w-margin-lane*i, head+lane*(i+1)-4
		arrive := at.y + headerH/2 + 6*i
		s.printf(`<path d="M%d %dH%d"/><path class="end" d="M%d %dl8 -4v8z"/>`, rightX, arrive, at.x+at.w+8, at.x+at.w, arrive)
		var left, right []int
		stub := func(frames []*frame, isLeft bool) {
			for _, f := range frames {
				users := 0
				for _, b := range f.boxes {
					if len(p.Needs[b.host][provider]) == 0 || b == at {
						continue
					}
					users++
					if p.detail {
						y := b.y + b.h/2 + 6*i
						if isLeft {
							s.printf(`<path d="M%d %dH%d"/>`, leftX, y, b.x)
							left = append(left, y)
						} else {
							s.printf(`<path d="M%d %dH%d"/>`, b.x+b.w, y, rightX)
							right = append(right, y)
						}
					}
				}
				if users > 0 && !p.detail {
					y := f.y + f.h/2 + 6*i
					if isLeft {
						s.printf(`<path d="M%d %dH%d"/>`, leftX, y, f.x)
						left = append(left, y)
					} else {
						s.printf(`<path d="M%d %dH%d"/>`, f.x+f.w, y, rightX)
						right = append(right, y)
					}
				}
			}
		}
		stub(p.left, true)
		stub(p.right, false)
		right = append(right, arrive)
		if len(left) > 0 {
			s.printf(`<path d="M%d %dV%dH%dV%d"/>`, leftX, slices.Max(left), topY, rightX, slices.Max(right))
		} else {
			s.printf(`<path d="M%d %dV%d"/>`, rightX, slices.Min(right), slices.Max(right))
		}
	}
	s.printf(`</g>`)
}

func (p *picture) legend(s *svg) {
	x, y := margin, p.h-legendH+34
	item := func(w int, draw func(x int), label string) {
		width := w + 8 + 7*len([]rune(label))
		if x+width > p.w-margin {
			x, y = margin, y+24
		}
		draw(x)
		s.text("dim", x+w+8, y+4, label)
		x += width + 26
	}
	item(30, func(x int) { s.rect("host", rect{x, y - 9, 30, 18}, 5) }, "host")
	item(30, func(x int) { s.rect("host device", rect{x, y - 9, 30, 18}, 5) }, "device")
	item(30, func(x int) { s.rect("service", rect{x, y - 8, 30, 16}, 3) }, "service")
	item(30, func(x int) { s.rect("user", rect{x, y - 8, 30, 16}, 8) }, "user")
	if p.marked("public") {
		item(30, func(x int) { s.rect("service public", rect{x, y - 8, 30, 16}, 3) }, "public")
	}
	if p.marked("outside") {
		item(30, func(x int) { s.rect("service outside", rect{x, y - 8, 30, 16}, 3) }, "leads outside")
	}
	if p.strangers() {
		item(30, func(x int) { s.rect("stranger", rect{x, y - 8, 30, 16}, 3) }, "strangers come in")
	}
	line := func(reaches, relayed bool, label string) {
		item(34, func(x int) {
			s.printf(`<g stroke="%s" fill="%s">`, colour(1), colour(1))
			s.join(&edge{role: &pill{rect: rect{x, y, 0, 0}}, reaches: reaches, relayed: relayed, side: rect{x + 34, y, 0, 0}, y: y, count: 1})
			s.printf(`</g>`)
		}, label)
	}
	line(false, false, "role held by")
	line(true, false, "role reaches")
	if slices.ContainsFunc(p.joined, func(e *edge) bool { return e.relayed }) {
		line(true, true, "role reaches through relays")
	}
	if len(p.lanes) > 0 {
		item(34, func(x int) {
			s.printf(`<g class="needs"><path d="M%d %dH%d"/><path class="end" d="M%d %dl-8 -4v8z"/></g>`, x, y, x+26, x+34, y)
		}, "is provided for by")
	}
	if !p.detail {
		s.text("dim", margin, y+26, "Numbers are roles: what a user or host holds, and who reaches a service; in rings, what a service holds. Wider edges stand for more.")
	}
}

// marked reports whether any service in the picture has a mark, so that the legend must explain it.
func (p *picture) marked(mark string) bool {
	for _, b := range p.boxes {
		if slices.ContainsFunc(b.rows, func(r *row) bool { return strings.Contains(r.mark, mark) }) {
			return true
		}
	}
	return false
}

// strangers reports whether an ingress is drawn.
func (p *picture) strangers() bool {
	for name := range p.Hosts {
		if len(p.entered(name)) > 0 {
			return true
		}
	}
	return false
}
