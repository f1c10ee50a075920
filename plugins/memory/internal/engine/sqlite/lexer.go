package sqlite

import (
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// statement removes the semicolon, and the text after it, from the end of a
// query. It refuses anything but a comment after the semicolon, and a query that
// does not begin like a SELECT (the authorizer cannot tell EXPLAIN from SELECT).
// This is a first check: the parser then ensures that there is one statement, see
// precompile.
func statement(query string, bounds store.Sandbox) (string, error) {
	first, end := "", len(query)
	copies, used := newCopies(), parameters{}
	for at := 0; at < len(query); {
		kind, next := token(query, at)
		word := query[at:next]
		switch {
		case kind == blank:
		case end < len(query) && word != ";":
			return "", sandbox.Denied(bounds, query, at, "a second statement", "only a single SELECT is allowed")
		case word == ";":
			end = min(end, at)
		default:
			if first == "" {
				first = word
				if w := sandbox.Fold(word); w != "select" && w != "with" && w != "values" {
					return "", notSelect(query, at, word, kind, bounds)
				}
			}
			copies.add(kind, word, query[next:])
			used.add(word)
		}
		at = next
	}
	if first == "" {
		return "", tea.Errorf(tea.ValidationError, "the query is empty")
	}
	if copies.product() > maxCopies {
		return "", tea.Errorf(tea.ValidationError, "SQL: the query is too large: its nested queries use the same columns too often")
	}
	return query[:end], sandbox.Arguments(bounds, used)
}

// parameters are the parameters of a query, by name or number.
type parameters map[string]bool

func (p parameters) add(word string) {
	switch {
	case word == "?":
		p[strconv.Itoa(len(p)+1)] = true
	case strings.IndexByte("?:@$", word[0]) >= 0:
		p[word[1:]] = true
	}
}

// statements are the first words of statements.
var statements = sandbox.Words(`alter analyze attach begin commit create delete detach drop end explain insert pragma reindex release replace rollback savepoint
	update vacuum`)

func notSelect(query string, at int, word string, kind tokenKind, bounds store.Sandbox) error {
	if kind == name && statements()[sandbox.Fold(word)] {
		return sandbox.Denied(bounds, query, at, "a statement that is not a plain SELECT ("+strings.ToUpper(word)+")", "only a single SELECT is allowed")
	}
	return sandbox.Invalid(query, at, "a query begins with SELECT, WITH or VALUES, not with "+word)
}

type tokenKind int

const (
	blank  tokenKind = iota // white space and comments
	name                    // words and quoted names
	opaque                  // texts, numbers, signs
)

// token returns the kind and the end of the token at a position.
func token(s string, at int) (tokenKind, int) {
	switch c := s[at]; {
	case strings.IndexByte(" \t\r\n\f", c) >= 0:
		return blank, at + 1
	case strings.HasPrefix(s[at:], "--"):
		return blank, after(s, at, "\n")
	case strings.HasPrefix(s[at:], "/*"):
		return blank, after(s, at+2, "*/")
	case c == '\'':
		end, _ := sandbox.QuoteEnd(s, at)
		return opaque, end
	case c == '"', c == '`':
		end, _ := sandbox.QuoteEnd(s, at)
		return name, end
	case c == '[':
		return name, after(s, at, "]")
	case strings.IndexByte("?:@$", c) >= 0:
		return opaque, sandbox.WordEnd(s, at+1)
	case sandbox.IsWord(c):
		end := sandbox.WordEnd(s, at)
		if c >= '0' && c <= '9' {
			return opaque, end
		}
		return name, end
	}
	return opaque, at + 1
}

// after returns the position after the next occurrence of end, or the end of the
// text.
func after(s string, at int, end string) int {
	if i := strings.Index(s[at:], end); i >= 0 {
		return at + i + len(end)
	}
	return len(s)
}

// maxCopies bounds the copies of an expression that a query may need. SQLite
// merges a query with the queries in its FROM: if each level uses a column twice,
// twenty levels need a million copies, before SQLite checks any limit.
const maxCopies = 1 << 18

// copies estimates this number: for each SELECT, how often it uses a name.
type copies struct {
	open []*usage // of the enclosing parentheses, the innermost last
	all  []*usage
}

type usage struct {
	names  map[string]int
	shared bool // the parenthesis belongs to the enclosing SELECT
}

func newCopies() *copies {
	outer := &usage{names: map[string]int{}}
	return &copies{open: []*usage{outer}, all: []*usage{outer}}
}

func (c *copies) add(kind tokenKind, word, rest string) {
	inner := c.open[len(c.open)-1]
	switch {
	case word == "(":
		c.open = append(c.open, &usage{names: inner.names, shared: true})
	case word == ")":
		if len(c.open) > 1 {
			c.open = c.open[:len(c.open)-1]
		}
	case kind != name:
	case sandbox.Fold(word) == "select":
		if inner.shared {
			fresh := &usage{names: map[string]int{}}
			c.open[len(c.open)-1] = fresh
			c.all = append(c.all, fresh)
		}
	case strings.HasPrefix(strings.TrimLeft(rest, " \t\r\n"), "."), keywords()[sandbox.Fold(word)]:
	default:
		inner.names[sandbox.Fold(strings.Trim(word, "\"`[]"))]++
	}
}

// keywords are words that are not names.
var keywords = sandbox.Words(`all and as asc between by case cast cross desc distinct else end exists from full group having in inner is join left like limit
	not null on or order outer over partition recursive right rows select then union using values when where window with`)

func (c *copies) product() (product float64) {
	product = 1
	for _, u := range c.all {
		most := 1
		for _, n := range u.names {
			most = max(most, n)
		}
		product *= float64(most)
	}
	return product
}
