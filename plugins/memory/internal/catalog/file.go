package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// File describes a file of a table. The catalog never opens it.
type File struct {
	Table       string          `json:"table"` // the table's id
	Path        string          `json:"path"`
	ContentHash string          `json:"content_hash,omitempty"`
	Size        int64           `json:"size"`
	Rows        int64           `json:"row_count"`
	Format      string          `json:"format,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Partition   json.RawMessage `json:"partition,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Base reports whether a file of a managed table has each key once and no
	// deletions. FirstVersion and LastVersion are the range of its changes.
	Base         bool          `json:"base,omitempty"`
	FirstVersion int64         `json:"first_version,omitempty"`
	LastVersion  int64         `json:"last_version,omitempty"`
	TrackedAt    clock.Instant `json:"tracked_at"`
	// Damaged reports whether the document is damaged; only Table and Path are set.
	Damaged bool `json:"-"`
}

func (f File) id() string { return f.Table + "/" + f.Path }

// Outcome is the outcome of tracking a file.
type Outcome string

// The outcomes.
const (
	Added     Outcome = "added"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
)

// Track adds files to a table atomically. A file with the same path is replaced.
func (c *Catalog) Track(ctx context.Context, table string, files []File) ([]Outcome, error) {
	id, err := c.open(ctx, table)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range files {
		f := &files[i]
		f.Table = id
		if err := f.check(); err != nil {
			return nil, err
		}
		if seen[f.Path] {
			return nil, tea.Errorf(tea.ValidationError, "the file %q appears twice", f.Path)
		}
		seen[f.Path] = true
	}
	outcomes := make([]Outcome, len(files))
	err = change(ctx, func() error { return c.track(ctx, files, outcomes) })
	return outcomes, err
}

func (f *File) check() error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.Size < 0 || f.Rows < 0 {
		return tea.Errorf(tea.ValidationError, "file %q: size and row_count must not be negative", f.Path)
	}
	if err := checkObject("partition", &f.Partition); err != nil {
		return err
	}
	return checkObject("metadata", &f.Metadata)
}

func (c *Catalog) track(ctx context.Context, files []File, outcomes []Outcome) error {
	var changes []store.Change
	for i := range files {
		f := &files[i]
		var have File
		version, err := c.get(ctx, fileKind, f.id(), &have)
		if err != nil {
			return err
		}
		f.TrackedAt = c.now()
		switch {
		case version == 0:
			outcomes[i] = Added
		case same(have, *f):
			outcomes[i], f.TrackedAt = Unchanged, have.TrackedAt
			continue
		default:
			outcomes[i] = Changed
		}
		change, err := put(fileKind, f.id(), version, *f)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 {
		return nil
	}
	return c.docs.Apply(ctx, changes...)
}

func same(a, b File) bool {
	a.TrackedAt = b.TrackedAt
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

// Forget removes a file from a table and reports whether the table had it.
func (c *Catalog) Forget(ctx context.Context, table, path string) (removed bool, err error) {
	id, err := c.open(ctx, table)
	if err != nil {
		return false, err
	}
	if err := checkPath(path); err != nil {
		return false, err
	}
	err = change(ctx, func() error {
		var have File
		version, err := c.get(ctx, fileKind, File{Table: id, Path: path}.id(), &have)
		if err != nil {
			return err
		}
		if removed = version != 0; !removed {
			return nil
		}
		return c.docs.Apply(ctx, store.Change{Kind: fileKind, ID: have.id(), If: version})
	})
	return removed, err
}

// File returns one file of a table, or a not_found error.
func (c *Catalog) File(ctx context.Context, table, path string) (f File, err error) {
	t, err := c.Table(ctx, table)
	if err != nil {
		return File{}, err
	}
	id, err := tableID(t.Name)
	if err != nil {
		return File{}, err
	}
	version, err := c.get(ctx, fileKind, File{Table: id, Path: path}.id(), &f)
	if err == nil && version == 0 {
		err = tea.Errorf(tea.NotFound, "table %q has no file %q", t.Name, path)
	}
	return f, err
}

// FileQuery selects files of a table.
type FileQuery struct {
	Prefix string
	// Partition are values that a file's partition must contain.
	Partition map[string]any
	Page
}

// Files returns a page of a table's files in the order of their paths, and the
// number of files in all pages.
func (c *Catalog) Files(ctx context.Context, table string, q FileQuery) ([]File, int, error) {
	if _, err := c.Table(ctx, table); err != nil {
		return nil, 0, err
	}
	id, err := tableID(table)
	if err != nil {
		return nil, 0, err
	}
	query := store.DocumentQuery{Kind: fileKind, OrderBy: "id", Where: []store.Condition{{Field: "id", Op: store.Prefix, Value: id + "/" + q.Prefix}}}
	for _, name := range slices.Sorted(maps.Keys(q.Partition)) {
		query.Where = append(query.Where, store.Condition{Field: "partition." + name, Op: store.Eq, Value: q.Partition[name]})
	}
	var after []store.Condition
	if q.After != "" {
		after = append(after, store.Condition{Field: "id", Op: store.Gt, Value: id + "/" + q.After})
	}
	damaged := func(name string) File {
		return File{Table: id, Path: strings.TrimPrefix(name, id+"/"), Damaged: true}
	}
	files, total, err := page(ctx, c, query, q.Limit, damaged, after...)
	if err != nil && len(q.Partition) > 0 && tea.AsError(err).Type == tea.ValidationError {
		err = tea.Errorf(tea.ValidationError, "partition: %s", tea.AsError(err).Message)
	}
	return files, total, err
}

// FilesOf returns all files of a table, by path.
func (c *Catalog) FilesOf(ctx context.Context, table string) ([]File, error) {
	return c.allFiles(ctx, strings.ToLower(table))
}
