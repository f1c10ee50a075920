package engine

import (
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
)

// branchStart emits the start of a branch once, when the first of its nodes
// runs. A resume does not repeat it for branches that had ended before.
type branchStart struct {
	once    sync.Once
	emitted bool
	emit    func()
}

func (s *branchStart) notify() {
	s.once.Do(func() {
		s.emitted = true
		s.emit()
	})
}

// startBranch emits the start of a branch: at once, or where a part of it is
// recorded, when it continues.
func (f *frame) startBranch(b *branch, res *branchResult) {
	r := f.run
	emit := func() {
		if r.listening() {
			fields := append(make([]flow.Field, 0, 4), field("branch", b.name))
			if b.alone {
				fields = append(fields, field("index", b.item.index), field("count", int64(b.count)))
				if label := itemLabel(b.item.value); label != nil {
					fields = append(fields, field("item", label))
				}
			}
			r.emit(flow.EventBranchStart, "", b.path, fields...)
		}
		if r.o.Callbacks.BranchStart != nil {
			r.o.Callbacks.BranchStart(string(b.path), b.name)
		}
	}
	if !r.replay.Begun(b.path, f.void) {
		emit()
		return
	}
	res.start = &branchStart{emit: emit}
}

// wake emits the start of the branches around that continue here, the outermost
// first.
func (f *frame) wake() {
	if f == nil || !f.run.replay.Resumed() {
		return
	}
	f.around.wake()
	if f.start != nil {
		f.start.notify()
	}
}
