package jsonschema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// place is the position of a value; nil is the root. It is formatted only to report a
// problem.
type place struct {
	parent *place
	name   string
	index  int // used if name is unset
	isItem bool
}

func (p *place) member(name string) *place { return &place{parent: p, name: name} }

func (p *place) item(i int) *place { return &place{parent: p, index: i, isItem: true} }

// String returns the path, such as items[3].name.
func (p *place) String() string {
	var parts []string
	for ; p != nil; p = p.parent {
		if p.isItem {
			parts = append(parts, diag.Index("", p.index))
		} else {
			parts = append(parts, diag.Key("", p.name))
		}
	}
	var b strings.Builder
	for _, part := range slices.Backward(parts) {
		if b.Len() > 0 && part[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// pathOf converts a JSON pointer to a path.
func pathOf(pointer string) string {
	path := ""
	if pointer == "" {
		return path
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if i, err := strconv.Atoi(token); err == nil {
			path = diag.Index(path, i)
			continue
		}
		path = diag.Key(path, unescape(token))
	}
	return path
}
