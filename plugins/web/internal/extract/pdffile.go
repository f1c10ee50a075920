package extract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/ledongthuc/pdf"
)

const (
	// readsPerByte, freeReads and costOfRead bound how many bytes the library reads,
	// including repeated reads: it would read a file with cyclic references forever.
	readsPerByte = 256
	freeReads    = 4 << 20
	costOfRead   = 1 << 10
	// maxPDFStream bounds the content of one page after decompression.
	maxPDFStream = 16 << 20
	// sparePDFObjects and bytesPerObject limit numbers in a file for which the library
	// allocates memory, such as the number of objects.
	sparePDFObjects = 100_000
	bytesPerObject  = 8
	// maxOperands limits the operands of one operator, which the library keeps in
	// memory.
	maxOperands = 200_000
)

// pdfFile is a file whose reads fail after the context has ended or a limit was
// exceeded.
type pdfFile struct {
	*bytes.Reader
	ctx  context.Context
	left int64
}

var errPDFReads = errors.New("its parts refer to each other without end")

// ReadAt implements io.ReaderAt.
func (f *pdfFile) ReadAt(p []byte, at int64) (int, error) {
	if f.ctx.Err() != nil {
		panic(context.Cause(f.ctx))
	}
	// A failed or short read costs, too, because the library retries.
	if f.left -= int64(len(p)) + costOfRead; f.left < 0 {
		panic(errPDFReads)
	}
	return f.Reader.ReadAt(p, at)
}

// pdfSize finds numbers for which the library allocates memory, and pdfEntry the entries
// of a cross-reference table, which are ignored.
var (
	pdfSize = regexp.MustCompile(`/(?:Size|Index|W|Columns)(?:[\s\[]|%[^\r\n]*)*([0-9+. \t\r\n]*)`)
	// pdfParams matches what precedes the size of an attached file. A comment or string that contains the match
	// contains the size, too.
	pdfParams  = regexp.MustCompile(`/Params *<<(?:[ /A-Za-z0-9]|\([^()\\%\r\n]*\))*$`)
	pdfEntry   = regexp.MustCompile(`[0-9]+\s+[0-9]+\s+[nf]`)
	pdfComment = regexp.MustCompile(`%[^\r\n]*`)
	pdfName    = regexp.MustCompile(`#[0-9a-fA-F]{2}`)
	pdfDigits  = regexp.MustCompile(`[0-9]+`)
)

// pdfHazard returns why a file must not be read: the library allocates as much memory
// as the file declares, and the process dies if there is not enough.
func pdfHazard(body []byte) string {
	plain := body
	if bytes.IndexByte(body, '#') >= 0 { // names may be written with #XX
		plain = pdfName.ReplaceAllFunc(body, func(b []byte) []byte {
			n, _ := strconv.ParseUint(string(b[1:]), 16, 8) // matches the expression
			if !unicode.IsLetter(rune(n)) {
				return b // the names below have letters only; it could look like the end of a string
			}
			return []byte{byte(n)}
		})
	}
	limit := int64(sparePDFObjects + len(body)/bytesPerObject)
	for _, m := range pdfSize.FindAllSubmatchIndex(plain, -1) {
		if isHuge(plain[m[2]:m[3]], limit) && !pdfParams.Match(plain[max(0, m[0]-80):m[0]]) {
			return "it declares too many objects"
		}
	}
	commentEnd := 0 // a line that is in one table is not read again for another
	for at := range xrefs(plain) {
		end := at
		for end < len(plain) && strings.IndexByte("0123456789+-nf% \t\r\n\f\x00", plain[end]) >= 0 {
			if plain[end] != '%' {
				end++
				continue
			}
			if end < commentEnd {
				break
			}
			end += len(pdfComment.Find(plain[end:]))
			commentEnd = end
		}
		table := pdfComment.ReplaceAll(plain[at:end], nil)
		if bytes.ContainsAny(table, "nf") && isHuge(pdfEntry.ReplaceAll(table, nil), limit) {
			return "it declares too many objects"
		}
	}
	return ""
}

// xrefs returns the positions after each "xref". Any of them can be a table, even in
// "startxref".
func xrefs(body []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; {
			n := bytes.Index(body[at:], []byte("xref"))
			if n < 0 {
				return
			}
			if at += n + len("xref"); !yield(at) {
				return
			}
		}
	}
}

// isHuge reports whether a text contains a number above the limit.
func isHuge(text []byte, limit int64) bool {
	for _, digits := range pdfDigits.FindAll(text, -1) {
		if n, err := strconv.ParseInt(string(digits), 10, 64); err != nil || n > limit {
			return true
		}
	}
	return false
}

// isCircular reports whether an object stream is in an object stream, which the library
// would look up forever. It reads the library's unexported table.
func isCircular(r *pdf.Reader) bool {
	table := reflect.ValueOf(r).Elem().FieldByName("xref")
	for i := range table.Len() {
		entry := table.Index(i)
		if !entry.FieldByName("inStream").Bool() {
			continue
		}
		stream := entry.FieldByName("stream").FieldByName("id").Uint()
		if stream < uint64(table.Len()) && table.Index(int(stream)).FieldByName("inStream").Bool() {
			return true
		}
	}
	return false
}

var errContent = errors.New("its content is too large")

var errCharacterMap = errors.New("the character map of a font is not valid")

// pdfStreamFits reports whether a stream, or all streams of an array, can be
// held in memory.
func pdfStreamFits(v pdf.Value) bool {
	left, operands := int64(maxPDFStream), new(operandCounter)
	read := func(v pdf.Value) bool {
		if v.Kind() != pdf.Stream {
			return true
		}
		n, _ := io.Copy(operands, io.LimitReader(v.Reader(), left+1)) // the library reports the same error
		left -= n
		return left >= 0 && operands.most <= maxOperands
	}
	if v.Kind() != pdf.Array {
		return read(v)
	}
	for i := range v.Len() {
		if !read(v.Index(i)) {
			return false
		}
	}
	return true
}

// operandCounter counts the operands before each operator of a content stream.
type operandCounter struct {
	count, most int
	depth       int  // of parentheses
	escaped     bool // by a backslash
	inToken     bool
}

// Write implements io.Writer.
func (c *operandCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case c.escaped:
			c.escaped = false
		case c.depth > 0 && b == '\\':
			c.escaped = true
		case b == '(':
			c.depth++
			c.count++
		case b == ')':
			c.depth = max(0, c.depth-1)
			c.inToken = false
		case c.depth > 0:
		case strings.IndexByte(" \t\r\n\f\x00[]<>", b) >= 0:
			c.inToken = false
		case b == '/':
			c.count, c.inToken = c.count+1, true
		case !c.inToken:
			c.inToken = true
			if b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b == '\'' || b == '"' {
				c.count = 0
			} else {
				c.count++
			}
		}
		c.most = max(c.most, c.count)
	}
	return len(p), nil
}
