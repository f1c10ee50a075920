package bucket

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// segment is an object with some pages of the database: blocks of compressed pages, then an index. It is immutable.
type segment struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Index is the offset of the index, Sum its SHA-256 in hex.
	Index int64  `json:"index"`
	Sum   string `json:"sum"`
	// Count is the number of pages.
	Count int `json:"count"`
}

// index describes the pages of a segment, in the order of their numbers.
type index struct {
	numbers []uint32
	hashes  []uint64
	blocks  []int64 // the ends of the blocks
}

// blockPages is the number of pages that are compressed together.
const blockPages = 16

func hashOf(page []byte) uint64 { return xxhash.Sum64(page) }

// encode writes a segment. The numbers are sorted.
func encode(w io.Writer, numbers []uint32, page func(number uint32) ([]byte, error)) (index, segment, error) {
	x := index{numbers: numbers, hashes: make([]uint64, len(numbers))}
	counted := &counter{w: w}
	for from := 0; from < len(numbers); from += blockPages {
		z, err := flate.NewWriter(counted, flate.BestSpeed)
		if err != nil {
			return index{}, segment{}, err
		}
		for i, n := range numbers[from:min(from+blockPages, len(numbers))] {
			data, err := page(n)
			if err == nil {
				x.hashes[from+i] = hashOf(data)
				_, err = z.Write(data)
			}
			if err != nil {
				return index{}, segment{}, err
			}
		}
		if err := z.Close(); err != nil {
			return index{}, segment{}, err
		}
		x.blocks = append(x.blocks, counted.n)
	}
	raw := x.encode()
	sum := sha256.Sum256(raw)
	s := segment{Index: counted.n, Sum: hex.EncodeToString(sum[:]), Count: len(numbers)}
	_, err := counted.Write(raw)
	s.Size = counted.n
	return x, s, err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// encode returns the index: the number of pages; the numbers and the ends of the
// blocks as differences; the hashes.
func (x index) encode() []byte {
	raw := binary.AppendUvarint(nil, uint64(len(x.numbers)))
	last := uint32(0)
	for i, n := range x.numbers {
		raw = binary.AppendUvarint(raw, uint64(n-last))
		raw = binary.LittleEndian.AppendUint64(raw, x.hashes[i])
		last = n
	}
	at := int64(0)
	for _, end := range x.blocks {
		raw = binary.AppendUvarint(raw, uint64(end-at))
		at = end
	}
	return raw
}

var errIndex = errors.New("the index is not valid")

func decodeIndex(raw []byte, s segment) (index, error) {
	sum := sha256.Sum256(raw)
	if hex.EncodeToString(sum[:]) != s.Sum {
		return index{}, errIndex
	}
	r := bytes.NewReader(raw)
	count, err := binary.ReadUvarint(r)
	if err != nil || count != uint64(s.Count) || count > uint64(len(raw)) {
		return index{}, errIndex
	}
	x := index{numbers: make([]uint32, count), hashes: make([]uint64, count)}
	last := uint64(0)
	for i := range x.numbers {
		step, err := binary.ReadUvarint(r)
		if err == nil {
			err = binary.Read(r, binary.LittleEndian, &x.hashes[i])
		}
		if err != nil {
			return index{}, errIndex
		}
		last += step
		x.numbers[i] = uint32(last) //nolint:gosec // the sum was checked
	}
	at := int64(0)
	for range (int(count) + blockPages - 1) / blockPages {
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return index{}, errIndex
		}
		at += int64(size) //nolint:gosec // the sum was checked
		x.blocks = append(x.blocks, at)
	}
	return x, nil
}

func (x index) find(number uint32) (int, bool) { return slices.BinarySearch(x.numbers, number) }

func (x index) block(i int) (from, to int64) {
	if i > 0 {
		from = x.blocks[i-1]
	}
	return from, x.blocks[i]
}

func damaged(b *objstore.Bucket, name string, err error) error {
	return tea.Errorf(tea.InternalError, "%s%s is damaged: %v; restore it from a backup of the bucket", b.Address(), name, err)
}

