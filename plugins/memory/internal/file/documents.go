package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// MaxDocument is how large a JSON document may be to be searched: as values
// of Go it takes many times the memory.
const MaxDocument = 2 << 20

// maxValues bounds the nodes that are shown of one document.
const maxValues = 100

// DocumentSearch asks for JSON documents: files that are JSON, and the lines
// of files of JSON Lines.
type DocumentSearch struct {
	// Conditions must all hold.
	Conditions []Condition
	Query
	Limit int
}

// FoundDocument is a document for which the conditions hold.
type FoundDocument struct {
	Path string
	// Line is that of the document in a file of JSON Lines, from 1; else 0.
	Line int
	// Nodes are what the conditions have found.
	Nodes []Node
}

// FoundDocuments is the answer of a DocumentSearch.
type FoundDocuments struct {
	Documents []FoundDocument
	// Searched counts the files that were read, Skipped those that are no
	// valid JSON, too large or damaged.
	Searched, Skipped int
	// Truncated says that there may be more: the limit was reached or the time
	// was over.
	Truncated bool
}

// Fits says whether all conditions hold for a document, and which nodes they
// have found.
func Fits(conditions []Condition, document any) (nodes []Node, fits bool) {
	for _, c := range conditions {
		found, holds := c.find(document)
		if !holds {
			return nil, false
		}
		nodes = append(nodes, found[:min(len(found), maxValues-len(nodes))]...)
	}
	return nodes, true
}

// Search finds documents in the order of their paths and lines. When the
// context ends for lack of time, what was found so far is the answer.
func (f *Files) Search(ctx context.Context, s DocumentSearch) (*FoundDocuments, error) {
	found := &FoundDocuments{}
	for file, err := range f.All(ctx, s.Query) {
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
	byLine := file.Type == typeJSONLines
	if !byLine && file.Type != typeJSON && !strings.HasSuffix(file.Type, "+json") && strings.ToLower(path.Ext(file.Path)) != ".json" {
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
		return searchLines(ctx, s, file.Path, r, found)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !found.take(s, file.Path, 0, data) {
		found.Skipped++
	}
	return ctx.Err()
}

func searchLines(ctx context.Context, s DocumentSearch, path string, r io.Reader, found *FoundDocuments) error {
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
		if line = bytes.TrimSpace(line); len(line) > 0 && !found.take(s, path, number, line) {
			broken = true
		}
	}
	if broken {
		found.Skipped++
	}
	return nil
}

// take adds a document where the conditions hold. It says whether the text is
// valid JSON.
func (found *FoundDocuments) take(s DocumentSearch, path string, line int, text []byte) (valid bool) {
	document, err := value.Decode(text)
	if err != nil {
		return false
	}
	nodes, fits := Fits(s.Conditions, document)
	switch {
	case !fits:
	case len(found.Documents) == s.Limit:
		found.Truncated = true
	default:
		found.Documents = append(found.Documents, FoundDocument{Path: path, Line: line, Nodes: nodes})
	}
	return true
}
