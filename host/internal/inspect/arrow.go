package inspect

import (
	"fmt"
	"strings"
)

// point is a place in the drawing.
type point struct{ x, y int }

// curve leads from one point to another and stands upright at both, for the
// number of pixels that the bends say; below 0 it goes up there.
type curve struct {
	from, to         point
	fromBend, toBend int
}

// bend is how far a curve that goes down stands upright.
const bend = gapY / 2

// curves are the parts of a way between the boxes that it passes.
func curves(way []*box) []curve {
	up := way[0].row == way[1].row
	var out []curve
	for i, b := range way[1:] {
		a := way[i]
		c := curve{point{a.middle(), a.bottom}, point{b.middle(), b.y}, bend, bend}
		if up && a.isLane() {
			c.from.y, c.fromBend = a.y, -bend
		}
		if up && b.isLane() {
			c.to.y, c.toBend = b.bottom, -bend
		}
		out = append(out, c)
	}
	return out
}

// pathData draws a way for SVG.
func pathData(way []*box) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", way[0].middle(), way[0].y+way[0].h)
	for _, c := range curves(way) {
		fmt.Fprintf(&b, "V%d", c.from.y)
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", c.from.x, c.from.y+c.fromBend, c.to.x, c.to.y-c.toBend, c.to.x, c.to.y)
	}
	return b.String()
}

// labels are where the text of each edge stands, beside the beginning of the
// edge; those that leave the same box stand at different heights, and what many
// of them say, as the branches of a fan-out do, stands there once. Edges
// without a text have none.
func (l *layout) labels() map[int]point {
	out := map[int]point{}
	leaving := map[*box]int{}
	seen := map[string]bool{}
	for i, way := range l.ways {
		about := l.diagram.Edges[i].about()
		same := way[0].name + "\n" + about
		if about == "" || seen[same] {
			continue
		}
		seen[same] = true
		quarters := []int{2, 3, 1}[leaving[way[0]]%3]
		leaving[way[0]]++
		out[i] = curves(way)[0].at(quarters)
	}
	return out
}

// at is the point of the curve after some quarters of it.
func (c curve) at(quarters int) point {
	t := float64(quarters) / 4
	s := 1 - t
	along := func(p0, p1, p2, p3 int) int {
		return int(s*s*s*float64(p0) + 3*s*s*t*float64(p1) + 3*s*t*t*float64(p2) + t*t*t*float64(p3))
	}
	return point{
		along(c.from.x, c.from.x, c.to.x, c.to.x),
		along(c.from.y, c.from.y+c.fromBend, c.to.y-c.toBend, c.to.y),
	}
}
