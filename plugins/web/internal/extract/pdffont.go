package extract

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/unicode/norm"
)

// unknownGlyph is the text of a glyph whose text the file does not define.
const unknownGlyph = "\ufffd"

// pdfGlyph is a glyph of a string: its text and its width in thousandths of the
// font's size.
type pdfGlyph struct {
	text    string
	width   float64
	isSpace bool // whether the gap between words applies to the code
}

// pdfFont converts strings to glyphs.
type pdfFont struct {
	toUnicode map[int]string
	isWide    bool // codes have two bytes
	utf16     bool // these are UTF-16
	multibyte encoding.Encoding
	table     [256]string
	widths    map[int]float64 // by code
	fallback  float64
	standard  func(code int, text string) (float64, bool)
}

// newPDFFont reads a font. glyphs maps the names of glyphs to characters.
func newPDFFont(v pdf.Value, glyphs *glyphList) *pdfFont {
	f := &pdfFont{toUnicode: readCharacterMap(v.Key("ToUnicode")), widths: map[int]float64{}, fallback: defaultWidth}
	if v.Key("Subtype").Name() == "Type0" {
		f.readWideWidths(v.Key("DescendantFonts").Index(0))
		f.setCharset(v.Key("Encoding").Name())
		return f
	}
	f.readWidths(v)
	f.readTable(v, glyphs)
	return f
}

// charsets lists the predefined character maps whose codes belong to a charset, by
// their prefixes.
var charsets = []struct {
	prefix  string
	charset encoding.Encoding
}{
	{"GBK2K", simplifiedchinese.GB18030},
	{"GB", simplifiedchinese.GBK},
	{"B5", traditionalchinese.Big5},
	{"ETen", traditionalchinese.Big5},
	{"HKscs", traditionalchinese.Big5},
	{"90ms", japanese.ShiftJIS},
	{"90pv", japanese.ShiftJIS},
	{"83pv", japanese.ShiftJIS},
	{"Add-RKSJ", japanese.ShiftJIS},
	{"Ext-RKSJ", japanese.ShiftJIS},
	{"EUC-", japanese.EUCJP},
	{"KSC", korean.EUCKR},
}

func (f *pdfFont) setCharset(name string) {
	f.isWide = true
	if strings.Contains(name, "UCS2") || strings.Contains(name, "UTF16") {
		f.utf16 = true
		return
	}
	for _, c := range charsets {
		if strings.HasPrefix(name, c.prefix) {
			f.multibyte = c.charset
			return
		}
	}
}

func (f *pdfFont) glyphs(raw string) []pdfGlyph {
	if f == nil {
		f = &pdfFont{fallback: defaultWidth}
		for c := range f.table {
			f.table[c] = string(rune(c))
		}
	}
	if f.multibyte != nil {
		return f.multibyteGlyphs(raw)
	}
	step := 1
	if f.isWide {
		step = 2
	}
	list := make([]pdfGlyph, 0, len(raw)/step)
	for i := 0; i+step <= len(raw); i += step {
		code := int(raw[i])
		if f.isWide {
			code = code<<8 | int(raw[i+1])
		}
		text, ok := f.toUnicode[code]
		switch {
		case ok:
		case f.utf16:
			text = utf16Text(raw[i : i+2])
		case !f.isWide:
			text = f.table[code]
		}
		if text == "" {
			text = unknownGlyph
		}
		list = append(list, pdfGlyph{cleanGlyph(text), f.width(code, text), step == 1 && code == ' '})
	}
	return list
}

// multibyteGlyphs converts a string in a charset, and ignores the glyphs of the font.
func (f *pdfFont) multibyteGlyphs(raw string) []pdfGlyph {
	text, err := f.multibyte.NewDecoder().String(raw)
	if err != nil {
		text = strings.Repeat(unknownGlyph, len(raw)/2)
	}
	var list []pdfGlyph
	for _, r := range text {
		width := f.fallback
		if r < 0x80 {
			width = f.fallback / 2
		}
		list = append(list, pdfGlyph{cleanGlyph(string(r)), width, r == ' '})
	}
	return list
}

// cleanGlyph replaces ligatures, and the forms that letters have within a word, with
// the letters, and other spaces and control characters with a space.
func cleanGlyph(text string) string {
	for _, r := range text {
		switch {
		case r < ' ' || r == 0x7f || r == '\u00a0':
			return " "
		case r >= '\ufb00' && r <= '\ufdff' || r >= '\ufe70' && r <= '\ufefc':
			return norm.NFKC.String(text)
		case r == '\u00ad':
			return strings.ReplaceAll(text, "\u00ad", "")
		}
	}
	return text
}

func (f *pdfFont) width(code int, text string) float64 {
	if w, ok := f.widths[code]; ok {
		return w
	}
	if f.standard != nil {
		if w, ok := f.standard(code, text); ok {
			return w
		}
	}
	return f.fallback
}

