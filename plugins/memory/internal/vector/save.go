package vector

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Flush writes vectors and graph to the companion file, as they are when it
// begins; it does nothing if the file has them. Searches and changes go on
// meanwhile. The file is written beside the old one, synced and put in its
// place: whatever happens, the next Open finds one of them. The whole file is
// written each time, so on flash memory flush rarely: at the end, and when
// there is enough to repeat after a crash to be worth it.
func (ix *Index) Flush() error {
	ix.flushing.Lock()
	defer ix.flushing.Unlock()
	if err := ix.flush(); err != nil {
		return fmt.Errorf("flush the vector index: %w", err)
	}
	return nil
}

func (ix *Index) flush() error {
	// The graph must not change until it is written, so what is to be saved is
	// looked at with the builder stopped.
	ix.linking.Lock()
	release := onlyOnce(ix.linking.Unlock)
	defer release()
	v, err := ix.look()
	if err != nil {
		return err
	}
	state := savedState{seq: v.seq, built: v.built, generation: v.number}
	ix.mu.RLock()
	saved := ix.saved == state
	ix.mu.RUnlock()
	if saved {
		return nil
	}
	temporary := ix.path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // gone when it was renamed
	err = v.save(f, ix.options.Owner, release)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temporary, ix.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(ix.path))
	}
	if err != nil {
		return err
	}
	ix.mu.Lock()
	ix.saved = state
	ix.mu.Unlock()
	return nil
}

// onlyOnce returns a function that calls f the first time.
func onlyOnce(f func()) func() {
	return func() {
		if f != nil {
			f()
		}
		f = nil
	}
}

// syncDir makes a rename in the directory last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// sectionWriter writes sections. The first error stays.
type sectionWriter struct {
	w   *bufio.Writer
	sum uint32
	err error
	buf []byte
}

func (s *sectionWriter) write(b []byte) {
	if s.err == nil {
		s.sum = crc32.Update(s.sum, castagnoli(), b)
		_, s.err = s.w.Write(b)
	}
}

func (s *sectionWriter) uint64(n uint64) {
	s.buf = binary.LittleEndian.AppendUint64(s.buf[:0], n)
	s.write(s.buf)
}

func (s *sectionWriter) words(words []atomic.Uint32) {
	s.buf = s.buf[:0]
	for i := range words {
		s.buf = binary.LittleEndian.AppendUint32(s.buf, words[i].Load())
	}
	s.write(s.buf)
}

// end writes the checksum of the section.
func (s *sectionWriter) end() {
	sum := s.sum
	s.buf = binary.LittleEndian.AppendUint32(s.buf[:0], sum)
	s.write(s.buf)
	s.sum = 0
}

// save writes the view. graphDone is called when the graph may change again.
func (v *view) save(to io.Writer, owner string, graphDone func()) error {
	h := header{
		dimension: uint32(v.dimension), m: uint32(v.m), watermark: v.seq,
		owner: sha256.Sum256([]byte(owner)), slots: v.count, built: v.built, entry: v.entry.Load(),
	}
	for slot := range v.built {
		h.upper += uint64(len(v.blocks[slot>>blockBits].upper[slot%blockSlots]))
	}
	s := &sectionWriter{w: bufio.NewWriterSize(to, 1<<18)}
	s.write(h.encode())
	s.sum = 0
	for slot := range v.count {
		s.uint64(uint64(v.id(slot)))
	}
	s.end()
	for n := range v.blocks {
		s.uint64(v.dead(n))
	}
	s.end()
	v.saveGraph(s)
	graphDone()
	for n, b := range v.blocks {
		s.buf = s.buf[:0]
		for i := range min(blockSlots, int(v.count)-n*blockSlots) {
			for _, x := range b.rows[i*v.stride : i*v.stride+v.dimension] {
				s.buf = binary.LittleEndian.AppendUint32(s.buf, math.Float32bits(x))
			}
		}
		s.write(s.buf)
		s.end()
	}
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

func (v *view) saveGraph(s *sectionWriter) {
	blank := make([]atomic.Uint32, 1+v.room(0))
	for slot := range v.built {
		if v.blocks[slot>>blockBits].links == nil {
			s.words(blank) // all of its block were tombstones in time
			continue
		}
		s.words(v.links(slot, 0))
	}
	s.end()
	for slot := range v.built {
		s.write([]byte{byte(v.level(slot))})
	}
	s.end()
	on := make([]uint32, v.built)
	for slot := range v.built {
		if v.isTwin(slot) {
			continue
		}
		on[slot] = slot
		for twin, more := v.after(slot); more; twin, more = v.after(twin) {
			on[twin] = slot
		}
	}
	for _, slot := range on {
		s.buf = binary.LittleEndian.AppendUint32(s.buf[:0], slot)
		s.write(s.buf)
	}
	s.end()
	for slot := range v.built {
		s.words(v.blocks[slot>>blockBits].upper[slot%blockSlots])
	}
	s.end()
}

// dead returns the bitmap of the block's tombstones.
func (v *view) dead(n int) uint64 {
	marks := uint64(0)
	for i := range min(blockSlots, int(v.count)-n*blockSlots) {
		if !v.visible(uint32(n*blockSlots + i)) {
			marks |= 1 << i
		}
	}
	return marks
}
