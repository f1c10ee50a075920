package vector

// choose picks at most limit neighbours for a slot from candidates that are
// sorted nearest first: the heuristic of Malkov and Yashunin's algorithm 4,
// which passes over a candidate that is nearer to one already picked than to
// the slot, so that the links lead in all directions. If fewer than
// fill are picked, the nearest of those passed over make up the number.
//
// The result is valid until the next call.
func (w *walk) choose(v *view, candidates []item, limit, fill int) []item {
	w.chosen, w.left = w.chosen[:0], w.left[:0]
	for _, c := range candidates {
		if len(w.chosen) == limit {
			break
		}
		row, good := v.row(c.slot), true
		for _, other := range w.chosen {
			if similarity(v.row(other.slot), row) > c.near {
				good = false
				break
			}
		}
		if good {
			w.chosen = append(w.chosen, c)
		} else if len(w.left) < fill {
			w.left = append(w.left, c)
		}
	}
	if missing := min(fill, limit) - len(w.chosen); missing > 0 {
		w.chosen = append(w.chosen, w.left[:min(missing, len(w.left))]...)
	}
	return w.chosen
}
