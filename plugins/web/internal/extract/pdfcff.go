package extract

import (
	"encoding/binary"
	"errors"
)

// latinStrings are the characters of the standard strings 150 to 228 of CFF; 1 to
// 149 are those of StandardEncoding.
const latinStrings = "¹¬µ™Ð½±Þ¼÷¦°þ¾²®−ð×³©ÁÂÄÀÅÃÇÉÊËÈÍÎÏÌÑÓÔÖÒÕŠÚÛÜÙÝŸŽáâäàåãçéêëèíîïìñóôöòõšúûüùýÿž"

// The supported operators of a CFF font dictionary, and the number of the first string
// in the font.
const (
	cffCharset     = 15
	cffEncoding    = 16
	cffCharStrings = 17
	cffFirstString = 391
)

var errCFF = errors.New("the font is not valid")

// cffFont is a font in the Compact Font Format. Its methods panic with errCFF.
type cffFont struct {
	data    []byte
	strings [][]byte
	sids    []int // the string of each glyph
}

// readCFFEncoding returns the text of the codes of a font's built-in encoding; nil if
// the font has no such encoding or is not valid.
func readCFFEncoding(data []byte, glyphs *glyphList) (codes map[int]string) {
	defer func() {
		if fault := recover(); fault == errCFF {
			codes = nil
		} else if fault != nil {
			panic(fault)
		}
	}()
	f := &cffFont{data: data}
	_, at := f.index(f.number(2, 1))
	dicts, at := f.index(at)
	f.strings, _ = f.index(at)
	if len(dicts) == 0 {
		return nil
	}
	dict := cffDict(dicts[0])
	if dict[cffEncoding] <= 1 { // StandardEncoding or ExpertEncoding
		return nil
	}
	f.readCharset(dict[cffCharset], f.number(dict[cffCharStrings], 2))
	codes = map[int]string{}
	f.readEncoding(dict[cffEncoding], func(code, sid int) { codes[code] = f.text(sid, glyphs) })
	return codes
}

// number reads an unsigned number of size bytes.
func (f *cffFont) number(at, size int) int {
	if at < 0 || at+size > len(f.data) {
		panic(errCFF)
	}
	n := 0
	for _, b := range f.data[at : at+size] {
		n = n<<8 | int(b)
	}
	return n
}

// index reads a list of objects, and returns the position after it.
func (f *cffFont) index(at int) (items [][]byte, end int) {
	count := f.number(at, 2)
	if count == 0 {
		return nil, at + 2
	}
	size := f.number(at+2, 1)
	if size < 1 || size > 4 {
		panic(errCFF)
	}
	offsets, base := at+3, at+2+(count+1)*size
	for i := range count {
		from, to := base+f.number(offsets+i*size, size), base+f.number(offsets+(i+1)*size, size)
		if from < 0 || from > to || to > len(f.data) {
			panic(errCFF)
		}
		items = append(items, f.data[from:to])
	}
	return items, base + f.number(offsets+count*size, size)
}

// readCharset reads the strings of the glyphs.
func (f *cffFont) readCharset(at, glyphs int) {
	f.sids = make([]int, 1, glyphs+1)
	if at <= 2 {
		for i := 1; at == 0 && i < glyphs; i++ {
			f.sids = append(f.sids, i)
		}
		return
	}
	format := f.number(at, 1)
	at++
	for len(f.sids) < glyphs {
		first, left := f.number(at, 2), 0
		at += 2
		if format == 1 || format == 2 {
			left = f.number(at, format)
			at += format
		}
		for i := 0; i <= left && len(f.sids) < glyphs; i++ {
			f.sids = append(f.sids, first+i)
		}
	}
}

// readEncoding calls use for each code.
func (f *cffFont) readEncoding(at int, use func(code, sid int)) {
	format, count, glyph := f.number(at, 1), f.number(at+1, 1), 1
	at += 2
	add := func(code int) {
		if glyph < len(f.sids) {
			use(code, f.sids[glyph])
		}
		glyph++
	}
	for range count {
		first, left := f.number(at, 1), 0
		at++
		if format&0x7f == 1 {
			left = f.number(at, 1)
			at++
		}
		for i := range left + 1 {
			add(first + i)
		}
	}
	if format&0x80 == 0 {
		return
	}
	for i := range f.number(at, 1) {
		use(f.number(at+1+3*i, 1), f.number(at+2+3*i, 2))
	}
}

// text returns the characters of the glyph that is named by the string sid.
func (f *cffFont) text(sid int, glyphs *glyphList) string {
	switch {
	case sid >= cffFirstString:
		if i := sid - cffFirstString; i < len(f.strings) {
			return glyphs.text(string(f.strings[i]))
		}
	case sid >= 266 && sid <= 268:
		return [...]string{"ff", "ffi", "ffl"}[sid-266]
	case sid >= 150:
		if list := []rune(latinStrings); sid-150 < len(list) {
			return string(list[sid-150])
		}
	case sid >= 1:
		for _, r := range standardEncoding {
			if r == '\ufffd' {
				continue
			}
			if sid--; sid == 0 {
				return string(r)
			}
		}
	}
	return ""
}

// cffDict returns the last operand of each one-byte operator, if it is an integer.
func cffDict(data []byte) map[int]int {
	dict := map[int]int{}
	last := 0
	for len(data) > 0 {
		b, size := int(data[0]), 1
		switch {
		case b <= 21:
			if b == 12 {
				size = 2
			} else {
				dict[b] = last
			}
		case b == 28 && len(data) >= 3:
			last, size = int(int16(binary.BigEndian.Uint16(data[1:]))), 3 //nolint:gosec // a signed number
		case b == 29 && len(data) >= 5:
			last, size = int(int32(binary.BigEndian.Uint32(data[1:]))), 5 //nolint:gosec // a signed number
		case b == 30: // a number with a fraction, up to a half byte of ones
			for size < len(data) && data[size]&0xf != 0xf && data[size]>>4 != 0xf {
				size++
			}
			size++
		case b >= 32 && b <= 246:
			last = b - 139
		case b >= 247 && b <= 250 && len(data) >= 2:
			last, size = (b-247)*256+int(data[1])+108, 2
		case b >= 251 && b <= 254 && len(data) >= 2:
			last, size = -(b-251)*256-int(data[1])-108, 2
		}
		data = data[min(size, len(data)):]
	}
	return dict
}
