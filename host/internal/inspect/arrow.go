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

// turn is how far a curve stands upright where it turns round.
const turn = gapLabel * 3 / 4

// curves are the parts of a way between the boxes that it passes.
func curves(way []*box) []curve {
	up := way[0].row == way[1].row
	var out []curve
	for i, b := range way[1:] {
		a := way[i]
		c := curve{from: point{a.middle(), a.bottom}, to: point{b.middle(), b.y}}
		if up && a.isLane() {
			c.from.y = a.y
		}
		if up && b.isLane() {
			c.to.y = b.bottom
		}
		switch half := (c.to.y - c.from.y) / 2; {
		case !up:
			c.fromBend, c.toBend = half, half
		case a.isLane() && b.isLane():
			c.fromBend, c.toBend = half, half
		case a.isLane():
			c.fromBend, c.toBend = -turn, turn
		default:
			c.fromBend, c.toBend = turn, -turn
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
