package memory

import (
	"context"
	"encoding/json"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

// TrackedView is a file of a table as the catalog shows it.
type TrackedView struct {
	Table       string          `json:"table"`
	Path        string          `json:"path"`
	ContentHash string          `json:"content_hash" doc:"empty if it was not given"`
	Size        int64           `json:"size" doc:"in bytes"`
	RowCount    int64           `json:"row_count"`
	Format      string          `json:"format"`
	Schema      json.RawMessage `json:"schema" doc:"null if it was not given"`
	Partition   json.RawMessage `json:"partition" doc:"values of the partition columns; null if there are none"`
	Metadata    json.RawMessage `json:"metadata" doc:"null if there is none"`
	TrackedAt   string          `json:"tracked_at"`
	Damaged     bool            `json:"damaged,omitempty" doc:"true if its row in the database is damaged; only the name is set then"`
}

func trackedView(f catalog.File) TrackedView {
	return TrackedView{
		Table: f.Table, Path: f.Path, ContentHash: f.ContentHash, Size: f.Size, RowCount: f.Rows, Format: f.Format, Schema: orNull(f.Schema), Partition: orNull(f.Partition),
		Metadata: orNull(f.Metadata), TrackedAt: clock.Text(f.TrackedAt.Time), Damaged: f.Damaged,
	}
}

// TrackedFile describes a file to be tracked.
type TrackedFile struct {
	Path        string          `json:"path,omitempty" doc:"unique name: a path, a URL or any text"`
	ContentHash string          `json:"content_hash,omitempty" maxLength:"200" doc:"hash of the content; a different one means that the file has changed"`
	Size        int64           `json:"size,omitempty" minimum:"0" doc:"in bytes"`
	RowCount    int64           `json:"row_count,omitempty" minimum:"0"`
	Format      string          `json:"format,omitempty" maxLength:"100"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Partition   json.RawMessage `json:"partition,omitempty" doc:"object with the values of the partition columns"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"any object"`
}

// CatalogTrackFileParams are the parameters of catalog.track_file: one file, or
// files.
type CatalogTrackFileParams struct {
	Table string `json:"table" minLength:"1"`
	TrackedFile
	Files []TrackedFile `json:"files,omitempty" doc:"several files, instead of path; they are tracked atomically"`
}

// CatalogTracked is the outcome of tracking a file.
type CatalogTracked struct {
	Path   string `json:"path"`
	Status string `json:"status" enum:"added,changed,unchanged" doc:"added if the table did not have the file"`
}

// CatalogTrackFileResult is the result of catalog.track_file.
type CatalogTrackFileResult struct {
	Success   bool             `json:"success"`
	Table     string           `json:"table"`
	Files     []CatalogTracked `json:"files" doc:"in the order of the parameters"`
	Count     int              `json:"count"`
	Added     int              `json:"added"`
	Changed   int              `json:"changed"`
	Unchanged int              `json:"unchanged"`
}

// CatalogTrackFile is the action catalog.track_file.
func (m *Memory) CatalogTrackFile(ctx context.Context, _ *tea.Request, p CatalogTrackFileParams) (*CatalogTrackFileResult, error) {
	given := p.Files
	switch {
	case p.Path != "" && given != nil:
		return nil, tea.Errorf(tea.ValidationError, "catalog.track_file takes path, or files, not both")
	case p.Path != "":
		given = []TrackedFile{p.TrackedFile}
	case given == nil:
		return nil, tea.Errorf(tea.ValidationError, "catalog.track_file needs path or files")
	case len(given) > maxItems:
		return nil, tea.Errorf(tea.ValidationError, "too many files: %d (limit %d)", len(given), maxItems)
	}
	files := make([]catalog.File, len(given))
	for i, g := range given {
		files[i] = catalog.File{
			Path: g.Path, ContentHash: g.ContentHash, Size: g.Size, Rows: g.RowCount, Format: g.Format, Schema: objectOrNone(g.Schema), Partition: g.Partition, Metadata: g.Metadata,
		}
	}
	outcomes, err := m.folder.catalog.Track(ctx, p.Table, files)
	if err != nil {
		return nil, err
	}
	r := &CatalogTrackFileResult{Success: true, Table: p.Table, Files: make([]CatalogTracked, len(files)), Count: len(files)}
	counts := map[catalog.Outcome]*int{catalog.Added: &r.Added, catalog.Changed: &r.Changed, catalog.Unchanged: &r.Unchanged}
	for i, o := range outcomes {
		r.Files[i] = CatalogTracked{Path: files[i].Path, Status: string(o)}
		*counts[o]++
	}
	return r, nil
}

// CatalogFileParams name a file of a table.
type CatalogFileParams struct {
	Table string `json:"table" minLength:"1"`
	Path  string `json:"path" minLength:"1"`
}

// CatalogUntrackFileResult is the result of catalog.untrack_file.
type CatalogUntrackFileResult struct {
	Success bool   `json:"success"`
	Removed bool   `json:"removed" doc:"false if the table did not have the file"`
	Table   string `json:"table"`
	Path    string `json:"path"`
}

// CatalogUntrackFile is the action catalog.untrack_file.
func (m *Memory) CatalogUntrackFile(ctx context.Context, _ *tea.Request, p CatalogFileParams) (*CatalogUntrackFileResult, error) {
	removed, err := m.folder.catalog.Forget(ctx, p.Table, p.Path)
	if err != nil {
		return nil, err
	}
	return &CatalogUntrackFileResult{Success: true, Removed: removed, Table: p.Table, Path: p.Path}, nil
}

// CatalogFileResult is the result of catalog.get_file.
type CatalogFileResult struct {
	Success bool `json:"success"`
	TrackedView
}

// CatalogGetFile is the action catalog.get_file.
func (m *Memory) CatalogGetFile(ctx context.Context, _ *tea.Request, p CatalogFileParams) (*CatalogFileResult, error) {
	f, err := m.folder.catalog.File(ctx, p.Table, p.Path)
	if err != nil {
		return nil, err
	}
	return &CatalogFileResult{Success: true, TrackedView: trackedView(f)}, nil
}

// CatalogListFilesParams are the parameters of catalog.list_files.
type CatalogListFilesParams struct {
	Table     string         `json:"table" minLength:"1"`
	Prefix    string         `json:"prefix,omitempty" doc:"beginning of the paths"`
	Partition map[string]any `json:"partition,omitempty" doc:"values that the partition of a file must contain"`
	Limit     int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor    string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// CatalogListFilesResult is the result of catalog.list_files.
type CatalogListFilesResult struct {
	Success    bool          `json:"success"`
	Table      string        `json:"table"`
	Files      []TrackedView `json:"files" doc:"ordered by path"`
	Count      int           `json:"count" doc:"number on this page"`
	Total      int           `json:"total" doc:"number on all pages"`
	NextCursor string        `json:"next_cursor" doc:"empty on the last page"`
}

// CatalogListFiles is the action catalog.list_files.
func (m *Memory) CatalogListFiles(ctx context.Context, _ *tea.Request, p CatalogListFilesParams) (*CatalogListFilesResult, error) {
	model, err := value.From(p.Partition)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "partition: %w", err)
	}
	partition, _ := model.(map[string]any)
	files, total, err := m.folder.catalog.Files(ctx, p.Table, catalog.FileQuery{Prefix: p.Prefix, Partition: partition, Page: catalogPage(p.Limit, p.Cursor)})
	if err != nil {
		return nil, err
	}
	r := &CatalogListFilesResult{Success: true, Table: p.Table, Total: total}
	r.Files, r.NextCursor = pageOf(files, p.Limit, trackedView, func(f catalog.File) string { return f.Path })
	r.Count = len(r.Files)
	return r, nil
}
