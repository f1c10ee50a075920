package vector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

// sealed makes all checksums of a file right, so that the fuzzer gets past
// them.
func sealed(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < headerSize {
		return b
	}
	seal := func(from, to int64) {
		if from >= 0 && from+sumSize <= to && to <= int64(len(b)) {
			binary.LittleEndian.PutUint32(b[to-sumSize:], crc32.Checksum(b[from:to-sumSize], castagnoli()))
		}
	}
	seal(0, headerSize)
	var h header
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil || h.size() != int64(len(b)) {
		return b
	}
	seal(headerSize, headerSize+h.frontSize())
	for at := headerSize + h.frontSize(); at < h.rowsAt(); at += h.blockSize() {
		seal(at, at+h.blockSize())
	}
	for at := h.rowsAt(); at < h.size(); at += h.rowSize() {
		seal(at, at+h.rowSize())
	}
	return b
}

// inMemory is a file in memory.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func FuzzRead(f *testing.F) {
	good := smallFile(f)
	f.Add(good, uint16(0), byte(0))
	f.Add(good, uint16(headerSize+3), byte(1))
	f.Add(good[:headerSize], uint16(20), byte(0xff))
	f.Add([]byte(magic), uint16(0), byte(1))
	o := mustDefaults(f)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, change byte) {
		if len(b) > 0 {
			b = bytes.Clone(b)
			b[int(at)%len(b)] ^= change
		}
		for _, b := range [][]byte{b, sealed(b)} {
			g, h, err := read(inMemory{bytes.NewReader(b)}, int64(len(b)), o)
			if err != nil {
				continue
			}
			useRead(t, g, h.Watermark, o)
		}
	})
}

// useRead searches, changes and mends what was read.
func useRead(t *testing.T, g *generation, seq int64, o Options) {
	t.Helper()
	ix := still(t, o)
	ix.gen, ix.seq = g, seq
	query := []float32{1, 2, 3, 4, 5}
	for _, o := range []SearchOptions{{}, {Exact: true}, {Ef: 4}, {Among: []int64{2, 4, 6, 8}}} {
		hits, err := ix.Search(t.Context(), query, 3, o)
		if errors.Is(err, ErrDamaged) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if _, ok := g.slotOf()[h.ID]; !ok {
				t.Errorf("hit %v is not a vector", h)
			}
		}
		if o.Among == nil && len(hits) != min(3, g.live) {
			t.Errorf("%d hits of %d vectors", len(hits), g.live)
		}
	}
	if seq == 1<<63-1 {
		return // there is no change after it
	}
	if err := ix.Put(1, seq+1, query); err != nil {
		t.Fatal(err)
	}
	link(t, ix)
	if err := ix.compact(t.Context(), ix.gen.viewAt(ix.seq)); errors.Is(err, ErrDamaged) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if hits := search(t, ix, query, 1, SearchOptions{Exact: true}); len(hits) != 1 || hits[0].Similarity < 0.999 {
		t.Errorf("%v", hits)
	}
}

// link adds all complete blocks to the graph.
func link(t *testing.T, ix *Index) {
	t.Helper()
	for ix.gen.built.Load() < ix.gen.linkable() {
		if err := ix.insertNext(t.Context(), ix.gen.viewAt(ix.seq)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSealedFileIsTheSame(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	if !bytes.Equal(good, sealed(good)) {
		t.Error("the checksums of sections are elsewhere")
	}
}
