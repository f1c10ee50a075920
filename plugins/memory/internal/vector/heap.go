package vector

// item is a slot and how near it is to what is looked for.
type item struct {
	near float32
	slot uint32
}

// nearer orders items nearest first, and those equally near by slot.
func nearer(a, b item) int {
	switch {
	case a.near > b.near:
		return -1
	case a.near < b.near:
		return 1
	case a.slot < b.slot:
		return -1
	case a.slot > b.slot:
		return 1
	}
	return 0
}

// heap has the item with the smallest near first, and among those the one with
// the smallest slot. To have the nearest first, near is negated; to have the
// last slot first among the least near, all bits of the slot are.
type heap []item

func below(a, b item) bool {
	return a.near < b.near || (a.near == b.near && a.slot < b.slot)
}

func (h *heap) push(it item) {
	s := append(*h, it)
	*h = s
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !below(it, s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = it
}

// pop takes the first item out.
func (h *heap) pop() item {
	s := *h
	first, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) > 0 {
		s.replace(last)
	}
	return first
}

// replace puts the item in the place of the first one.
func (h heap) replace(it item) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && below(h[child+1], h[child]) {
			child++
		}
		if !below(h[child], it) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}
