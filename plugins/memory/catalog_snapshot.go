package memory

import (
	"context"
	"encoding/json"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

// SnapshotFile is a file as it was.
type SnapshotFile struct {
	Path        string `json:"path"`
	ContentHash string `json:"content_hash"`
	Size        int64  `json:"size"`
	RowCount    int64  `json:"row_count"`
}

func snapshotFiles(files []catalog.FileRef) []SnapshotFile {
	views := make([]SnapshotFile, len(files))
	for i, f := range files {
		views[i] = SnapshotFile{Path: f.Path, ContentHash: f.ContentHash, Size: f.Size, RowCount: f.Rows}
	}
	return views
}

// SnapshotSummary is a snapshot without its files.
type SnapshotSummary struct {
	SnapshotID  string          `json:"snapshot_id"`
	Table       string          `json:"table"`
	Number      int64           `json:"number" doc:"number of the snapshot, from 1"`
	ParentID    string          `json:"parent_id" doc:"previous snapshot; empty for the first one"`
	Description string          `json:"description"`
	FileCount   int             `json:"file_count"`
	Size        int64           `json:"size" doc:"of all files, in bytes"`
	RowCount    int64           `json:"row_count" doc:"of all files"`
	Metadata    json.RawMessage `json:"metadata" doc:"null if there is none"`
	CreatedAt   string          `json:"created_at"`
	Damaged     bool            `json:"damaged,omitempty" doc:"true if its row in the database is damaged; only the name is set then"`
}

func snapshotSummary(s catalog.Snapshot) SnapshotSummary {
	v := SnapshotSummary{
		SnapshotID: s.ID, Table: s.Table, Number: s.Number, ParentID: s.Parent, Description: s.Description, FileCount: len(s.Files), Metadata: orNull(s.Metadata), CreatedAt: clock.Text(s.CreatedAt.Time), Damaged: s.Damaged,
	}
	for _, f := range s.Files {
		v.Size += f.Size
		v.RowCount += f.Rows
	}
	return v
}

// CatalogCreateSnapshotParams are the parameters of catalog.create_snapshot.
type CatalogCreateSnapshotParams struct {
	Table       string          `json:"table" minLength:"1"`
	Paths       []string        `json:"paths,omitempty" doc:"files of the snapshot; default all files of the table"`
	Description string          `json:"description,omitempty" maxLength:"2000"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"any object"`
}

// CatalogSnapshotResult is the result of an action on one snapshot.
type CatalogSnapshotResult struct {
	Success bool `json:"success"`
	SnapshotSummary
	Files []SnapshotFile `json:"files" doc:"ordered by path"`
}

// CatalogCreateSnapshot is the action catalog.create_snapshot.
func (m *Memory) CatalogCreateSnapshot(ctx context.Context, req *tea.Request, p CatalogCreateSnapshotParams) (*CatalogSnapshotResult, error) {
	s, err := m.folder.catalog.CreateSnapshot(ctx, p.Table, catalog.NewSnapshot{Paths: p.Paths, Description: p.Description, Metadata: p.Metadata, Call: req.IdempotencyKey})
	return snapshotResult(s, err)
}

func snapshotResult(s catalog.Snapshot, err error) (*CatalogSnapshotResult, error) {
	if err != nil {
		return nil, err
	}
	return &CatalogSnapshotResult{Success: true, SnapshotSummary: snapshotSummary(s), Files: snapshotFiles(s.Files)}, nil
}

// CatalogGetLatestSnapshot is the action catalog.get_latest_snapshot.
func (m *Memory) CatalogGetLatestSnapshot(ctx context.Context, _ *tea.Request, p CatalogTableParams) (*CatalogSnapshotResult, error) {
	s, err := m.folder.catalog.LatestSnapshot(ctx, p.Table)
	return snapshotResult(s, err)
}

// CatalogListSnapshotsParams are the parameters of catalog.list_snapshots.
type CatalogListSnapshotsParams struct {
	Table  string `json:"table" minLength:"1"`
	Limit  int    `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor string `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// CatalogListSnapshotsResult is the result of catalog.list_snapshots.
type CatalogListSnapshotsResult struct {
	Success    bool              `json:"success"`
	Table      string            `json:"table"`
	Snapshots  []SnapshotSummary `json:"snapshots" doc:"newest first"`
	Count      int               `json:"count" doc:"number on this page"`
	Total      int               `json:"total" doc:"number on all pages"`
	NextCursor string            `json:"next_cursor" doc:"empty on the last page"`
}

// CatalogListSnapshots is the action catalog.list_snapshots.
func (m *Memory) CatalogListSnapshots(ctx context.Context, _ *tea.Request, p CatalogListSnapshotsParams) (*CatalogListSnapshotsResult, error) {
	snapshots, total, err := m.folder.catalog.Snapshots(ctx, p.Table, catalogPage(p.Limit, p.Cursor))
	if err != nil {
		return nil, err
	}
	r := &CatalogListSnapshotsResult{Success: true, Table: p.Table, Total: total}
	r.Snapshots, r.NextCursor = pageOf(snapshots, p.Limit, snapshotSummary, func(s catalog.Snapshot) string { return s.ID })
	r.Count = len(r.Snapshots)
	return r, nil
}

// CatalogGetChangedFilesParams are the parameters of catalog.get_changed_files.
type CatalogGetChangedFilesParams struct {
	Table string        `json:"table" minLength:"1"`
	Since string        `json:"since,omitempty" doc:"snapshot to compare with; default the last one; if there is none all files are new"`
	Until string        `json:"until,omitempty" doc:"later snapshot; default the current files of the table"`
	Files []TrackedFile `json:"files,omitempty" doc:"files to compare with the current files of the table, or with the files of since"`
}

// CatalogGetChangedFilesResult is the result of catalog.get_changed_files.
type CatalogGetChangedFilesResult struct {
	Success        bool           `json:"success"`
	Table          string         `json:"table"`
	Since          string         `json:"since" doc:"snapshot that was compared; empty if there was none"`
	Until          string         `json:"until" doc:"later snapshot; empty for the current or given files"`
	Added          []SnapshotFile `json:"added"`
	Changed        []SnapshotFile `json:"changed" doc:"in their later state"`
	Removed        []SnapshotFile `json:"removed"`
	UnchangedCount int            `json:"unchanged_count"`
	HasChanges     bool           `json:"has_changes"`
}

// CatalogGetChangedFiles is the action catalog.get_changed_files.
func (m *Memory) CatalogGetChangedFiles(ctx context.Context, _ *tea.Request, p CatalogGetChangedFilesParams) (*CatalogGetChangedFilesResult, error) {
	q := catalog.Compare{Since: p.Since, Until: p.Until}
	if p.Files != nil {
		q.Files = make([]catalog.FileRef, len(p.Files))
		for i, f := range p.Files {
			q.Files[i] = catalog.FileRef{Path: f.Path, ContentHash: f.ContentHash, Size: f.Size, Rows: f.RowCount}
		}
	}
	d, err := m.folder.catalog.ChangedFiles(ctx, p.Table, q)
	if err != nil {
		return nil, err
	}
	return &CatalogGetChangedFilesResult{
		Success: true, Table: p.Table, Since: d.From, Until: d.To, Added: snapshotFiles(d.Added), Changed: snapshotFiles(d.Changed), Removed: snapshotFiles(d.Removed),
		UnchangedCount: d.Unchanged, HasChanges: len(d.Added)+len(d.Changed)+len(d.Removed) > 0,
	}, nil
}