// readIndex reads the index of a segment.
func readIndex(ctx context.Context, b *objstore.Bucket, s segment) (index, error) {
	raw, err := readRange(ctx, b, s.Name, s.Index, s.Size-s.Index)
	if err != nil {
		return index{}, err
	}
	x, err := decodeIndex(raw, s)
	if err != nil {
		return index{}, damaged(b, s.Name, err)
	}
	return x, nil
}

func readRange(ctx context.Context, b *objstore.Bucket, name string, from, length int64) ([]byte, error) {
	_, r, err := b.Get(ctx, name, from, length)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(r)
	return raw, errors.Join(err, r.Close())
}

const (
	// gap is the largest number of unneeded bytes that are read to save a request.
	gap = 256 << 10
	// readAtOnce bounds the bytes of a request, which are in memory.
	readAtOnce = 8 << 20
)

// readPages reads the pages at some positions, which are sorted, and calls put
// for each.
func readPages(ctx context.Context, b *objstore.Bucket, s segment, x index, at []int, pageSize int, put func(number uint32, page []byte) error) error {
	for len(at) > 0 {
		from, to := x.block(at[0] / blockPages)
		n := 1
		for n < len(at) {
			begin, end := x.block(at[n] / blockPages)
			if begin > to+gap || end-from > readAtOnce {
				break
			}
			to = end
			n++
		}
		raw, err := readRange(ctx, b, s.Name, from, to-from)
		if err != nil {
			return err
		}
		var failed error // an error of this device, not of the segment
		err = decodePages(raw, from, x, at[:n], pageSize, func(number uint32, page []byte) error {
			failed = put(number, page)
			return failed
		})
		switch {
		case failed != nil:
			return failed
		case err != nil:
			return damaged(b, s.Name, err)
		}
		at = at[n:]
	}
	return nil
}

// decodePages calls put for pages in blocks that begin at an offset of their
// segment.
func decodePages(raw []byte, offset int64, x index, at []int, pageSize int, put func(uint32, []byte) error) error {
	buf := make([]byte, blockPages*pageSize)
	open := -1
	for _, i := range at {
		if block := i / blockPages; block != open {
			from, to := x.block(block)
			if to-offset > int64(len(raw)) {
				return io.ErrUnexpectedEOF
			}
			pages := min(blockPages, len(x.numbers)-block*blockPages)
			z := flate.NewReader(bytes.NewReader(raw[from-offset : to-offset]))
			if _, err := io.ReadFull(z, buf[:pages*pageSize]); err != nil {
				return err
			}
			open = block
		}
		page := buf[i%blockPages*pageSize:][:pageSize]
		if hashOf(page) != x.hashes[i] {
			return fmt.Errorf("page %d differs from its hash", x.numbers[i])
		}
		if err := put(x.numbers[i], page); err != nil {
			return err
		}
	}
	return nil
}

// fan is the number of segments of a level that are merged.
const fan = 8

// levelOf returns the level of a segment with some pages: the logarithm of their
// number.
func levelOf(pages int) (level int) {
	for ; pages >= fan; pages /= fan {
		level++
	}
	return level
}

// plan returns the pages of the next segment, and the number of segments to keep; the next segment replaces the others.
// The first segment is the base, with most of the pages. A page is uploaded again when its segment is merged with
// others of its level, so uploads grow with the logarithm of the number of pages.
func plan(segments []segment, indexes func(segment) index, changed []uint32, count uint32) (pages []uint32, keep int) {
	total := len(changed)
	for i, s := range segments {
		if i > 0 {
			total += s.Count
		}
	}
	half := int(count) / 2
	if len(segments) == 0 || len(changed) > half || total > half && total > fan*len(changed) {
		all := make([]uint32, count)
		for i := range all {
			all[i] = uint32(i) + 1 //nolint:gosec // it is below count
		}
		return all, 0
	}
	pages, keep = changed, len(segments)
	for {
		level, from := levelOf(len(pages)), keep
		for from > 1 && levelOf(segments[from-1].Count) <= level {
			from--
		}
		if keep-from < fan-1 {
			break
		}
		for _, s := range segments[from:keep] {
			pages = append(pages, indexes(s).numbers...)
		}
		slices.Sort(pages)
		pages, keep = slices.Compact(pages), from
	}
	last := len(pages)
	for last > 0 && pages[last-1] > count { // the database has shrunk
		last--
	}
	return pages[:last], keep
}
