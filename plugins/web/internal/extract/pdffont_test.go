package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fontPDF returns a file with a page that has the font F.
func fontPDF(content, font string, more ...string) string {
	objects := append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> /Properties << /P << /ActualText (prop) >> >> >> >>",
		stream("", content), font,
	}, more...)
	return makePDF("", objects...)
}

// shown returns the operators that show strings from a position on.
func shown(x, y float64, texts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "BT /F 12 Tf %g %g Td ", x, y)
	for _, text := range texts {
		b.WriteString(text + " Tj ")
	}
	return b.String() + "ET\n"
}

// byWord and byLetter place the words or the letters of a text where a producer
// puts them that knows the widths of Helvetica.
func byWord(text string) string {
	var b strings.Builder
	x := 50.0
	for word := range strings.FieldsSeq(text) {
		b.WriteString(shown(x, 700, "("+word+")"))
		x += (helvetica(word) + 278) * 12 / 1000
	}
	return b.String()
}

func byLetter(text string) string {
	var b strings.Builder
	x := 50.0
	for _, letter := range text {
		b.WriteString(shown(x, 700, "("+string(letter)+")"))
		x += helvetica(string(letter)) * 12 / 1000
	}
	return b.String()
}

func helvetica(text string) float64 {
	widths := map[rune]float64{'i': 222, 'l': 222, 'j': 222, 't': 278, 'f': 278, ' ': 278, '.': 278, 'r': 333, 'm': 833, 'w': 722, 'W': 944, 'M': 833, 's': 500, 'c': 500, 'k': 500, 'v': 500, 'y': 500}
	total := 0.0
	for _, r := range text {
		if w, ok := widths[r]; ok {
			total += w
		} else {
			total += 556
		}
	}
	return total
}