// readWidths reads the widths of a font with one-byte codes. A file may omit the widths
// of the 14 standard fonts.
func (f *pdfFont) readWidths(v pdf.Value) {
	first, list := int(v.Key("FirstChar").Int64()), v.Key("Widths")
	scale := 1.0
	if v.Key("Subtype").Name() == "Type3" { // in units of the font
		scale = v.Key("FontMatrix").Index(0).Float64() * 1000
	}
	for i := range min(list.Len(), 256) {
		f.widths[first+i] = list.Index(i).Float64() * scale
	}
	if w := v.Key("FontDescriptor").Key("MissingWidth"); !w.IsNull() {
		f.fallback = w.Float64()
	}
	if len(f.widths) == 0 {
		f.standard = standardWidths(v.Key("BaseFont").Name())
	}
}

// standardWidths returns the widths of the standard font whose name is closest.
func standardWidths(name string) func(code int, text string) (float64, bool) {
	name = fontName(name)
	byCode := func(widths []uint16) func(int, string) (float64, bool) {
		return func(code int, _ string) (float64, bool) {
			if i := code - ' '; i >= 0 && i < len(widths) {
				return float64(widths[i]), true
			}
			return 0, false
		}
	}
	isBold, isItalic := strings.Contains(name, "Bold"), strings.Contains(name, "Italic") || strings.Contains(name, "Oblique")
	family := "Helvetica"
	switch {
	case strings.HasPrefix(name, "Symbol"):
		return byCode(symbolWidths)
	case strings.HasPrefix(name, "ZapfDingbats"):
		return byCode(dingbatsWidths)
	case strings.HasPrefix(name, "Courier"):
		return func(int, string) (float64, bool) { return 600, true }
	case strings.HasPrefix(name, "Times") && isBold && isItalic:
		family = "Times-BoldItalic"
	case strings.HasPrefix(name, "Times") && isBold:
		family = "Times-Bold"
	case strings.HasPrefix(name, "Times") && isItalic:
		family = "Times-Italic"
	case strings.HasPrefix(name, "Times"):
		family = "Times-Roman"
	case isBold:
		family = "Helvetica-Bold"
	}
	widths := map[string]float64{}
	i := 0
	for _, r := range latinGlyphs {
		widths[string(r)] = float64(latinWidths[family][i])
		i++
	}
	widths["\u00a0"] = widths[" "]
	return func(_ int, text string) (float64, bool) {
		w, ok := widths[text]
		return w, ok
	}
}

// fontName returns the name of a font without its subset prefix.
func fontName(name string) string {
	if len(name) > 7 && name[6] == '+' {
		name = name[7:]
	}
	return name
}

// readTable reads the text of one-byte codes: the base encoding with the changes that
// the file makes to it.
func (f *pdfFont) readTable(v pdf.Value, glyphs *glyphList) {
	enc := v.Key("Encoding")
	base := enc.Name()
	if enc.Kind() == pdf.Dict {
		base = enc.Key("BaseEncoding").Name()
	}
	name, descriptor := fontName(v.Key("BaseFont").Name()), v.Key("FontDescriptor")
	switch {
	case base == "WinAnsiEncoding" || base == "MacRomanEncoding":
		f.setNamed(base, glyphs)
	case strings.HasPrefix(name, "Symbol"):
		f.setCodes(symbolEncoding)
	case strings.HasPrefix(name, "ZapfDingbats"):
		f.setCodes(dingbatsEncoding)
	case v.Key("Subtype").Name() == "Type3":
	case v.Key("Subtype").Name() == "TrueType":
		f.setNamed("WinAnsiEncoding", glyphs)
	case base == "" && (f.readBuiltIn(descriptor.Key("FontFile"), glyphs) || f.readCFF(descriptor.Key("FontFile3"), glyphs)):
	default:
		f.setCodes(standardEncoding)
	}
	code := 0
	differences := enc.Key("Differences")
	for i := range min(differences.Len(), maxDifferences) {
		switch x := differences.Index(i); x.Kind() {
		case pdf.Integer:
			code = int(x.Int64())
		case pdf.Name:
			if code >= 0 && code < len(f.table) {
				f.table[code] = glyphs.text(x.Name())
			}
			code++
		}
	}
}

// maxDifferences limits the changes that a file makes to an encoding.
const maxDifferences = 2048

// setCodes sets the characters of the codes from 32 on.
func (f *pdfFont) setCodes(characters string) {
	code := ' '
	for _, r := range characters {
		if r != unicode.ReplacementChar {
			f.table[code] = string(r)
		}
		code++
	}
}

// setNamed sets the characters of an encoding that the library knows.
func (f *pdfFont) setNamed(name string, glyphs *glyphList) {
	table := glyphs.tables[name]
	if table == nil {
		table = new([256]string)
		decoder := glyphs.encoder("/" + name)
		for code := ' '; code < 256; code++ {
			if text := decoder.Decode(string([]byte{byte(code)})); text != unknownGlyph {
				table[code] = text
			}
		}
		glyphs.tables[name] = table
	}
	f.table = *table
}

// type1Code matches a code in the built-in encoding of a Type 1 font.
var type1Code = regexp.MustCompile(`dup\s+([0-9]{1,3})\s*/([^\s/]+)\s+put`)

