package fulltext

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// history is an index with the naive computation of every state it went
// through.
type history struct {
	t      testing.TB
	x      *Index
	n      *naive
	seq    int64
	rng    *rand.Rand
	states map[int64]map[int64][]Field
}

func newHistory(t testing.TB, d disk) *history {
	t.Helper()
	x, err := open("disk", d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{t: t, x: x, n: newNaive(t, "english"), rng: rand.New(rand.NewPCG(7, 7)), states: map[int64]map[int64][]Field{0: {}}}
	t.Cleanup(func() { h.x.Close() })
	return h
}

// change puts or deletes documents at random.
func (h *history) change(times int) {
	h.t.Helper()
	for range times {
		h.seq++
		id := int64(h.rng.IntN(40))
		var err error
		if h.rng.IntN(5) == 0 {
			err = h.x.Delete(id, h.seq)
			delete(h.n.docs, id)
		} else {
			fields := []Field{{"text", randomText(h.rng, h.rng.IntN(12))}}
			err = h.x.Put(Document{ID: id, Seq: h.seq, Fields: fields})
			h.n.docs[id] = fields
		}
		if err != nil {
			h.t.Fatal(err)
		}
		h.states[h.seq] = maps.Clone(h.n.docs)
	}
}

var probes = []string{"sensor", "the pump*", `"x1 x2"`, "r* valve", "café strasse 犬"}

// check opens what a crash has left and compares it with the state of its
// watermark, which is one of those allowed.
func (h *history) check(d disk, allowed ...int64) {
	h.t.Helper()
	x, err := open("copy", d, Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer x.Close()
	watermark := x.Watermark()
	ok := false
	for _, w := range allowed {
		ok = ok || w == watermark
	}
	if !ok || watermark > 0 && x.Lost() != nil {
		h.t.Fatalf("opened at %d, want one of %v: %v", watermark, allowed, x.Lost())
	}
	n := &naive{lang: h.n.lang, docs: h.states[watermark]}
	if x.Len() != len(n.docs) {
		h.t.Fatalf("Len() = %d at %d, want %d", x.Len(), watermark, len(n.docs))
	}
	for _, q := range probes {
		n.compare(h.t, x, q)
	}
}

// TestACrashAtAnyStepLeavesTheOlderOrTheNewerState stops the world before each
// step of flushes and merges.
func TestACrashAtAnyStepLeavesTheOlderOrTheNewerState(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	d := newMemDisk()
	h := newHistory(t, d)
	crashes, merges := 0, 0
	for range 14 {
		h.change(1 + h.rng.IntN(12))
		older := h.x.Watermark()
		var left []*memDisk
		d.mu.Lock()
		d.step = func(d *memDisk) error {
			left = append(left, d.crashes()...)
			return nil
		}
		d.mu.Unlock()
		before := h.x.Stats().Segments
		if err := h.x.Flush(); err != nil {
			t.Fatal(err)
		}
		newer := h.seq
		h.change(h.rng.IntN(5)) // which no merge may write down
		if err := h.x.quiet(); err != nil {
			t.Fatal(err)
		}
		if h.x.Stats().Segments < before {
			merges++
		}
		d.mu.Lock()
		d.step = nil
		d.mu.Unlock()
		if h.x.Watermark() != newer {
			t.Fatalf("Watermark() = %d, want %d", h.x.Watermark(), newer)
		}
		for _, crash := range left {
			h.check(crash, older, newer)
		}
		crashes += len(left)
	}
	if crashes < 300 || merges == 0 {
		t.Fatalf("looked at %d crashes and %d merges", crashes, merges)
	}
}

// TestADiskThatFailsAtAnyStepLosesNothing lets each step fail once. The index
// continues in memory, and the next flush writes what is missing.
func TestADiskThatFailsAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	for fail := 0; ; fail++ {
		d := newMemDisk()
		h := newHistory(t, d)
		for range 8 {
			h.change(4)
			waitMerged(t, h.x)
		}
		older := h.seq
		h.change(9)
		steps, failed := 0, false
		d.mu.Lock()
		d.step = func(*memDisk) error {
			steps++
			if steps-1 != fail {
				return nil
			}
			failed = true
			return errDisk
		}
		d.mu.Unlock()
		middle := h.seq
		err := errors.Join(h.x.Flush(), h.x.quiet())
		h.change(5)
		for _, q := range probes {
			h.n.compare(t, h.x, q)
		}
		d.mu.Lock()
		d.step = nil
		again := failed
		left := d.crashes()
		d.mu.Unlock()
		for _, crash := range left {
			h.check(crash, older, middle)
		}
		flushAtLast(t, h.x)
		if h.x.Watermark() != h.seq {
			t.Fatalf("step %d: Watermark() = %d, want %d (%v)", fail, h.x.Watermark(), h.seq, err)
		}
		for _, q := range probes {
			h.n.compare(t, h.x, q)
		}
		h.check(d.clone(), h.seq)
		if !again {
			if fail < 10 {
				t.Fatalf("only %d steps", fail)
			}
			return
		}
	}
}

// TestAResetDuringAMergeStaysEmpty: the merge must not bring back what it read.
func TestAResetDuringAMergeStaysEmpty(t *testing.T) {
	t.Parallel()
	d := newMemDisk()
	h := newHistory(t, d)
	resets := 0
	func() {
		h.x.merging.Lock() // no merge begins before the reset can interrupt it
		defer h.x.merging.Unlock()
		for range 2 * mergeWidth {
			h.change(3)
			if err := h.x.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		// From here on only merges write files, one at a time.
		d.pauseAtSync(func() {
			if resets++; resets == 1 {
				if err := h.x.Reset(); err != nil {
					t.Error(err)
				}
			}
		})
	}()
	h.x.merges.Wait()
	d.pauseAtSync(nil) // Reset would wait for the flush of Close, and that for Reset
	if resets != 1 {
		t.Fatalf("the merges synced %d files, want 1", resets)
	}
	if s := h.x.Stats(); s.Segments != 0 || s.Documents != 0 || h.x.Watermark() != 0 {
		t.Errorf("after the reset %+v", s)
	}
	h.check(d.clone(), 0)
	h.seq = 0
	h.n.docs = map[int64][]Field{}
	h.change(5)
	waitMerged(t, h.x)
	h.check(d.clone(), 5)
}

// flushAtLast flushes to a disk that works again. A first Flush may return the
// error of a merge that failed before.
func flushAtLast(t *testing.T, x *Index) {
	t.Helper()
	var err error
	for range 3 {
		if err = x.Flush(); err == nil {
			return
		}
		x.merges.Wait()
	}
	t.Fatal(err)
}

// TestPutReportsAFullDiskAndKeepsEverything lets the part in memory grow far
// beyond what it should hold.
func TestPutReportsAFullDiskAndKeepsEverything(t *testing.T) {
	t.Parallel()
	d := newMemDisk()
	x, err := open("disk", d, Options{MemoryBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	d.mu.Lock()
	d.step = func(*memDisk) error { return errDisk }
	d.mu.Unlock()
	docs := int64(0)
	for err = nil; err == nil && docs < 1000; {
		docs++
		err = x.Put(Document{ID: docs, Seq: docs, Fields: []Field{{Text: fmt.Sprintf("valve%d of the gateway", docs)}}})
	}
	if !errors.Is(err, errDisk) || x.Watermark() != 0 {
		t.Fatalf("Put number %d: %v", docs, err)
	}
	if got := found(t, x, "gateway"); int64(len(got)) != docs {
		t.Errorf("%d of %d documents are found", len(got), docs)
	}
	d.mu.Lock()
	d.step = nil
	d.mu.Unlock()
	flushAtLast(t, x)
	if x.Watermark() != docs {
		t.Errorf("Watermark() = %d, want %d", x.Watermark(), docs)
	}
	if got := found(t, x, "gateway"); int64(len(got)) != docs {
		t.Errorf("%d of %d documents are found after the flush", len(got), docs)
	}
}
