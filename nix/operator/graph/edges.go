package graph

import (
	"cmp"
	"slices"
	"strings"
)

// edge joins a role with something that holds it or that it reaches, or, in a
// large cluster, with a frame that has some of them.
type edge struct {
	role    *pill
	reaches bool // else holds
	left    bool // of the roles
	side    rect // what it ends at
	y       int  // where
	count   int
}

// edges are all of them, each ending at the height of what it means.
func (p *picture) edges() (all []*edge) {
	side := func(frames []*frame, left bool) {
		for _, f := range frames {
			for _, r := range p.pills {
				for _, reaches := range []bool{false, true} {
					ends := p.ends(f, r, reaches)
					if len(ends) == 0 {
						continue
					}
					e := edge{role: r, reaches: reaches, left: left, side: f.rect, count: len(ends)}
					for _, end := range ends {
						e.y += end.y + end.h/2
						if p.detail {
							all = append(all, &edge{r, reaches, left, end, end.y + end.h/2, 1})
						}
					}
					e.y /= len(ends)
					if !p.detail {
						all = append(all, &e)
					}
				}
			}
		}
	}
	side(p.left, true)
	side(p.right, false)
	return all
}

// ends are the parts of a frame that a role reaches, or that hold it.
func (p *picture) ends(f *frame, r *pill, reaches bool) (ends []rect) {
	for _, b := range f.boxes {
		if !reaches && slices.Contains(r.nodes, b.host) {
			ends = append(ends, rect{b.x, b.y, b.w, headerH})
		}
		for _, row := range b.rows {
			joined := r.by
			switch {
			case reaches && row.class == "service":
				service, _, _ := strings.Cut(row.name, ":")
				joined = p.reached(r.role, service, b.host)
			case reaches:
				continue
			case row.class == "user":
				joined = r.users
			}
			if slices.Contains(joined, row.name) {
				ends = append(ends, row.rect)
			}
		}
	}
	return ends
}

// order puts each role about as high as what it is joined with.
func (p *picture) order() {
	sum, n := map[*pill]int{}, map[*pill]int{}
	for _, e := range p.edges() {
		sum[e.role] += e.y
		n[e.role]++
	}
	slices.SortStableFunc(p.pills, func(a, b *pill) int {
		return cmp.Compare(sum[a]*max(1, n[b]), sum[b]*max(1, n[a]))
	})
}

// connect decides where edges end. Those of a frame are spread along its side in
// the order of the roles, so that few cross.
func (p *picture) connect() {
	p.joined = p.edges()
	if p.detail {
		return
	}
	of := map[rect][]*edge{}
	for _, e := range p.joined {
		of[e.side] = append(of[e.side], e)
	}
	for f, edges := range of {
		slices.SortStableFunc(edges, func(a, b *edge) int { return cmp.Compare(a.role.y, b.role.y) })
		step := min(16, (f.h-24)/len(edges))
		for i, e := range edges {
			e.y = f.y + f.h/2 + (2*i-len(edges)+1)*step/2
		}
	}
}
