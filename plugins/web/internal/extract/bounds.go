package extract

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// defaultMaxElements is the default limit for the elements that the parser creates
	// for a page.
	defaultMaxElements = 320_000
	// minTags and minBytes are the number of tags and the size below which no page can
	// have too many elements.
	minTags  = 500
	minBytes = 1 << 20
	// attrsPerElement is the number of attributes per element that is read.
	attrsPerElement = 2
	// maxOpenFormatting is the number of elements that the parser keeps open.
	maxOpenFormatting = 512
	// maxQuotes bounds the nesting of quotes and lists: Markdown repeats their
	// marks on each line.
	maxQuotes = 12
)

// limitElements returns a page for which the parser creates a limited number of
// elements. The parser repeats unclosed formatting elements in each following
// paragraph, so a short page can create any number of them: their tags are removed if
// there would be too many. The page is cut off after too many tags.
func limitElements(text string, limit int) (bounded string, notes []string) {
	if len(text) <= minBytes && strings.Count(text, "<") <= minTags {
		return text, nil
	}
	end, repeated := countElements(text, limit)
	if end < len(text) {
		text = text[:end]
		notes = append(notes, fmt.Sprintf("the page has too many elements; everything after the first %d was left out", limit))
	}
	if repeated {
		text = removeFormatting(text)
		notes = append(notes, "the page does not close its elements for formatting, such as b; they were left out")
	}
	return text, notes
}

// countElements returns the position of the last element within the limit, and
// whether the parser would repeat too many elements. Comments count as elements, and
// so do end tags for which the parser creates an element.
func countElements(text string, limit int) (end int, repeated bool) {
	tokens := html.NewTokenizer(strings.NewReader(text))
	open := map[atom.Atom]int{}  // unclosed formatting elements
	total, count, all := 0, 0, 0 // all includes the elements that the parser repeats
	attrs := 0
	for {
		kind := tokens.Next()
		start := end
		end += len(tokens.Raw())
		switch kind {
		case html.ErrorToken:
			return len(text), all > limit
		case html.CommentToken:
			count++
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, more := tokens.TagName()
			tag := atom.Lookup(name)
			switch {
			case !isFormatting(tag):
				all += min(total, maxOpenFormatting)
			case kind == html.StartTagToken:
				open[tag]++
				total++
			case open[tag] > 0:
				open[tag]--
				total--
			}
			if kind != html.EndTagToken || tag == atom.P || tag == atom.Br {
				count++
			}
			for ; more; attrs++ {
				_, _, more = tokens.TagAttr()
			}
		}
		if attrs > attrsPerElement*limit {
			return start, all > limit
		}
		if count >= limit {
			return end, all > limit
		}
	}
}

// removeFormatting removes the tags of formatting elements.
func removeFormatting(text string) string {
	var out strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if tokens.Err() == io.EOF {
				out.Write(tokens.Raw())
			}
			return out.String()
		}
		raw := string(tokens.Raw())
		if kind == html.StartTagToken || kind == html.EndTagToken {
			if name, _ := tokens.TagName(); isFormatting(atom.Lookup(name)) {
				continue
			}
		}
		out.WriteString(raw)
	}
}

// isFormatting reports whether the parser repeats an unclosed element in the following
// paragraphs. It repeats one link only.
func isFormatting(tag atom.Atom) bool {
	switch tag {
	case atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

// boundNesting unwraps quotes and lists that are nested deeper than maxQuotes.
func boundNesting(n *html.Node, depth int) {
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol:
		depth++
	}
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol, atom.Li:
		if depth > maxQuotes {
			rename(n, atom.Div)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		boundNesting(c, depth)
	}
}

func rename(n *html.Node, to atom.Atom) {
	n.DataAtom, n.Data, n.Attr = to, to.String(), nil
}
