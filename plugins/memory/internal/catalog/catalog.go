package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"unicode"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The kinds of the catalog's documents.
const (
	tableKind    = "catalog_table"
	fileKind     = "catalog_file"
	snapshotKind = "catalog_snapshot"
)

const (
	maxPath = 1024
	// maxCandidates bounds the names that are searched for a suggestion.
	maxCandidates = 1000
	// maxTries bounds the repetitions of a change after conflicts.
	maxTries = 100
)

// Catalog is a catalog of tables. It is safe for concurrent use. Names of tables
// are not case-sensitive.
type Catalog struct {
	docs  store.MetadataStore
	clock *clock.Clock
}

// New creates a catalog. The documents belong to the caller.
func New(docs store.MetadataStore, clock *clock.Clock) *Catalog {
	return &Catalog{docs: docs, clock: clock}
}

func (c *Catalog) now() clock.Instant { return clock.Instant{Time: c.clock.Now()} }

// Page selects a part of a list.
type Page struct {
	// Limit bounds the part; 0 = 1,000.
	Limit int
	// After is the last entry of the previous part; "" = from the beginning.
	After string
}

var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`) })

func tableID(name string) (string, error) {
	if !tableName().MatchString(name) {
		return "", tea.Errorf(tea.ValidationError, "%q is not a valid table name: use at most 128 letters, digits and _.-, with a letter or _ first", name)
	}
	return strings.ToLower(name), nil
}

func checkPath(path string) error {
	if path == "" || len(path) > maxPath || strings.ContainsFunc(path, unicode.IsControl) {
		return tea.Errorf(tea.ValidationError, "%q is not a valid path: use 1 to %d bytes without control characters", path, maxPath)
	}
	return nil
}

// checkObject checks that a parameter is an object, null or absent; null becomes
// absent.
func checkObject(what string, raw *json.RawMessage) error {
	if string(*raw) == "null" {
		*raw = nil
	}
	if *raw == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(*raw, &object); err != nil {
		return tea.Errorf(tea.ValidationError, "%s must be an object, not %.40s", what, *raw)
	}
	return nil
}

// change repeats a change while it conflicts with concurrent ones.
func change(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if !errors.Is(err, store.ErrConflict) || n == maxTries || ctx.Err() != nil {
			return err
		}
	}
}

// get reads a document into v and returns its version, 0 if it does not exist.
func (c *Catalog) get(ctx context.Context, kind, id string, v any) (version int64, err error) {
	doc, err := c.docs.Get(ctx, kind, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return doc.Version, decode(doc, v)
}

// ErrDamaged is wrapped by the error for an entry that cannot be read.
var ErrDamaged = errors.New("damaged")

func decode(doc store.Document, v any) error {
	if err := json.Unmarshal(doc.Body, v); err != nil {
		return tea.Errorf(tea.InternalError, "the %s %q of the catalog is %w; restore a backup of the memory: %w", doc.Kind, doc.ID, ErrDamaged, err)
	}
	return nil
}

func decodeAll[T any](docs []store.Document) ([]T, error) {
	all := make([]T, len(docs))
	for i, doc := range docs {
		if err := decode(doc, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// put returns the change that writes v. Version 0 means a new document.
func put(kind, id string, version int64, v any) (store.Change, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return store.Change{}, tea.Errorf(tea.ValidationError, "%s %s: %w", kind, id, err)
	}
	if version == 0 {
		version = store.New
	}
	return store.Change{Kind: kind, ID: id, Body: body, If: version}, nil
}

// page returns the selected documents that match after, at most limit, and the
// number of all selected documents. damaged returns the entry for a damaged
// document, which must not hide the others.
func page[T any](ctx context.Context, c *Catalog, query store.DocumentQuery, limit int, damaged func(id string) T, after ...store.Condition) (found []T, total int, err error) {
	if total, err = c.docs.Count(ctx, query); err != nil {
		return nil, 0, err
	}
	query.Limit, query.Where = limit, append(query.Where, after...)
	docs, err := c.docs.Query(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	found = make([]T, len(docs))
	for i, doc := range docs {
		if decode(doc, &found[i]) != nil {
			found[i] = damaged(doc.ID)
		}
	}
	return found, total, nil
}

func (c *Catalog) missingTable(ctx context.Context, name string) error {
	tables, _, err := c.Tables(ctx, TableQuery{Page: Page{Limit: maxCandidates}})
	if err != nil {
		return err
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	return NotFound("table", name, names)
}

// NotFound is a not_found error with a suggestion from the names that exist.
func NotFound(what, name string, names []string) error {
	return tea.Errorf(tea.NotFound, "there is no %s %q%s", what, name, diag.Ending(name, names))
}

// Views are the tables catalog_tables and catalog_files for queries of workflows.
func Views(dialect store.Dialect) []store.View {
	return []store.View{
		documents.View(dialect, "catalog_tables", tableKind, []documents.Shown{
			{Name: "name", Field: "name"},
			{Name: "description", Field: "description"},
			{Name: "format", Field: "format"},
			{Name: "location", Field: "location"},
			{Name: "schema", Field: "schema", As: documents.Object},
			{Name: "metadata", Field: "metadata", As: documents.Object},
			{Name: "managed", Field: "managed", As: documents.Bool},
			{Name: "created_at", Field: "created_at", As: documents.Instant},
			{Name: "updated_at", Field: "updated_at", As: documents.Instant},
		}),
		documents.View(dialect, "catalog_files", fileKind, []documents.Shown{
			{Name: "table_name", Field: "table"},
			{Name: "path", Field: "path"},
			{Name: "content_hash", Field: "content_hash"},
			{Name: "size", Field: "size", As: documents.Number},
			{Name: "row_count", Field: "row_count", As: documents.Number},
			{Name: "format", Field: "format"},
			{Name: "metadata", Field: "metadata", As: documents.Object},
			{Name: "tracked_at", Field: "tracked_at", As: documents.Instant},
		}),
	}
}
