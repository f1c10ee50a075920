package extract

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// formulaClass matches the classes of elements in which KaTeX, MathJax and
// MediaWiki put a formula twice: as MathML and as rendered markup.
var formulaClass = regexp.MustCompile(`(^|\s)(katex|katex-display|katex-mathml|mwe-math-element\S*|mwe-math-mathml\S*|MathJax\S*|MJX\S*|mjx-\S*)($|\s)`)

const (
	// maxFormulaParents limits the renderer's elements around a formula.
	maxFormulaParents = 6
	// maxFormula is the maximum length of a formula. A longer one is returned as plain
	// text.
	maxFormula = 16 << 10
	// subscriptMark stands for the _ of a subscript until the Markdown is written; it
	// is not a character.
	subscriptMark = "\ufdd1"
)

// isolateFormulas replaces the output of formula renderers with its MathML, and
// formulas that scripts would draw with their TeX.
func isolateFormulas(body *html.Node) {
	var formulas, sources []*html.Node
	elements(body, func(n *html.Node) {
		switch {
		case localName(n) == "math":
			formulas = append(formulas, n)
		case n.DataAtom == atom.Script && strings.HasPrefix(attr(n, "type"), "math/tex"):
			sources = append(sources, n)
		}
	})
	single := map[*html.Node]bool{} // containers with one formula
	for _, math := range formulas {
		container := math
		for p, i := math.Parent, 0; p != nil && i < maxFormulaParents; p, i = p.Parent, i+1 {
			class := attr(p, "class")
			if !formulaClass.MatchString(class) && p.Data != "mjx-container" && p.Data != "mjx-assistive-mml" {
				continue
			}
			if _, known := single[p]; !known {
				single[p] = countFormulas(p) == 1
			}
			if !single[p] {
				break
			}
			container = p
			if strings.Contains(strings.ToLower(class), "display") || attr(p, "display") == "true" {
				setAttr(math, "display", "block")
			}
		}
		if container != math {
			math.Parent.RemoveChild(math)
			container.Parent.InsertBefore(math, container)
			container.Parent.RemoveChild(container)
		}
	}
	for _, script := range sources {
		replaceTeX(script)
	}
}

func countFormulas(n *html.Node) int {
	count := 0
	elements(n, func(c *html.Node) {
		if localName(c) == "math" {
			count++
		}
	})
	return count
}

// replaceTeX replaces a script that contains the TeX of a formula with code, unless the
// MathML of the formula precedes it.
func replaceTeX(script *html.Node) {
	for before := script.PrevSibling; before != nil; before = script.PrevSibling {
		if localName(before) == "math" {
			return
		}
		if before.Type != html.ElementNode || !formulaClass.MatchString(attr(before, "class")) {
			break
		}
		script.Parent.RemoveChild(before) // the rendered formula
	}
	code := &html.Node{Type: html.ElementNode, DataAtom: atom.Code, Data: "code"}
	code.AppendChild(textNode(strings.TrimSpace(rawText(script))))
	script.Parent.InsertBefore(code, script)
}

func textNode(text string) *html.Node { return &html.Node{Type: html.TextNode, Data: text} }

// localName returns the name of an element without its namespace prefix.
func localName(n *html.Node) string {
	if n.Type != html.ElementNode {
		return ""
	}
	return n.Data[strings.LastIndexByte(n.Data, ':')+1:]
}

// replaceFormulas replaces the MathML below n with text.
func replaceFormulas(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if localName(c) == "math" {
			text := textNode(formulaText(c))
			if attr(c, "display") == "block" {
				block := &html.Node{Type: html.ElementNode, DataAtom: atom.Div, Data: "div"}
				block.AppendChild(text)
				text = block
			}
			n.InsertBefore(text, c)
			n.RemoveChild(c)
		} else {
			replaceFormulas(c)
		}
		c = next
	}
}

// formulaText returns a formula on one line, such as (a+b)/2 or x_i^2. For a formula
// without presentation markup, it returns the TeX or the alternative text.
func formulaText(math *html.Node) string {
	if text := shortText(math, maxFormula); text == "" && math.FirstChild != nil {
		return textOf(math)
	}
	if text := strings.TrimSpace(linear(math)); text != "" {
		return text
	}
	if tex := find(math, func(n *html.Node) bool {
		return localName(n) == "annotation" && attr(n, "encoding") == "application/x-tex"
	}); tex != nil {
		return strings.TrimSpace(rawText(tex))
	}
	return attr(math, "alttext")
}

// accents maps an element over a base to its mark.
var accents = map[string]string{
	"^": "\u0302", "ˆ": "\u0302", "¯": "\u0304", "‾": "\u0304", "―": "\u0304", "_": "\u0304", "~": "\u0303", "˜": "\u0303",
	"˙": "\u0307", "¨": "\u0308", "→": "\u20d7", "ˇ": "\u030c", "´": "\u0301", "`": "\u0300",
}

