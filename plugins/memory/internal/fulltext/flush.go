package fulltext

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Flush writes what is in memory to disk and moves the watermark. Searches and
// changes go on meanwhile. Merges follow in the background; the first error
// they met is returned by the next Flush.
func (x *Index) Flush() error {
	if err := x.usable(); err != nil {
		return err
	}
	x.commit.Lock()
	err := errors.Join(x.flushLocked(), x.failed)
	x.failed = nil
	x.commit.Unlock()
	x.wake()
	return err
}

// Close flushes and closes the index. A merge that is under way is given up.
func (x *Index) Close() error {
	err := x.Flush()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	x.closed = true
	x.mu.Unlock()
	close(x.stop)
	x.worker.Wait()
	x.commit.Lock()
	defer x.commit.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.segments {
		s.release()
	}
	x.segments = nil
	return err
}

// Reset empties the index: the watermark is 0, and the owner replays all
// changes. It is how a corrupt index is mended.
func (x *Index) Reset() error {
	x.writer.Lock()
	defer x.writer.Unlock()
	x.commit.Lock()
	defer x.commit.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	if err := ignoreMissing(x.disk.remove(manifestName)); err != nil {
		return fmt.Errorf("remove the manifest: %w", err)
	}
	next := x.next
	for _, s := range x.segments {
		s.dropped.Store(true)
	}
	x.dropSegments()
	x.next = next // a file that is still read keeps its name
	x.mem, x.frozen, x.broken, x.failed = newMemPart(&x.mu), nil, nil, nil
	return x.disk.sync()
}

// usable returns why the index cannot be used, if so.
func (x *Index) usable() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return ErrClosed
	}
	return x.broken
}

// noteCorruption makes sure that a corrupt index is not opened again.
func (x *Index) noteCorruption(err error) {
	if !errors.Is(err, ErrCorrupt) {
		return
	}
	x.commit.Lock() // a flush that is under way would write the manifest again
	defer x.commit.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken = err
		_ = x.disk.remove(manifestName) // Search says why in any case
	}
}

// relieve has the part in memory written when it has grown too large. It waits
// only if the background does not keep up.
func (x *Index) relieve(size int) error {
	if size < x.limit {
		return nil
	}
	if size < 4*x.limit {
		x.wake()
		return nil
	}
	x.commit.Lock()
	defer x.commit.Unlock()
	return x.flushLocked()
}

func (x *Index) wake() {
	select {
	case x.work <- struct{}{}:
	default:
	}
}

// quiet merges what there is to merge and returns when it is done.
func (x *Index) quiet() error {
	x.merging.Lock()
	defer x.merging.Unlock()
	return x.mergeAll()
}

// background flushes and merges when it is woken.
func (x *Index) background() {
	defer x.worker.Done()
	for {
		select {
		case <-x.stop:
			return
		case <-x.work:
		}
		x.mu.RLock()
		full := x.mem.size >= x.limit && x.broken == nil
		x.mu.RUnlock()
		if full {
			x.commit.Lock()
			if err := x.flushLocked(); err != nil {
				x.failed = err
			}
			x.commit.Unlock()
		}
		if err := x.quiet(); err != nil && !errors.Is(err, errStopped) {
			x.noteCorruption(err)
			x.commit.Lock()
			x.failed = err
			x.commit.Unlock()
		}
	}
}

// freeze sets the part in memory aside for writing, with the state of all
// segments at that moment. One that an earlier flush failed to write goes
// first, and more tells that another one waits.
func (x *Index) freeze() (frozen *memPart, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil || x.closed {
		return nil, false
	}
	if x.frozen != nil {
		return x.frozen, true
	}
	if x.seq > x.watermark {
		x.frozen, x.mem = x.mem, newMemPart(&x.mu)
		x.frozen.saved = x.frozen.dead
		for _, s := range x.segments {
			s.saved = s.dead
		}
	}
	return x.frozen, false
}

