package keyed

import (
	"encoding/binary"
	"errors"
	"maps"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The first byte of a key is its table. Tables of records have one for each feed.
const (
	refTable        = 'R' // hash of a large value -> number of its rows, size
	largeTable      = 'B' // hash -> large value
	collectionTable = 'C' // collection of vectors -> dimension
	forgottenTable  = 'G' // feed -> tombstones up to this number are removed
	fileTable       = 'F' // name of a blob -> its description
	contentTable    = 'c' // name of a blob -> its content
	indexTable      = 'X' // file of the text index -> its content
	syncedTable     = 'Y' // id of a record -> its state at the last synchronisation
	numbersTable    = 'Z' // id of a feed -> how far it was synchronised
	stateKey        = "S"
)

// The tables of a feed, in the order of store.Feeds.
const (
	rowTables  = "evd" // name -> row
	tombTables = "tuw" // name -> tombstone
	feedTables = "123" // number of a change -> key of the row or tombstone
	idTables   = "ijk" // id -> key of the row
)

func feedNumber(feed store.Feed) int {
	for i, f := range store.Feeds() {
		if f == feed {
			return i
		}
	}
	return 0
}

func rowTable(feed store.Feed) byte { return rowTables[feedNumber(feed)] }

// rowKey is the key of a record's row. The rows of a space are in the order of
// their keys.
func rowKey(n store.RecordName) string { return nameKey(rowTable(n.Feed), n) }

func tombKey(n store.RecordName) string { return nameKey(tombTables[feedNumber(n.Feed)], n) }

func nameKey(table byte, n store.RecordName) string {
	return spaceKey(table, n.Space) + n.Key
}

// spaceKey is how the keys of a space begin.
func spaceKey(table byte, space string) string {
	return string([]byte{table, byte(len(space) >> 8), byte(len(space))}) + space
}

// nameOf returns the name of a record from the key of its row or tombstone.
func nameOf(key string) store.RecordName {
	n := store.RecordName{}
	if at := max(strings.IndexByte(rowTables, key[0]), strings.IndexByte(tombTables, key[0])); at >= 0 {
		n.Feed = store.Feeds()[at]
	}
	length := int(key[1])<<8 | int(key[2])
	n.Space, n.Key = key[3:3+length], key[3+length:]
	return n
}

func isTombKey(key string) bool { return strings.IndexByte(tombTables, key[0]) >= 0 }

func numbered(table byte, n int64) string {
	return string(binary.BigEndian.AppendUint64([]byte{table}, uint64(n))) //nolint:gosec // not negative
}

func feedKey(feed store.Feed, seq int64) string { return numbered(feedTables[feedNumber(feed)], seq) }

// feedEnd is after all changes of a feed.
func feedEnd(feed store.Feed) string { return string(rune(feedTables[feedNumber(feed)] + 1)) }

func idKey(feed store.Feed, id int64) string { return numbered(idTables[feedNumber(feed)], id) }

// numberOf returns the number of a key.
func numberOf(key string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(key[1:]))) //nolint:gosec // not negative
}

func tableKey(table byte, name string) string { return string(rune(table)) + name }

// behind returns the first key after all keys with the prefix.
func behind(prefix string) string {
	raw := []byte(prefix)
	for i := len(raw) - 1; i >= 0; i-- {
		if raw[i] < 0xff {
			raw[i]++
			return string(raw[:i+1])
		}
	}
	return "\xff\xff"
}

// row is a stored record. Times are microseconds since 1970, 0 = none.
type row struct {
	id, seq                   int64
	version                   int64 // of a document
	created, updated, expires int64
	size                      int64 // of an entry's value
	large                     bool  // the value is under its hash
	hash                      string
	metadata                  string
	body                      string // value, embedding, or document
	text                      string // of a vector
}

var errRow = errors.New("it cannot be decoded")

func (r *row) encode() []byte {
	b := make([]byte, 1, 64+len(r.hash)+len(r.metadata)+len(r.body)+len(r.text))
	if r.large {
		b[0] = 1
	}
	for _, n := range []int64{r.id, r.seq, r.version, r.created, r.updated, r.expires, r.size} {
		b = binary.AppendVarint(b, n)
	}
	return appendTexts(b, r.hash, r.metadata, r.body, r.text)
}

func appendTexts(b []byte, all ...string) []byte {
	for _, s := range all {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func decodeRow(raw []byte) (*row, error) {
	if len(raw) == 0 || raw[0] > 1 {
		return nil, errRow
	}
	r := &row{large: raw[0] == 1}
	c := cursor{raw: raw[1:]}
	c.numbers(&r.id, &r.seq, &r.version, &r.created, &r.updated, &r.expires, &r.size)
	c.texts(&r.hash, &r.metadata, &r.body, &r.text)
	return r, c.err
}

// cursor decodes numbers and texts.
type cursor struct {
	raw []byte
	err error
}

func (c *cursor) numbers(all ...*int64) {
	for _, n := range all {
		v, used := binary.Varint(c.raw)
		if used <= 0 {
			c.raw, c.err = nil, errRow
			return
		}
		*n, c.raw = v, c.raw[used:]
	}
}

func (c *cursor) texts(all ...*string) {
	for _, s := range all {
		length, used := binary.Uvarint(c.raw)
		if used <= 0 || length > uint64(len(c.raw)-used) {
			c.raw, c.err = nil, errRow
			return
		}
		*s, c.raw = string(c.raw[used:used+int(length)]), c.raw[used+int(length):] //nolint:gosec // bounded above
	}
}

// tombstone is in place of a row that was deleted.
type tombstone struct {
	id, seq, at int64
	swept       bool
}

func (t *tombstone) encode() []byte {
	b := []byte{0}
	if t.swept {
		b[0] = 1
	}
	for _, n := range []int64{t.id, t.seq, t.at} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func decodeTombstone(raw []byte) (*tombstone, error) {
	if len(raw) == 0 {
		return nil, errRow
	}
	t := &tombstone{swept: raw[0] == 1}
	c := cursor{raw: raw[1:]}
	c.numbers(&t.id, &t.seq, &t.at)
	return t, c.err
}

func (s state) clone() state {
	s.seq = maps.Clone(s.seq)
	return s
}

func (s state) encode() []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(s.identity))), s.identity...)
	b = binary.AppendVarint(b, s.id)
	for _, feed := range store.Feeds() {
		b = binary.AppendVarint(b, s.seq[feed])
	}
	return b
}

func decodeState(raw []byte) (state, error) {
	s := state{seq: map[store.Feed]int64{}}
	if raw == nil {
		return s, nil
	}
	c := cursor{raw: raw}
	c.texts(&s.identity)
	c.numbers(&s.id)
	for _, feed := range store.Feeds() {
		var n int64
		c.numbers(&n)
		s.seq[feed] = n
	}
	return s, c.err
}

func encodeNumbers(all ...int64) (b []byte) {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// decodeRef returns the number of rows of a large value, and its size.
func decodeRef(raw []byte) (rows, size int64) {
	c := cursor{raw: raw}
	c.numbers(&rows, &size)
	return rows, size
}