// linear returns a part of a formula as text on a line.
func linear(n *html.Node) string {
	if n.Type == html.TextNode {
		return strings.Join(strings.Fields(n.Data), " ")
	}
	parts := operands(n)
	part := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	switch localName(n) {
	case "annotation", "annotation-xml", "mphantom", "none", "mprescripts":
		return ""
	case "semantics", "maction":
		return part(0)
	case "mspace":
		return " "
	case "mtext":
		text := rawText(n)
		words := strings.Join(strings.Fields(text), " ")
		if words != "" && strings.TrimLeftFunc(text, unicode.IsSpace) != text {
			words = " " + words
		}
		if words != "" && strings.TrimRightFunc(text, unicode.IsSpace) != text {
			words += " "
		}
		return words
	case "mo":
		return operator(strings.Join(parts, ""))
	case "ms":
		return `"` + strings.Join(parts, "") + `"`
	case "mfrac":
		if t := attr(n, "linethickness"); t == "0" || t == "0px" || t == "0pt" {
			return operand(part(0)) + " choose " + operand(part(1))
		}
		return operand(part(0)) + "/" + operand(part(1))
	case "msqrt":
		return "√" + operand(joinFormula(parts))
	case "mroot":
		return operand(part(0)) + "^(1/" + operand(part(1)) + ")"
	case "mover", "msup", "msub", "munder", "msubsup", "munderover":
		return withScripts(localName(n), part(0), part(1), part(2))
	case "mmultiscripts":
		return multiscripts(n, parts)
	case "mfenced":
		return fenced(n, parts)
	case "mtable":
		return strings.Join(parts, "; ")
	case "mtr", "mlabeledtr":
		return tableRow(parts)
	}
	return joinFormula(parts)
}

// withScripts returns a base with its scripts over, under and after it.
func withScripts(name, base, first, second string) string {
	if mark := accents[first]; name == "mover" && mark != "" && utf8.RuneCountInString(base) == 1 {
		return base + mark
	}
	switch name {
	case "mover", "msup":
		return operand(base) + script("^", first)
	case "msub", "munder":
		return operand(base) + script(subscriptMark, first)
	}
	return operand(base) + script(subscriptMark, first) + script("^", second)
}

// operands returns the children of an element as text, including empty ones, since
// their position is significant.
func operands(n *html.Node) []string {
	var parts []string
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode || c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			parts = append(parts, linear(c))
		}
	}
	return parts
}

// operator returns the text of an operator. Invisible operators have a meaning, too.
func operator(text string) string {
	switch text {
	case "\u2061", "\u2062", "\u2064": // function application, times, plus
		return ""
	case "\u2063": // separator
		return ","
	}
	return text
}

// operand adds parentheses to a part that is more than a name or a number.
func operand(text string) string {
	if isAtom(text) || strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) == "" {
		return text
	}
	if strings.HasPrefix(text, "(") && strings.IndexByte(text, ')') == len(text)-1 {
		return text
	}
	return "(" + text + ")"
}

// isAtom reports whether a text is a single name or number.
func isAtom(text string) bool {
	letters, digits := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			letters++
		case unicode.IsDigit(r) || r == '.':
			digits++
		default:
			return false
		}
	}
	return letters == 0 || digits == 0
}

// script returns a superscript or subscript with its mark. Primes have no mark.
func script(mark, text string) string {
	if text == "" || strings.Trim(text, "′″‴'") == "" {
		return text
	}
	return mark + operand(strings.ReplaceAll(text, "−", "-"))
}

// multiscripts writes a base with the scripts after it and, after mprescripts, those
// before it, in pairs of a subscript and a superscript.
func multiscripts(n *html.Node, parts []string) string {
	before := len(parts)
	i := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		if localName(c) == "mprescripts" {
			before = i
		}
		i++
	}
	scripts := func(list []string) string {
		text := ""
		for i := 0; i+1 < len(list); i += 2 {
			text += script(subscriptMark, list[i]) + script("^", list[i+1])
		}
		return text
	}
	if len(parts) == 0 {
		return ""
	}
	text := operand(parts[0]) + scripts(parts[1:max(before, 1)])
	if before < len(parts) {
		text = scripts(parts[before+1:]) + " " + text
	}
	return strings.TrimSpace(text)
}

func fenced(n *html.Node, parts []string) string {
	open, closing, separator := "(", ")", ","
	for _, a := range n.Attr {
		switch a.Key {
		case "open":
			open = a.Val
		case "close":
			closing = a.Val
		case "separators":
			separator = strings.TrimSpace(a.Val)
		}
	}
	if r := []rune(separator); len(r) > 1 {
		separator = string(r[0])
	}
	return open + strings.Join(parts, separator) + closing
}

// tableRow separates the cells of a row, unless they are the sides of an
// equation.
func tableRow(cells []string) string {
	for i, cell := range cells {
		if cell == "" || i > 0 && strings.IndexAny(cell, "=<>≤≥≈≡≠∈→⇒+-−") == 0 {
			return joinFormula(cells)
		}
	}
	return strings.Join(cells, ", ")
}

// joinFormula joins parts, with a space where two would otherwise merge into one name
// or number.
func joinFormula(parts []string) string {
	var b strings.Builder
	last := ""
	for _, part := range parts {
		if part == "" {
			continue
		}
		if needsSpace(last, part) {
			b.WriteByte(' ')
		}
		b.WriteString(part)
		last = part
	}
	return b.String()
}

func needsSpace(a, b string) bool {
	before, _ := utf8.DecodeLastRuneInString(a)
	after, _ := utf8.DecodeRuneInString(b)
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '√' }
	if !isWord(before) || !isWord(after) {
		return false
	}
	isOne := func(text string) bool { return utf8.RuneCountInString(text) == 1 }
	switch {
	case unicode.IsDigit(before) && unicode.IsDigit(after), strings.ContainsAny(a, "^/"+subscriptMark):
		return true
	case unicode.IsLetter(before) && isAtom(a) && !isOne(a): // a function
		return true
	}
	head := strings.IndexFunc(b, func(r rune) bool { return !unicode.IsLetter(r) })
	return head > utf8.RuneLen(after) || head < 0 && !isOne(b)
}
