package fulltext

import (
	"errors"
	"fmt"
	"slices"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// Flush writes the part in memory to disk and moves the watermark. Searches
// continue meanwhile, changes wait. Merges follow in the background; the next
// Flush returns the error of a failed merge.
func (x *Index) Flush() error {
	x.writer.Lock()
	defer x.writer.Unlock()
	if err := x.usable(); err != nil {
		return err
	}
	err := errors.Join(x.flush(), x.failed)
	x.failed = nil
	return err
}

// Close flushes and closes the index. A merge that is running is abandoned.
func (x *Index) Close() error {
	x.writer.Lock()
	if x.closed {
		x.writer.Unlock()
		return nil
	}
	var err error
	if x.broken == nil {
		err = errors.Join(x.flush(), x.failed)
	}
	close(x.stop)
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.writer.Unlock()
	x.merges.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeSegments()
	return err
}

// Reset empties the index: the watermark is 0, and the owner replays all
// changes. It repairs a corrupt index.
func (x *Index) Reset() error {
	x.writer.Lock()
	defer x.writer.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	if err := ignoreMissing(x.disk.remove(manifestName)); err != nil {
		return fmt.Errorf("remove the manifest: %w", err)
	}
	x.drop(x.segments)
	x.segments, x.mem, x.watermark, x.seq, x.mark = nil, newMemPart(), 0, 0, 0
	x.broken, x.failed, x.stale, x.retry = nil, nil, false, 0
	x.clean()
	return x.disk.sync()
}

// noteCorruption ensures that a corrupt index is not opened again. The caller
// holds no lock.
func (x *Index) noteCorruption(err error) {
	if !errors.Is(err, ErrCorrupt) {
		return
	}
	x.writer.Lock() // a running flush would write the manifest again
	defer x.writer.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken = err
		_ = x.disk.remove(manifestName) // Search returns ErrCorrupt in any case
	}
}

// flush writes the part in memory to a segment, and then the manifest. The caller
// holds x.writer.
func (x *Index) flush() error {
	if _, ok := x.disk.(readOnly); ok || x.seq == x.watermark && !x.stale {
		return nil
	}
	fresh, err := x.writeSegment([]source{{part: &x.mem.part, dead: x.mem.dead}})
	if err != nil {
		return fmt.Errorf("flush the full-text index: %w", err)
	}
	var kept, empty []*segment
	for _, s := range x.segments {
		if s.gone == len(s.ids) && !s.merging {
			empty = append(empty, s)
		} else {
			kept = append(kept, s)
		}
	}
	if fresh != nil {
		kept = append(kept, fresh)
	}
	if err := x.writeManifest(kept); err != nil {
		// The manifest may exist: its last step can be the one that failed.
		x.drop([]*segment{fresh})
		return fmt.Errorf("flush the full-text index: %w", err)
	}
	x.mu.Lock()
	x.drop(empty)
	x.segments, x.mem, x.watermark = kept, newMemPart(), x.seq
	x.mu.Unlock()
	x.stale, x.retry = false, 0
	x.clean()
	x.mergeSoon()
	return nil
}

// writeManifest writes the manifest with these segments and all changes.
func (x *Index) writeManifest(segments []*segment) error {
	m := &manifest{Analysis: words.Analysis(), Language: x.lang.Name, Watermark: x.seq, Mark: x.mark}
	for _, s := range segments {
		named := s.manifestSegment
		named.Dead = s.dead
		m.Segments = append(m.Segments, named)
	}
	if err := m.write(x.disk); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

// drop closes replaced segments. Their files stay until no manifest lists them.
func (x *Index) drop(segments []*segment) {
	for _, s := range segments {
		if s != nil {
			s.file.Close()
			x.obsolete = append(x.obsolete, s.Name)
		}
	}
}

func (x *Index) clean() {
	x.obsolete = slices.DeleteFunc(x.obsolete, func(name string) bool {
		return ignoreMissing(x.disk.remove(name)) == nil // on failure the next Open removes it
	})
}
