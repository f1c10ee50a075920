package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/operator"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// MaxDocument is the size in bytes of the largest JSON document that is searched.
// A decoded document takes several times its size.
const MaxDocument = 2 << 20

// maxValues bounds the nodes in the result of one document.
const maxValues = 100

// DocumentSearch selects documents: JSON files, the lines of JSON Lines files, and
// the documents of YAML files.
type DocumentSearch struct {
	// Conditions must all match.
	Conditions []Condition
	Query
	Limit int
}

// FoundDocument is a document that matches.
type FoundDocument struct {
	// Source is the source of the file.
	Source string
	Path   string
	// Line is the line in a file of several documents, from 1; 0 in other files.
	Line int
	// Nodes are the nodes that satisfy the conditions.
	Nodes []Node
}

// FoundDocuments is the result of a DocumentSearch.
type FoundDocuments struct {
	Documents []FoundDocument
	// Searched is the number of files that were read, Skipped the number of files
	// that are not valid JSON or YAML, too large or damaged.
	Searched, Skipped int
	// Truncated reports whether the limit or the deadline ended the search.
	Truncated bool
}

// Condition compares the nodes that a path selects with a value. A document
// matches if one of the nodes satisfies the comparison; for a negative
// comparison, all nodes must.
type Condition struct {
	path       *JSONPath
	comparison operator.Comparison
}

func signs() map[string]string {
	return map[string]string{"": "eq", "=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
}

// NewCondition checks a condition. wanted is in the value model. The error is a
// validation_error.
func NewCondition(path, op string, wanted any) (Condition, error) {
	p, err := ParseJSONPath(path)
	if err != nil {
		return Condition{}, err
	}
	if name, ok := signs()[op]; ok {
		op = name
	}
	comparison, err := operator.New(op, wanted)
	if err != nil {
		return Condition{}, tea.Errorf(tea.ValidationError, "%s: %w", path, err)
	}
	return Condition{path: p, comparison: comparison}, nil
}

// find reports whether a document matches, and returns the matching nodes; a negative condition has none.
func (c Condition) find(document any) (nodes []Node, holds bool) {
	negative := c.comparison.Negative()
	c.path.visit(document, func(trail []segment, v any) bool {
		if c.comparison.Holds(v, true) != negative {
			nodes = append(nodes, Node{Path: pathOf(trail), Value: v})
		}
		return len(nodes) < maxValues && (!negative || len(nodes) == 0)
	})
	if negative {
		return nil, len(nodes) == 0
	}
	return nodes, len(nodes) > 0
}

// MatchConditions reports whether a document matches all conditions, and returns the matching nodes.
func MatchConditions(conditions []Condition, document any) (nodes []Node, fits bool) {
	for _, c := range conditions {
		found, holds := c.find(document)
		if !holds {
			return nil, false
		}
		nodes = append(nodes, found[:min(len(found), maxValues-len(nodes))]...)
	}
	return nodes, true
}

// Search finds documents in the order of their paths and lines. At the context's
// deadline it returns the results so far, without an error.
func (f *Files) Search(ctx context.Context, s DocumentSearch) (*FoundDocuments, error) {
	found := &FoundDocuments{}
	for file, err := range f.All(ctx, s.Query) {
		if file.Damaged {
			found.Skipped++
		}
		if err == nil && file.Text {
			before := *found
			if err = f.searchFile(ctx, s, file, found); errors.Is(err, content.ErrDamaged) {
				*found, err = before, nil
				found.Skipped++
			}
		}
		if outOfTime(ctx, err) {
			found.Truncated = true
			return found, nil
		}
		if err != nil || found.Truncated {
			return found, err
		}
	}
	return found, nil
}

func (f *Files) searchFile(ctx context.Context, s DocumentSearch, file File, found *FoundDocuments) error {
	byLine, isYAML := file.Type == typeJSONLines, file.isYAML()
	if !byLine && !isYAML && file.Type != typeJSON && !strings.HasSuffix(file.Type, "+json") && strings.ToLower(path.Ext(file.Path)) != ".json" {
		return nil
	}
	if !byLine && file.Size > MaxDocument {
		found.Skipped++
		return nil
	}
	r, err := f.listed(ctx, file)
	if errors.Is(err, store.ErrNotFound) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer r.Close()
	found.Searched++
	if byLine {
		return searchLines(ctx, s, file, r, found)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if isYAML {
		found.takeYAML(s, file, data)
		return ctx.Err()
	}
	if !found.take(s, file, 0, data) {
		found.Skipped++
	}
	return ctx.Err()
}

func searchLines(ctx context.Context, s DocumentSearch, file File, r io.Reader, found *FoundDocuments) error {
	lines := lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	broken := false
	for number := 1; !found.Truncated; number++ {
		line, err := lines.next()
		if err == nil && number%256 == 0 {
			err = ctx.Err()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && !found.take(s, file, number, line) {
			broken = true
		}
	}
	if broken {
		found.Skipped++
	}
	return nil
}

// take adds a document if it matches, and reports whether the text is valid
// JSON.
func (found *FoundDocuments) take(s DocumentSearch, file File, line int, text []byte) (valid bool) {
	document, err := value.Decode(text)
	if err != nil {
		return false
	}
	found.add(s, file, line, document)
	return true
}

// takeYAML adds the documents of a YAML text that match. If there are several, each has
// its line.
func (found *FoundDocuments) takeYAML(s DocumentSearch, file File, text []byte) {
	all, err := DecodeYAML(bytes.NewReader(text))
	if err != nil {
		found.Skipped++
		return
	}
	for _, d := range all {
		if len(all) == 1 {
			d.Line = 0
		}
		found.add(s, file, d.Line, d.Value)
	}
}

func (found *FoundDocuments) add(s DocumentSearch, file File, line int, document any) {
	nodes, fits := MatchConditions(s.Conditions, document)
	switch {
	case !fits:
	case len(found.Documents) == s.Limit:
		found.Truncated = true
	default:
		found.Documents = append(found.Documents, FoundDocument{Source: file.Source(), Path: file.Path, Line: line, Nodes: nodes})
	}
}
