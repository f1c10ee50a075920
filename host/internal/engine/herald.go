package engine

import "sync"

// herald tells of a branch's start when its first node runs. So a resume does
// not tell of branches again that had ended before.
type herald struct {
	once     sync.Once
	told     bool
	announce func()
}

func (h *herald) tell() {
	h.once.Do(func() {
		h.told = true
		h.announce()
	})
}

// tellBranch tells of a branch's start: now, or where a part of it is
// recorded, when it goes on.
func (f *frame) tellBranch(b *branch, res *branchResult) {
	r := f.run
	announce := func() {
		if r.listening() {
			fields := map[string]any{"branch": b.name}
			if b.alone {
				fields["index"], fields["count"] = b.item.index, int64(b.count)
				if label := itemLabel(b.item.value); label != nil {
					fields["item"] = label
				}
			}
			r.emit(EventBranchStart, "", b.path, fields)
		}
		if r.o.Callbacks.BranchStart != nil {
			r.o.Callbacks.BranchStart(b.path, b.name)
		}
	}
	if !r.replay.hasBegun(b.path, f.void) {
		announce()
		return
	}
	res.herald = &herald{announce: announce}
}

// wake tells of the branches around that go on here, the outermost first.
func (f *frame) wake() {
	if f == nil || !f.run.replay.resumed {
		return
	}
	f.around.wake()
	if f.herald != nil {
		f.herald.tell()
	}
}
