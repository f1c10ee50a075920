package inspect

import (
	"sort"
)

// place sets the corner of every box: below its predecessors, if there is room.
func (l *layout) place() {
	y := 0
	for _, way := range l.ways {
		if way[len(way)-1].row == 0 && way[len(way)-2].row == 0 {
			y = turn // an edge back turns above the first row
		}
	}
	for i, row := range l.rows {
		if i > 0 {
			y += l.gapAbove(i)
		}
		height := 0
		for _, b := range row {
			b.want = b.wanted()
			height = max(height, b.h)
		}
		sort.SliceStable(row, func(i, k int) bool { return row[i].want < row[k].want })
		spread(row)
		for _, b := range row {
			b.y, b.bottom = y, y+height
		}
		y += height
	}
	l.h = y
	l.fit()
}

func (l *layout) gapAbove(row int) int {
	if l.labelRows[row] || l.labelRows[row-1] {
		return gapLabel
	}
	return gapY
}

// wanted returns the middle of the boxes above; lanes count only if there is
// nothing else, so that a column stays straight.
func (b *box) wanted() int {
	sum, n, lanes := 0, 0, true
	for _, a := range b.above {
		if lanes && !a.isLane() {
			sum, n, lanes = 0, 0, false
		}
		if a.isLane() && !lanes {
			continue
		}
		n++
		if a.row == b.row {
			sum += a.want // an edge back begins next to its end
		} else {
			sum += a.middle()
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// spread arranges the boxes of a row side by side and moves the row to the
// preferred position of its nodes.
func spread(row []*box) {
	offset, nodes := 0, 0
	for i, b := range row {
		b.x = b.want - b.axis()
		if i > 0 {
			left, gap := row[i-1], gapX
			if b.isLane() || left.isLane() {
				gap /= 2
			}
			b.x = max(b.x, left.x+left.w+gap)
		}
		if !b.isLane() || b.text != "" {
			offset += b.want - b.middle()
			nodes++
		}
	}
	for _, b := range row {
		b.x += offset / max(1, nodes)
	}
}

// fit moves everything to the right of 0 and measures the drawing.
func (l *layout) fit() {
	left, right := 0, 0
	for _, row := range l.rows {
		for _, b := range row {
			left, right = min(left, b.x), max(right, b.x+b.w)
		}
	}
	for _, row := range l.rows {
		for _, b := range row {
			b.x -= left
		}
	}
	l.w = right - left
	for _, way := range l.ways {
		if way[0].row == len(l.rows)-1 { // its way back turns below it
			l.h = max(l.h, way[0].bottom+gapY/2)
		}
	}
}
