package graph

import (
	"iter"
	"math"
	"slices"
)

// place chooses the number of columns of hosts, so that the picture is small and about as wide as a
// screen, and positions all parts.
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
	boxW := p.widest(158, 210)
	if p.detail {
		boxW = p.widest(210, 420)
	}
	leftW, leftH := stack(p.left, rect{x, p.top, boxW, 0}, leftCols)
	pillX := x
	if leftW > 0 {
		pillX += leftW + gutter
	}
	rightX := pillX + p.pillW + gutter
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
	return max(minW, rightX+rightW+lane*len(p.lanes)+8+margin), p.top + h + legendH
}

// widest returns the width that boxes need so that no text in them is cut. The result is at least
// low and at most high.
func (p *picture) widest(low, high int) int {
	for _, b := range p.boxes {
		for _, r := range b.rows {
			low = max(low, rowPad+width(r.name+r.note, 12)+18+p.badges(r))
		}
	}
	return min(low, high)
}

// minW is the minimum width of the picture. At this width the legend needs two lines, or three
// lines if it explains numbers.
const minW, legendH = 680, 110

// stack positions frames below each other, with the boxes of each in columns. Provider hosts are in
// the last column, where the lines to them arrive.
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

// lines yields rows of boxes. Each row has the given number of columns. A missing box is nil.
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

// fill positions the rows of a box below the header of the box.
func (b *box) fill() {
	y := b.y + headerH
	if len(b.kinds) > 0 {
		y += 18
	}
	for _, r := range b.rows {
		r.rect = rect{b.x + rowPad/2, y + rowGap, b.w - rowPad, rowH}
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
