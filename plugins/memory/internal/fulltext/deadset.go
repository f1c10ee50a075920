package fulltext

import (
	"encoding/binary"
	"math/bits"
)

const (
	pageBits  = 12
	pageDocs  = 1 << pageBits
	pageWords = pageDocs / 64
)

// deadSet marks the documents of a part that count no more. It is immutable:
// with returns another set that shares what is the same, so a snapshot is a
// copy of the struct. The zero value marks nothing.
type deadSet struct {
	pages []*[pageWords]uint64
	n     int
}

// has tells whether the document is dead.
func (d deadSet) has(ord uint32) bool {
	page := int(ord >> pageBits)
	if page >= len(d.pages) || d.pages[page] == nil {
		return false
	}
	return d.pages[page][ord%pageDocs/64]&(1<<(ord%64)) != 0
}

// with returns the set with one more document.
func (d deadSet) with(ord uint32) deadSet {
	if d.has(ord) {
		return d
	}
	page := int(ord >> pageBits)
	pages := make([]*[pageWords]uint64, max(len(d.pages), page+1))
	copy(pages, d.pages)
	words := new([pageWords]uint64)
	if pages[page] != nil {
		*words = *pages[page]
	}
	words[ord%pageDocs/64] |= 1 << (ord % 64)
	pages[page] = words
	return deadSet{pages: pages, n: d.n + 1}
}

// since calls visit for each document that is in d and was not in before,
// which is an earlier state of d.
func (d deadSet) since(before deadSet, visit func(ord uint32)) {
	if d.n == before.n {
		return
	}
	for i, page := range d.pages {
		if page == nil || i < len(before.pages) && before.pages[i] == page {
			continue
		}
		for j, word := range page {
			if i < len(before.pages) && before.pages[i] != nil {
				word &^= before.pages[i][j]
			}
			for ; word != 0; word &= word - 1 {
				visit(uint32(i)<<pageBits | uint32(j)<<6 | uint32(bits.TrailingZeros64(word)))
			}
		}
	}
}

// bytes returns the set as a bitmap, for the manifest.
func (d deadSet) bytes() []byte {
	if d.n == 0 {
		return nil
	}
	out := make([]byte, len(d.pages)*pageDocs/8)
	for i, page := range d.pages {
		if page == nil {
			continue
		}
		for j, word := range page {
			binary.LittleEndian.PutUint64(out[(i*pageWords+j)*8:], word)
		}
	}
	return out
}

// deadSetOf reads what bytes has written. It reports false if the bitmap is
// odd or marks a document that a part of that size does not have.
func deadSetOf(bitmap []byte, docs int) (deadSet, bool) {
	const pageBytes = pageDocs / 8
	if len(bitmap)%pageBytes != 0 || len(bitmap)/pageBytes > docs/pageDocs+1 {
		return deadSet{}, false
	}
	var d deadSet
	for i := range len(bitmap) / pageBytes {
		page := new([pageWords]uint64)
		for j := range page {
			word := binary.LittleEndian.Uint64(bitmap[i*pageBytes+j*8:])
			if word != 0 && i*pageDocs+j*64+bits.Len64(word) > docs {
				return deadSet{}, false
			}
			page[j] = word
			d.n += bits.OnesCount64(word)
		}
		d.pages = append(d.pages, page)
	}
	return d, true
}