// flushLocked writes what is in memory. The caller holds x.commit.
func (x *Index) flushLocked() error {
	for {
		frozen, more := x.freeze()
		if frozen == nil {
			return nil
		}
		if err := x.writeFrozen(frozen); err != nil {
			return fmt.Errorf("flush the full-text index: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// writeFrozen makes the frozen part a segment.
func (x *Index) writeFrozen(frozen *memPart) error {
	fresh, err := x.writeSegment(func(w io.Writer) (int, error) { return writeMem(w, frozen) })
	if err != nil {
		return err
	}
	x.mu.RLock()
	var keep, gone []*liveSegment
	for _, s := range x.segments {
		if s.saved.n == len(s.ids) && !s.merging {
			gone = append(gone, s)
		} else {
			keep = append(keep, s)
		}
	}
	x.mu.RUnlock()
	if fresh != nil {
		keep = append(keep, fresh)
	}
	if err := x.writeManifest(frozen.lastSeq, keep); err != nil {
		x.leave(fresh)
		return err
	}
	x.mu.Lock()
	frozen.dead.since(frozen.saved, func(ord uint32) { fresh.killLater(frozen.ids[ord]) })
	x.segments, x.frozen, x.watermark = keep, nil, frozen.lastSeq
	x.mu.Unlock()
	x.retire(gone)
	return nil
}

// killLater marks a document dead that died while its segment was written.
func (s *liveSegment) killLater(id int64) {
	if ord, ok := s.find(id); ok {
		s.dead = s.dead.with(ord)
	}
}

// saveLater is killLater for the state that is on disk.
func (s *liveSegment) saveLater(id int64) {
	if ord, ok := s.find(id); ok {
		s.saved = s.saved.with(ord)
	}
}

// writeSegment writes a segment file and opens it. A segment without documents
// is none.
func (x *Index) writeSegment(write func(io.Writer) (docs int, err error)) (*liveSegment, error) {
	x.mu.Lock()
	x.next++
	name := fmt.Sprintf("%08d.seg", x.next)
	x.mu.Unlock()
	docs := 0
	err := writeFile(x.disk, name, func(w io.Writer) (err error) {
		docs, err = write(w)
		return err
	})
	if err == nil && docs == 0 {
		return nil, x.disk.remove(name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write segment %s: %w", name, err), ignoreMissing(x.disk.remove(name)))
	}
	file, size, err := x.disk.open(name)
	if err != nil {
		return nil, fmt.Errorf("open segment %s: %w", name, err)
	}
	s, err := openSegment(name, file, size, false)
	if err != nil {
		return nil, err
	}
	x.arm(s)
	return &liveSegment{segment: s}, nil
}

// writeManifest writes the state that the last flush has frozen.
func (x *Index) writeManifest(watermark int64, segments []*liveSegment) error {
	m := &manifest{Analysis: analysisName(), Language: x.lang.name, Watermark: watermark}
	x.mu.RLock()
	m.Next = x.next
	for _, s := range segments {
		m.Segments = append(m.Segments, manifestSegment{Name: s.name, Sum: s.sum, Dead: s.saved.bytes()})
	}
	x.mu.RUnlock()
	if err := m.write(x.disk); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

// leave lets go of a segment whose manifest could not be written. Its file
// stays, because the manifest may be there all the same: it is its last step
// that failed. Else the next Open sweeps the file.
func (x *Index) leave(s *liveSegment) {
	if s != nil {
		s.release()
	}
}

// retire lets go of segments that do not count any more.
func (x *Index) retire(segments []*liveSegment) {
	for _, s := range segments {
		s.dropped.Store(true)
		s.release()
	}
}

// replace returns the segments with some of them exchanged for one.
func replace(segments, old []*liveSegment, fresh *liveSegment) []*liveSegment {
	var out []*liveSegment
	for _, s := range segments {
		if !slices.Contains(old, s) {
			out = append(out, s)
		}
	}
	if fresh != nil {
		out = append(out, fresh)
	}
	return out
}
