package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Snapshot is the list of a table's files at a point in time. It never changes.
type Snapshot struct {
	ID          string          `json:"id"`
	Table       string          `json:"table"`
	Number      int64           `json:"number"`
	Parent      string          `json:"parent,omitempty"`
	Description string          `json:"description,omitempty"`
	Files       []FileRef       `json:"files"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Version is the last change in a managed table.
	Version int64 `json:"version,omitempty"`
	// Call is NewSnapshot.Call.
	Call      string        `json:"call,omitempty"`
	CreatedAt clock.Instant `json:"created_at"`
	// Damaged reports whether the document is damaged; only ID and Table are set.
	Damaged bool `json:"-"`
}

// FileRef identifies a file and its content.
type FileRef struct {
	Path        string `json:"path"`
	ContentHash string `json:"content_hash"`
	Size        int64  `json:"size,omitempty"`
	Rows        int64  `json:"row_count,omitempty"`
}

func refs(files []File) []FileRef {
	all := make([]FileRef, len(files))
	for i, f := range files {
		all[i] = FileRef{Path: f.Path, ContentHash: f.ContentHash, Size: f.Size, Rows: f.Rows}
	}
	return all
}

func snapshotID(table string, number int64) string {
	return fmt.Sprintf("%s%06d", snapshotPrefix(table), number)
}

// snapshotPrefix begins the ids of a table's snapshots. Names of tables do not
// contain an @.
func snapshotPrefix(table string) string { return table + "@" }

// NewSnapshot defines a snapshot.
type NewSnapshot struct {
	// Paths are its files; nil = all files of the table.
	Paths       []string
	Description string
	Metadata    json.RawMessage
	// Call identifies the call, so that it can be repeated after a crash: if the last snapshot has the same Call, it is
	// returned.
	Call string
}

// CreateSnapshot stores the list of a table's current files.
func (c *Catalog) CreateSnapshot(ctx context.Context, table string, n NewSnapshot) (s Snapshot, err error) {
	id, err := c.open(ctx, table)
	if err != nil {
		return Snapshot{}, err
	}
	if err := checkObject("metadata", &n.Metadata); err != nil {
		return Snapshot{}, err
	}
	err = change(ctx, func() error {
		last, err := c.LastSnapshot(ctx, id)
		if err != nil {
			return err
		}
		if last != nil && n.Call != "" && last.Call == n.Call {
			s = *last
			return nil
		}
		files, err := c.allFiles(ctx, id)
		if err != nil {
			return err
		}
		s = Snapshot{Table: id, Description: n.Description, Metadata: n.Metadata, Files: refs(files), Call: n.Call, CreatedAt: c.now()}
		if n.Paths != nil {
			if s.Files, err = chosen(s.Files, n.Paths); err != nil {
				return err
			}
		}
		s.follow(last)
		change, err := put(snapshotKind, s.ID, 0, s)
		if err != nil {
			return err
		}
		return c.docs.Apply(ctx, change)
	})
	return s, err
}

// follow numbers the snapshot after the last one, which can be nil.
func (s *Snapshot) follow(last *Snapshot) {
	if last != nil {
		s.Number, s.Parent = last.Number, last.ID
	}
	s.Number++
	s.ID = snapshotID(s.Table, s.Number)
}

func chosen(files []FileRef, paths []string) ([]FileRef, error) {
	byPath := map[string]FileRef{}
	names := make([]string, len(files))
	for i, f := range files {
		byPath[f.Path], names[i] = f, f.Path
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(paths)))
	all := make([]FileRef, len(wanted))
	for i, path := range wanted {
		f, ok := byPath[path]
		if !ok {
			return nil, NotFound("tracked file", path, names)
		}
		all[i] = f
	}
	return all, nil
}

// LastSnapshot returns the last snapshot of a table, or nil. A caller that then
// adds a snapshot must prevent concurrent additions.
func (c *Catalog) LastSnapshot(ctx context.Context, table string) (*Snapshot, error) {
	docs, err := c.docs.Query(ctx, store.DocumentQuery{Kind: snapshotKind, Where: ofTable(strings.ToLower(table)), OrderBy: "number", Descending: true, Limit: 1})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	s := &Snapshot{}
	return s, decode(docs[0], s)
}

func ofTable(id string) []store.Condition {
	return []store.Condition{{Field: "id", Op: store.Prefix, Value: snapshotPrefix(id)}}
}

// LatestSnapshot returns the last snapshot of a table, or a not_found error.
func (c *Catalog) LatestSnapshot(ctx context.Context, table string) (Snapshot, error) {
	t, err := c.Table(ctx, table)
	if err != nil {
		return Snapshot{}, err
	}
	last, err := c.LastSnapshot(ctx, t.Name)
	if err != nil {
		return Snapshot{}, err
	}
	if last == nil {
		return Snapshot{}, tea.Errorf(tea.NotFound, "table %q has no snapshot", t.Name)
	}
	return *last, nil
}

// Snapshots returns a page of a table's snapshots, the last one first, and the
// number of snapshots in all pages.
func (c *Catalog) Snapshots(ctx context.Context, table string, p Page) ([]Snapshot, int, error) {
	t, err := c.Table(ctx, table)
	if err != nil {
		return nil, 0, err
	}
	id := strings.ToLower(t.Name)
	var after []store.Condition
	if p.After != "" {
		number, err := strconv.ParseInt(strings.TrimPrefix(p.After, snapshotPrefix(id)), 10, 64)
		if err != nil {
			return nil, 0, tea.Errorf(tea.ValidationError, "%q is not a snapshot of table %q", p.After, t.Name)
		}
		after = append(after, store.Condition{Field: "number", Op: store.Lt, Value: number})
	}
	query := store.DocumentQuery{Kind: snapshotKind, Where: ofTable(id), OrderBy: "number", Descending: true}
	return page(ctx, c, query, p.Limit, func(id string) Snapshot { return Snapshot{ID: id, Table: t.Name, Damaged: true} }, after...)
}

func (c *Catalog) snapshot(ctx context.Context, table, id string) (s Snapshot, err error) {
	version, err := c.get(ctx, snapshotKind, id, &s)
	if err == nil && (version == 0 || s.Table != table) {
		err = tea.Errorf(tea.NotFound, "table %q has no snapshot %q", table, id)
	}
	return s, err
}

func (c *Catalog) allFiles(ctx context.Context, id string) ([]File, error) {
	docs, err := c.docs.Query(ctx, store.DocumentQuery{Kind: fileKind, OrderBy: "id", Limit: math.MaxInt32, Where: []store.Condition{{Field: "id", Op: store.Prefix, Value: id + "/"}}})
	if err != nil {
		return nil, err
	}
	return decodeAll[File](docs)
}
