package vector

// sameness is the similarity from which on two vectors count as the same for
// the graph: rounding alone makes a difference of this size.
const sameness = 1 - 1e-6

// The graph holds one of several vectors that are the same; the others, its
// twins, hang on it in a chain. Linked like the others, a crowd of them would
// have links to one another alone, and would crowd one another out of them.

// hang appends the slot to the chain of a slot in the graph. Only the builder
// does so.
func (v *view) hang(slot, on uint32) {
	last, ok := v.tails[on]
	if !ok {
		last = on
	}
	v.tails[on] = slot
	v.blocks[slot>>blockBits].twins |= 1 << (slot % blockSlots)
	// Slots begin with 0, which says that there is none.
	v.blocks[last>>blockBits].next[last%blockSlots].Store(slot + 1)
}

// after returns the next in the chain. Those that came after the view end it:
// a chain grows at its end.
func (v *view) after(slot uint32) (uint32, bool) {
	next := v.blocks[slot>>blockBits].next[slot%blockSlots].Load()
	if next == 0 || next > v.count {
		return 0, false
	}
	return next - 1, true
}

// isTwin reports whether the slot hangs on another one. Only the builder may
// ask.
func (v *view) isTwin(slot uint32) bool {
	return v.blocks[slot>>blockBits].twins>>(slot%blockSlots)&1 != 0
}

// any reports whether the slot or one of its twins passes.
func (v *view) any(slot uint32, passes func(uint32) bool) bool {
	for more := true; more; slot, more = v.after(slot) {
		if passes(slot) {
			return true
		}
	}
	return false
}
