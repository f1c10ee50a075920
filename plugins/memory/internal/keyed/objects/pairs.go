package objects

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"sort"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
)

// pairs are sorted by their keys, without duplicates. A pair without a value is a
// deletion.
type pairs []keyed.Pair

// find returns the position of a key, or its insertion point.
func (p pairs) find(key string) (at int, found bool) {
	at = sort.Search(len(p), func(i int) bool { return p[i].Key >= key })
	return at, at < len(p) && p[at].Key == key
}

// between returns the pairs from a key up to, not including, another; "" is the end.
func (p pairs) between(from, to string) pairs {
	first, _ := p.find(from)
	last := len(p)
	if to != "" {
		last, _ = p.find(to)
	}
	return p[first:max(first, last)]
}

// merge returns the pairs of both. A pair in newer replaces one in older.
func merge(older, newer pairs) pairs {
	all := make(pairs, 0, len(older)+len(newer))
	for len(older) > 0 && len(newer) > 0 {
		switch {
		case older[0].Key < newer[0].Key:
			all, older = append(all, older[0]), older[1:]
		case older[0].Key == newer[0].Key:
			older = older[1:]
		default:
			all, newer = append(all, newer[0]), newer[1:]
		}
	}
	return append(append(all, older...), newer...)
}

// live returns the pairs that have values.
func (p pairs) live() pairs {
	all := make(pairs, 0, len(p))
	for _, one := range p {
		if one.Value != nil {
			all = append(all, one)
		}
	}
	return all
}

func sizeOf(p keyed.Pair) int { return len(p.Key) + len(p.Value) + 4 }

func (p pairs) size() (n int) {
	for _, one := range p {
		n += sizeOf(one)
	}
	return n
}

// split divides pairs into parts of about leafBytes.
func (p pairs) split() (parts []pairs) {
	start, size := 0, 0
	for i, one := range p {
		if size > 0 && size+sizeOf(one) > leafBytes {
			parts = append(parts, p[start:i])
			start, size = i, 0
		}
		size += sizeOf(one)
	}
	if start < len(p) {
		parts = append(parts, p[start:])
	}
	return parts
}

func (p pairs) encode() ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	var number [binary.MaxVarintLen64]byte
	write := func(n int, text []byte) error {
		if _, err := w.Write(number[:binary.PutUvarint(number[:], uint64(n))]); err != nil { //nolint:gosec // not negative
			return err
		}
		_, err := w.Write(text)
		return err
	}
	for _, one := range p {
		size := len(one.Value) + 1 // 0 = a deletion
		if one.Value == nil {
			size = 0
		}
		if err := write(len(one.Key), []byte(one.Key)); err != nil {
			return nil, err
		}
		if err := write(size, one.Value); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// maxObject bounds the size of an object without compression.
const maxObject = 1 << 30

// decode returns the pairs of an object.
func decode(name string, data []byte) (all pairs, err error) {
	damaged := func(why any) error {
		return tea.Errorf(tea.ConnectionError, "the object %s is damaged: %v", name, why)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, damaged(err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxObject))
	if err != nil {
		return nil, damaged(err)
	}
	next := func() (text []byte, size uint64, ok bool) {
		size, used := binary.Uvarint(raw)
		if used <= 0 || size > maxObject {
			return nil, 0, false
		}
		raw = raw[used:]
		return raw, size, true
	}
	for len(raw) > 0 {
		text, size, ok := next()
		if !ok || size > uint64(len(text)) {
			return nil, damaged("a key is not complete")
		}
		one := keyed.Pair{Key: string(text[:size])}
		raw = raw[size:]
		if text, size, ok = next(); !ok || size > uint64(len(text))+1 {
			return nil, damaged("a value is not complete")
		}
		if size > 0 {
			one.Value, raw = text[:size-1:size-1], raw[size-1:]
		}
		if len(all) > 0 && all[len(all)-1].Key >= one.Key {
			return nil, damaged("its keys are not in order")
		}
		all = append(all, one)
	}
	return all, nil
}