// maxType1Header is the size of the part of a Type 1 font that contains its encoding.
const maxType1Header = 64 << 10

// readBuiltIn reads the encoding of an embedded Type 1 font, and reports whether the
// font has one.
func (f *pdfFont) readBuiltIn(file pdf.Value, glyphs *glyphList) bool {
	if file.Kind() != pdf.Stream {
		return false
	}
	data, _ := io.ReadAll(io.LimitReader(file.Reader(), maxType1Header)) // as much as can be read
	data, _, _ = bytes.Cut(data, []byte("eexec"))
	found := type1Code.FindAllSubmatch(data, 256)
	for _, m := range found {
		if code, err := strconv.Atoi(string(m[1])); err == nil && code < len(f.table) {
			f.table[code] = glyphs.text(string(m[2]))
		}
	}
	return len(found) > 0
}

// maxCFF limits the size of a font whose encoding is read.
const maxCFF = 1 << 20

// readCFF reads the encoding of an embedded font in the Compact Font Format, and
// reports whether the font has one.
func (f *pdfFont) readCFF(file pdf.Value, glyphs *glyphList) bool {
	if file.Kind() != pdf.Stream {
		return false
	}
	data, _ := io.ReadAll(io.LimitReader(file.Reader(), maxCFF)) // as much as can be read
	codes := readCFFEncoding(data, glyphs)
	for code, text := range codes {
		if code < len(f.table) {
			f.table[code] = text
		}
	}
	return len(codes) > 0
}

// readWideWidths reads the widths of a font with two-byte codes: c [w...] or first last
// w.
func (f *pdfFont) readWideWidths(descendant pdf.Value) {
	f.fallback = 1000
	if w := descendant.Key("DW"); !w.IsNull() {
		f.fallback = w.Float64()
	}
	list := descendant.Key("W")
	for i := 0; i+1 < list.Len() && len(f.widths) < maxMappedCodes; {
		first, second := int(list.Index(i).Int64()), list.Index(i+1)
		if second.Kind() == pdf.Array {
			for j := range second.Len() {
				f.widths[first+j] = second.Index(j).Float64()
			}
			i += 2
			continue
		}
		for code := first; code <= min(int(second.Int64()), first+maxMappedCodes) && i+2 < list.Len(); code++ {
			f.widths[code] = list.Index(i + 2).Float64()
		}
		i += 3
	}
}

// glyphList maps the names of glyphs to characters. The library knows them, but exports
// them only as the encoding of a font, so a file with such a font is generated.
type glyphList struct {
	known  map[string]string       // by name
	tables map[string]*[256]string // by encoding
}

func newGlyphList() *glyphList {
	return &glyphList{known: map[string]string{}, tables: map[string]*[256]string{}}
}

// encoder returns the library's decoder for a font with an encoding.
func (g *glyphList) encoder(enc string) pdf.TextEncoding {
	const head = "%PDF-1.4\n"
	object := "1 0 obj\n<< /Encoding " + enc + " >>\nendobj\n"
	file := fmt.Sprintf("%s%sxref\n0 2\n0000000000 65535 f \n%010d 00000 n \ntrailer\n<< /Root 1 0 R /Size 2 >>\nstartxref\n%d\n%%%%EOF\n", head, object, len(head), len(head)+len(object))
	reader, err := pdf.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		panic(err) // the file is valid
	}
	font := pdf.Font{V: reader.Trailer().Key("Root")}
	return font.Encoder()
}

// maxGlyphName is the maximum length of a name that is looked up.
const maxGlyphName = 40

// text returns the characters of a glyph name, such as A, fi, uni00E9, u1F600 or
// f_f_i.alt; "" if the name is unknown.
func (g *glyphList) text(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if name == "" || len(name) > maxGlyphName {
		return ""
	}
	if text, ok := g.known[name]; ok {
		return text
	}
	text := ""
	for part := range strings.SplitSeq(name, "_") {
		piece := g.part(part)
		if piece == "" {
			text = ""
			break
		}
		text += piece
	}
	g.known[name] = text
	return text
}

// glyphCode matches the names of glyphs that are code points.
var glyphCode = regexp.MustCompile(`^(?:uni((?:[0-9A-F]{4})+)|u([0-9A-F]{4,6}))$`)

// part returns the characters of a part of a glyph name.
func (g *glyphList) part(name string) string {
	if m := glyphCode.FindStringSubmatch(name); m != nil {
		if m[1] != "" {
			return hexText(m[1])
		}
		code, _ := strconv.ParseUint(m[2], 16, 32) // has only hexadecimal digits
		return string(rune(code))
	}
	var escaped strings.Builder
	for _, c := range []byte(name) {
		fmt.Fprintf(&escaped, "#%02x", c)
	}
	// No glyph has this code. The library returns it for unknown names.
	const code = 1
	text := g.encoder(fmt.Sprintf("<< /Differences [%d /%s] >>", code, escaped.String())).Decode(string(rune(code)))
	if text == string(rune(code)) {
		return ""
	}
	return text
}
