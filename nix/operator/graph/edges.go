package graph

import (
	"cmp"
	"slices"
	"strings"
)

// edge connects a role with a holder or a target of the role. In a large cluster it connects the
// role with a frame that contains several of them.
type edge struct {
	role    *pill
	reaches bool // false if it is held
	relayed bool // whether it reaches only hosts that others reach through relays alone
	left    bool // is on the left of the roles
	side    rect // box or row at which it ends
	y       int  // height of its end
	count   int
}

// edges returns all edges. Each ends at the height of its target.
func (p *picture) edges() (all []*edge) {
	side := func(frames []*frame, left bool) {
		for _, f := range frames {
			for _, r := range p.pills {
				for _, reaches := range []bool{false, true} {
					ends := p.ends(f, r, reaches)
					if len(ends) == 0 {
						continue
					}
					e := edge{role: r, reaches: reaches, relayed: reaches, left: left, side: f.rect, count: len(ends)}
					for _, end := range ends {
						y := end.y + end.h/2
						relayed := reaches && p.Hosts[end.host].OnlyRelayed()
						e.y += y
						e.relayed = e.relayed && relayed
						if p.detail {
							all = append(all, &edge{r, reaches, relayed, left, end.rect, y, 1})
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

// end is a part of a host at which an edge ends.
type end struct {
	rect
	host string
}

// ends returns the parts of a frame at which edges of a role end. These are the parts that the role
// reaches if reaches is set, and otherwise the parts that hold the role.
func (p *picture) ends(f *frame, r *pill, reaches bool) (ends []end) {
	for _, b := range f.boxes {
		if !reaches && slices.Contains(r.nodes, b.host) {
			ends = append(ends, end{rect{b.x, b.y, b.w, headerH}, b.host})
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
				ends = append(ends, end{row.rect, b.host})
			}
		}
	}
	return ends
}

// order sorts the roles by the average height of the parts that they are connected with, so that
// edges are short.
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

// connect determines the ends of edges. The ends at a frame are spread along its side in the order
// of the roles, so that few edges cross.
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
