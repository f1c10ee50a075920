package fulltext

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"
)

// A table is a sorted run of keys with small values, cut into blocks. In a
// block a key names what it shares with the key before; a checksum ends the
// block. The index of a table, kept in memory, has the first key of each block.

const (
	blockBytes    = 2 << 10
	maxBlockBytes = 2*blockBytes + 2*maxKeyBytes
	maxKeyBytes   = 6 * maxFormBytes
	crcBytes      = 4
)

// checksum asks for the table each time: it is made once, at the first use
// rather than when the process starts.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// appendChecksum adds the checksum of what is there.
func appendChecksum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// checked takes the checksum off data. It reports false if it does not match.
func checked(data []byte, trust bool) ([]byte, bool) {
	if len(data) < crcBytes {
		return nil, false
	}
	body := data[:len(data)-crcBytes]
	return body, trust || checksum(body) == binary.LittleEndian.Uint32(data[len(body):])
}

// tableWriter writes a table; the keys come in ascending order.
type tableWriter struct {
	w     io.Writer
	block []byte
	last  []byte
	index []byte
	size  int64
}

// add adds a key.
func (t *tableWriter) add(key string, value []byte) error {
	shared := 0
	if len(t.block) == 0 {
		t.index = binary.AppendUvarint(t.index, uint64(len(key)))
		t.index = append(t.index, key...)
	} else {
		for shared < len(key) && shared < len(t.last) && key[shared] == t.last[shared] {
			shared++
		}
	}
	t.block = binary.AppendUvarint(t.block, uint64(shared))
	t.block = binary.AppendUvarint(t.block, uint64(len(key)-shared))
	t.block = append(t.block, key[shared:]...)
	t.block = binary.AppendUvarint(t.block, uint64(len(value)))
	t.block = append(t.block, value...)
	t.last = append(t.last[:0], key...)
	if len(t.block) >= blockBytes {
		return t.flush()
	}
	return nil
}

// flush ends a block.
func (t *tableWriter) flush() error {
	if len(t.block) == 0 {
		return nil
	}
	block := appendChecksum(t.block)
	t.index = binary.AppendUvarint(t.index, uint64(len(block)))
	t.block = block[:0]
	t.size += int64(len(block))
	_, err := t.w.Write(block)
	return err
}

// table reads a table.
type table struct {
	src    io.ReaderAt
	trust  bool // checksums are not looked at; for fuzzing what lies behind them
	keys   []byte
	ends   []uint32 // of the keys
	starts []int64  // of the blocks, and the end of the last one
}

// newTable reads the index of a table whose blocks lie between two offsets.
func newTable(src io.ReaderAt, index []byte, from, to int64, trust bool) (*table, bool) {
	t := &table{src: src, trust: trust}
	blocks := int((to-from)/blockBytes) + 1
	t.ends, t.starts = make([]uint32, 0, blocks), make([]int64, 0, blocks+1)
	var last []byte
	for len(index) > 0 {
		keyLen, n := binary.Uvarint(index)
		if n <= 0 || keyLen > maxKeyBytes || keyLen > uint64(len(index)-n) {
			return nil, false
		}
		key := index[n : n+int(keyLen)]
		index = index[n+int(keyLen):]
		size, n := binary.Uvarint(index)
		if n <= 0 || size <= crcBytes || size > maxBlockBytes || int64(size) > to-from {
			return nil, false
		}
		index = index[n:]
		if len(t.ends) > 0 && bytes.Compare(last, key) >= 0 {
			return nil, false
		}
		last = key
		t.keys = append(t.keys, key...)
		t.ends = append(t.ends, uint32(len(t.keys)))
		t.starts = append(t.starts, from)
		from += int64(size)
	}
	t.keys = bytes.Clone(t.keys)
	t.starts = append(t.starts, from)
	return t, from == to
}

// firstKey returns the first key of a block.
func (t *table) firstKey(block int) []byte {
	from := uint32(0)
	if block > 0 {
		from = t.ends[block-1]
	}
	return t.keys[from:t.ends[block]]
}

// tableCursor walks through a table. next moves on to a key; key and value are
// valid until the next call.
type tableCursor struct {
	table *table
	block int // the next one to read
	buf   []byte
	data  []byte
	key   []byte
	value []byte
	err   error
}

// seek returns a cursor before the first key that is not less than the given
// one, or before a few keys that are less: the caller skips them.
func (t *table) seek(key string) *tableCursor {
	block := sort.Search(len(t.ends), func(i int) bool { return string(t.firstKey(i)) > key })
	return &tableCursor{table: t, block: max(0, block-1)}
}

// next moves on. It reports false at the end and on an error.
func (c *tableCursor) next() bool {
	if c.err != nil {
		return false
	}
	for len(c.data) == 0 {
		if c.block >= len(c.table.ends) || !c.load() {
			return false
		}
	}
	shared, n := binary.Uvarint(c.data)
	if n <= 0 || shared > uint64(len(c.key)) {
		return c.fail()
	}
	rest, m := binary.Uvarint(c.data[n:])
	n += m
	if m <= 0 || rest > uint64(len(c.data)-n) || shared+rest > maxKeyBytes {
		return c.fail()
	}
	c.key = append(c.key[:shared], c.data[n:n+int(rest)]...)
	n += int(rest)
	size, m := binary.Uvarint(c.data[n:])
	n += m
	if m <= 0 || size > uint64(len(c.data)-n) {
		return c.fail()
	}
	c.value = c.data[n : n+int(size)]
	c.data = c.data[n+int(size):]
	return true
}

// load reads the next block.
func (c *tableCursor) load() bool {
	from, to := c.table.starts[c.block], c.table.starts[c.block+1]
	if cap(c.buf) < int(to-from) {
		c.buf = make([]byte, max(int(to-from), blockBytes+blockBytes/4))
	}
	c.buf = c.buf[:to-from]
	if _, err := c.table.src.ReadAt(c.buf, from); err != nil {
		c.err = readError(err)
		return false
	}
	data, ok := checked(c.buf, c.table.trust)
	if !ok {
		return c.fail()
	}
	c.data, c.key = data, c.key[:0]
	c.block++
	return true
}

func (c *tableCursor) fail() bool {
	c.err = corrupt("a dictionary block is broken")
	return false
}

// find returns the value of a key.
func (t *table) find(key string) (value []byte, ok bool, err error) {
	c := t.seek(key)
	for c.next() {
		if string(c.key) >= key {
			return c.value, string(c.key) == key, nil
		}
	}
	return nil, false, c.err
}
