package vector

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The companion file is little-endian: a header, then these sections, each
// followed by its CRC-32C.
//
//	ids      for each slot its id
//	dead     a bitmap of the tombstones, a 64-bit word for each block
//	links    for each slot in the graph the neighbours in the lowest layer:
//	         how many, then room for 2M slots
//	levels   for each slot in the graph its highest layer, one byte
//	twins    for each slot in the graph the slot it hangs on, or its own
//	upper    for each slot in the graph that is in higher layers, layer by
//	         layer: how many neighbours, then room for M
//	rows     for each block a section: its normalised vectors
//
// The header says how long each section is, so that the size of the file is
// known before anything is allocated for it.
const (
	magic         = "tea-vec\n"
	formatVersion = 1
	headerSize    = 128
	sumSize       = 4
)

// castagnoli is the table of the sums; it is made at the first use rather than
// when the process starts.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header is the beginning of the file.
type header struct {
	dimension uint32
	m         uint32
	watermark int64
	owner     [sha256.Size]byte
	slots     uint32
	built     uint32
	entry     uint64
	upper     uint64 // words of the section
}

// encode returns the header's bytes: the magic, the version, the fields, zeros
// and a checksum.
func (h header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, h.dimension)
	b = binary.LittleEndian.AppendUint32(b, h.m)
	b = binary.LittleEndian.AppendUint32(b, h.slots)
	b = binary.LittleEndian.AppendUint32(b, h.built)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.watermark))
	b = binary.LittleEndian.AppendUint64(b, h.entry)
	b = binary.LittleEndian.AppendUint64(b, h.upper)
	b = append(b, h.owner[:]...)
	b = b[:headerSize-sumSize]
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// decodeHeader reads a header and checks that it agrees with the options and
// the size of the file.
func decodeHeader(b []byte, size int64, o Options) (header, error) {
	var h header
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return h, fmt.Errorf("%w: it does not begin like one", ErrCorrupt)
	}
	// Only this much is the same in all versions.
	if version := binary.LittleEndian.Uint32(b[8:]); version > formatVersion {
		return h, fmt.Errorf("%w: version %d, this program reads %d", ErrVersion, version, formatVersion)
	}
	sum := binary.LittleEndian.Uint32(b[headerSize-sumSize:])
	if crc32.Checksum(b[:headerSize-sumSize], castagnoli()) != sum {
		return h, fmt.Errorf("%w: checksum of the header", ErrCorrupt)
	}
	h = header{
		dimension: binary.LittleEndian.Uint32(b[12:]),
		m:         binary.LittleEndian.Uint32(b[16:]),
		slots:     binary.LittleEndian.Uint32(b[20:]),
		built:     binary.LittleEndian.Uint32(b[24:]),
		watermark: int64(binary.LittleEndian.Uint64(b[28:])),
		entry:     binary.LittleEndian.Uint64(b[36:]),
		upper:     binary.LittleEndian.Uint64(b[44:]),
		owner:     [sha256.Size]byte(b[52:]),
	}
	if h.owner != sha256.Sum256([]byte(o.Owner)) {
		return h, fmt.Errorf("%w: its owner is not %q", ErrOther, o.Owner)
	}
	if h.dimension != uint32(o.Dimension) {
		return h, fmt.Errorf("%w: its dimension is %d instead of %d", ErrOther, h.dimension, o.Dimension)
	}
	if h.m < 2 || h.m > maxM || h.built > h.slots || h.upper > uint64(h.built)*maxLevel*(1+maxM) || h.watermark < 0 {
		return h, fmt.Errorf("%w: the header contradicts itself", ErrCorrupt)
	}
	if want := h.layout().end; size != want {
		return h, fmt.Errorf("%w: %d bytes instead of %d", ErrCorrupt, size, want)
	}
	return h, nil
}

// layout is where the sections begin.
type layout struct {
	ids, dead, links, levels, twins, upper, rows, end int64
	block                                             int64 // the distance between two blocks' rows
}

// blocks returns how many blocks there are.
func (h header) blocks() int64 { return (int64(h.slots) + blockSlots - 1) / blockSlots }

func (h header) layout() layout {
	var l layout
	l.ids = headerSize
	l.dead = l.ids + int64(h.slots)*8 + sumSize
	l.links = l.dead + h.blocks()*8 + sumSize
	l.levels = l.links + int64(h.built)*(1+2*int64(h.m))*4 + sumSize
	l.twins = l.levels + int64(h.built) + sumSize
	l.upper = l.twins + int64(h.built)*4 + sumSize
	l.rows = l.upper + int64(h.upper)*4 + sumSize
	l.block = blockSlots*int64(h.dimension)*4 + sumSize
	l.end = l.rows + int64(h.slots)*int64(h.dimension)*4 + h.blocks()*sumSize
	return l
}
