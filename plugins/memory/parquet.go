//go:build !wasm

package memory

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// SyncParquetParams are the parameters of memory.sync_parquet.
type SyncParquetParams struct {
	Table string `json:"table,omitempty" default:"agent_memory" enum:"agent_memory" doc:"the files of memory.cloud_store"`
}

// SyncParquetResult is the result of memory.sync_parquet.
type SyncParquetResult struct {
	Success    bool   `json:"success"`
	Table      string `json:"table"`
	RowCount   int64  `json:"row_count" doc:"rows of the Parquet file"`
	Changed    int64  `json:"changed" doc:"files that were added, changed or removed since the last snapshot; 0 = there is no new snapshot"`
	SnapshotID string `json:"snapshot_id"`
	Path       string `json:"path" doc:"name of the Parquet file in the storage"`
	StorageURI string `json:"storage_uri" doc:"its address"`
}

// SyncParquet is the action memory.sync_parquet.
func (m *Memory) SyncParquet(ctx context.Context, req *tea.Request, p SyncParquetParams) (*SyncParquetResult, error) {
	files, err := m.manifest(ctx)
	if err != nil {
		return nil, err
	}
	s, err := files.SyncParquet(ctx, m.folder.catalog, req.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	return &SyncParquetResult{
		Success: true, Table: p.Table, RowCount: s.Rows, Changed: s.Changed, SnapshotID: s.Snapshot.ID, Path: s.Path, StorageURI: files.URI(s.Path),
	}, nil
}