// The text of fonts that a file describes in part is what a reader sees.
func TestPDFFonts(t *testing.T) {
	t.Parallel()
	const helv = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
	const line = "Wild immwillmill fills Miltiwim."
	toUnicode := func(lines string) string {
		return stream("", "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <00> <FF> endcodespacerange\n"+lines+"\nendcmap end end")
	}
	type1 := stream("", "%!PS-AdobeFont-1.0: X\n/Encoding 256 array 0 1 255 {1 index exch /.notdef put} for\ndup 12 /fi put\ndup 65/B put\nreadonly def\ncurrentfile eexec xxxx")
	// Glyphs: .notdef, A, fi, eacute, alpha; codes 1 to 3 and 200, and 33 for fl.
	charset, encoding := "\x00"+"\x00\x22\x00\x6d\x00\xcf\x01\x87", "\x81\x02\x01\x02\xc8\x00\x01\x21\x00\x6e"
	head := "\x01\x00\x04\x01" + "\x00\x01\x01\x01\x02X" + "\x00\x01\x01\x01\x0d"
	after := "\x00\x01\x01\x01\x06alpha" + "\x00\x00"
	at := len(head) + 12 + len(after)
	short := func(n int) string { return string([]byte{28, byte(n >> 8), byte(n)}) }
	cff := head + short(at) + "\x0f" + short(at+len(charset)) + "\x10" + short(at+len(charset)+len(encoding)) + "\x11" + after + charset + encoding + "\x00\x05\x01" + "\x01\x01\x01\x01\x01\x01"
	for name, c := range map[string]struct{ pdf, text string }{
		"widths of a standard font, by word":   {fontPDF(byWord(line), helv), line},
		"widths of a standard font, by letter": {fontPDF(byLetter(line), helv), line},
		"widths of Courier":                    {fontPDF(shown(50, 700, "(WW)")+shown(50+14.4, 700, "(ii)")+shown(50+14.4*2+7.2, 700, "(x)"), strings.Replace(helv, "Helvetica", "Courier", 1)), "WWii x"},
		"Type 1 without Encoding":              {fontPDF(shown(50, 700, "(speci\\256c \\257ow \\320 \\252a\\272 it's)"), "<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>"), "specific flow — “a” it’s"},
		"Differences without a base":           {fontPDF(shown(50, 700, "(speci\\256c \\001\\002\\003\\004)"), "<< /Type /Font /Subtype /Type1 /BaseFont /X /Encoding << /Differences [1 /f_f_i /uni00E9 /a.sc /Scaron] >> >>"), "specific ffiéaŠ"},
		"TrueType without Encoding":            {fontPDF(shown(50, 700, "(caf\\351 \\2235\\224)"), "<< /Type /Font /Subtype /TrueType /BaseFont /X >>"), "café “5”"},
		"encoding in a Type 1 font":            {fontPDF(shown(50, 700, "(A\\014)"), "<< /Type /Font /Subtype /Type1 /BaseFont /CMR10 /FontDescriptor << /FontFile 6 0 R >> >>", type1), "Bfi"},
		"encoding in a CFF font":               {fontPDF(shown(50, 700, "<01020321C8>"), "<< /Type /Font /Subtype /Type1 /BaseFont /X /FontDescriptor << /FontFile3 6 0 R >> >>", stream("/Subtype /Type1C", cff)), "Afiéflα"},
		"CFF font that is cut":                 {fontPDF(shown(50, 700, "(A\\256)"), "<< /Type /Font /Subtype /Type1 /BaseFont /X /FontDescriptor << /FontFile3 6 0 R >> >>", stream("/Subtype /Type1C", cff[:30])), "Afi"},
		"Symbol":                               {fontPDF(shown(50, 700, "(abgp \\243 \\345)"), "<< /Type /Font /Subtype /Type1 /BaseFont /Symbol >>"), "αβγπ ≤ ∑"},
		"ZapfDingbats":                         {fontPDF(shown(50, 700, "(34l\\300\\325)"), "<< /Type /Font /Subtype /Type1 /BaseFont /ZapfDingbats >>"), "✓✔●➀→"},
		"ToUnicode that lacks codes":           {fontPDF(shown(50, 700, "(abcdz)"), "<< /Type /Font /Subtype /Type1 /BaseFont /X /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>", toUnicode("1 beginbfchar <61> <0041> endbfchar 1 beginbfrange <62> <63> [<0058> <00660066>] endbfrange 1 beginbfrange <7a> <7a> <FFFD> endbfrange")), "AXffdz"},
		"codes of a charset":                   {fontPDF(shown(50, 700, "<D6D0CEC4>"), "<< /Type /Font /Subtype /Type0 /BaseFont /STSong /Encoding /GBK-EUC-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 >>] >>"), "中文"},
		"UTF-16":                               {fontPDF(shown(50, 700, "<65E5672C>"), "<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin /Encoding /UniJIS-UCS2-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 >>] >>"), "日本"},
		"bold by drawing twice":                {fontPDF(shown(50, 700, "(Bold all)")+shown(50.4, 700, "(Bold all)")+shown(50, 680, "(all)")+shown(62, 680, "(all)"), helv), "Bold all\nallall"},
		"bold by drawing letters twice":        {fontPDF(strings.ReplaceAll(byLetter("all"), "BT", "BT /F 12 Tf 0 Tr")+strings.ReplaceAll(byLetter("all"), " 700 Td", " 700.3 Td"), helv), "all"},
		"ActualText":                           {fontPDF("/Span << /ActualText <FEFF00660066> >> BDC "+shown(50, 700, "(\\001)")+" EMC "+shown(56, 700, "(x)")+"/Span << /ActualText () >> BDC "+shown(62, 700, "(-)")+" EMC /Span /P BDC /X BMC "+shown(50, 680, "(y)", "(z)")+" EMC EMC", helv), "ffx\nprop"},
	} {
		doc := parse(t, "application/pdf", c.pdf)
		if diff := cmp.Diff(c.text, doc.Content(true).Text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(doc.Notes) != 0 {
			t.Errorf("%s: notes %q", name, doc.Notes)
		}
	}
}

// Glyphs that a file does not tell are counted in a note.
func TestPDFUnknownGlyphs(t *testing.T) {
	t.Parallel()
	for name, font := range map[string]string{
		"Identity without ToUnicode": "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 >>] >>",
		"names that say nothing":     "<< /Type /Font /Subtype /Type3 /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 0 /Widths [500 500 500] /Encoding << /Differences [0 /g0 /g1 /g2] >> >>",
	} {
		codes := "<000100020001>"
		if strings.Contains(font, "Type3") {
			codes = "<010201>"
		}
		doc := parse(t, "application/pdf", fontPDF(shown(50, 700, codes), font))
		if got := doc.Content(true).Text(); got != "\ufffd\ufffd\ufffd" {
			t.Errorf("%s: text %q", name, got)
		}
		want := []string{"the file does not define the text of 3 glyphs; they appear as \ufffd"}
		if diff := cmp.Diff(want, doc.Notes); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Text from right to left, which files have in the order in which it is seen, is
// in the order in which it is read.
func TestPDFRightToLeft(t *testing.T) {
	t.Parallel()
	const font = "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /UniJIS-UTF16-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /DW 500 >>] >>"
	hexOf := func(text string) string {
		var b strings.Builder
		for _, r := range text {
			fmt.Fprintf(&b, "%04X", r)
		}
		return "<" + b.String() + ">"
	}
	reversed := func(text string) string {
		var b strings.Builder
		runes := []rune(text)
		for i := range runes {
			b.WriteRune(runes[len(runes)-1-i])
		}
		return b.String()
	}
	at := func(x float64, text string) string { return shown(x, 700, hexOf(text)) }
	for name, c := range map[string]struct{ content, want string }{
		"Hebrew":              {at(50, reversed("שלום עולם")), "שלום עולם"},
		"Arabic":              {at(50, reversed("مرحبا بالعالم")), "مرحبا بالعالم"},
		"forms of letters":    {at(50, reversed("\ufee3\ufeae\ufea3\ufe92\ufe8e")), "مرحبا"},
		"numbers":             {at(50, reversed("שקלים")+" 12.50 "+reversed("המחיר הוא")), "המחיר הוא 12.50 שקלים"},
		"words from the left": {at(50, reversed("עולם")+" hello world "+reversed("שלום")), "שלום hello world עולם"},
		"in a line of Latin":  {at(50, "hello "+reversed("שלום עולם")+" world"), "hello שלום עולם world"},
		"brackets as seen":    {at(50, "("+reversed("סופי")+") "+reversed("דוח")), "דוח (סופי)"},
		"brackets as read":    {at(50, ")"+reversed("סופי")+"( "+reversed("דוח")), "דוח (סופי)"},
		"words placed apart":  {at(100, reversed("שלום")) + at(60, reversed("עולם")), "שלום עולם"},
		"ActualText":          {"/Span << /ActualText <FEFF05DC05D5> >> BDC " + at(56, reversed("לו")) + " EMC " + at(68, "ש") + at(50, "ם"), "שלום"},
		"order of reading":    {at(50, "שלום עולם"), "שלום עולם"},
	} {
		if diff := cmp.Diff(c.want, parse(t, "application/pdf", fontPDF(c.content, font)).Content(true).Text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The text that form fields show is read, and so are free-text annotations. Hidden
// annotations and other states of a button are not.
func TestPDFForms(t *testing.T) {
	t.Parallel()
	const helv = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
	shows := func(text string) string {
		return stream("/Subtype /Form /BBox [0 0 100 20] /Resources << /Font << /F 5 0 R >> >>", shown(2, 5, text))
	}
	pdf := makePDF("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		`<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> /Annots [
			<< /Subtype /Widget /Rect [130 695 230 715] /AP << /N 6 0 R >> >>
			<< /Subtype /Widget /F 2 /Rect [130 675 230 695] /AP << /N 7 0 R >> >>
			<< /Subtype /Widget /F 32 /Rect [130 675 230 695] /AP << /N 7 0 R >> >>
			<< /Subtype /Widget /AS /On /Rect [50 675 150 695] /AP << /N << /On 8 0 R /Off 7 0 R >> >> >>
			<< /Subtype /Widget /Rect [50 675 150 695] /AP << /N << /On 7 0 R >> >> >>
			<< /Subtype /FreeText /Rect [50 655 150 675] /AP << /N 9 0 R >> >>
			<< /Subtype /Link /Rect [50 655 150 675] /AP << /N 7 0 R >> >>
			<< /Subtype /Widget /AP << /N 7 0 R >> >> 7 ] >>`,
		stream("", shown(50, 700, "(Serial number:)")), helv, shows("(A-17)"), shows("(hidden)"), shows("(yes)"), shows("(see p. 3)"))
	doc := parse(t, "application/pdf", pdf)
	if diff := cmp.Diff("Serial number: A-17\nyes\nsee p. 3", doc.Content(true).Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
