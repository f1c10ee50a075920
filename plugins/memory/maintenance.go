package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func inspectActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.inspect", "Describes the memory: where it is, how many entries and how many bytes it has, and whether it can be opened.", (*Memory).Inspect, tea.Idempotent(), tea.Reads()),
	}
}

func maintenanceActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.reset", "Removes everything that the memory has stored. It must not be in use.", writes((*Memory).Reset), tea.Idempotent()),
	}
}

// parts are the files and folders of the memory next to the database.
var parts = map[string]string{
	"blobs": "blobs", "index": "text_index", "files-index": "text_index", "vectors": "vector_index", "tables": "tables",
	"spill": "other", "swept": "other", "reserve": "other", databaseID: "other",
}

// databaseID names the database of the folder.
const databaseID = "database.id"

// InspectResult is the result of memory.inspect.
type InspectResult struct {
	Success    bool             `json:"success"`
	Path       string           `json:"path" doc:"the folder of the memory; of a database that is not embedded, the folder of its files on this device"`
	Engine     string           `json:"engine" doc:"duckdb, sqlite or another value of settings.memory.engine"`
	State      string           `json:"state" enum:"new,ok,broken" doc:"new: nothing is stored; broken: it cannot be opened, see problem"`
	Problem    string           `json:"problem" doc:"empty unless the state is broken"`
	Entries    map[string]int64 `json:"entries" doc:"numbers by kind: ltm, vectors, and each kind of document (sessions, files, the catalog)"`
	Bytes      map[string]int64 `json:"bytes" doc:"size on disk by part: database, blobs, text_index, vector_index, tables, other"`
	TotalBytes int64            `json:"total_bytes"`
	Sync       *SyncStatus      `json:"sync,omitempty" doc:"synchronising in the background; absent without settings.memory.sync.background"`
}

// Inspect is memory.inspect.
func (m *Memory) Inspect(ctx context.Context, _ *tea.Request, _ struct{}) (*InspectResult, error) {
	f := m.folder
	if inPage || f.embedded == nil {
		return f.inspectRemote(ctx)
	}
	r := &InspectResult{Success: true, Path: f.dir, Engine: string(f.embedded.engine.Dialect()), State: "ok", Entries: map[string]int64{}, Bytes: map[string]int64{}}
	if f.background != nil {
		r.Sync = f.background.status()
	}
	if err := f.measure(r); err != nil {
		return nil, store.SystemError(err)
	}
	if len(madeWith(f.dir)) == 0 {
		if _, err := os.Stat(filepath.Join(f.dir, databaseID)); errors.Is(err, fs.ErrNotExist) {
			r.State = "new"
			return r, nil
		}
	}
	entries, _, err := f.stores.Inspect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		r.State, r.Problem = "broken", err.Error()
		return r, nil
	}
	r.Entries = entries
	return r, nil
}

// measure adds up the files of the folder.
func (f *folder) measure(r *InspectResult) error {
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(f.dir, path)
		if err != nil {
			return err
		}
		if part := partOf(relative); part != "" {
			r.TotalBytes += info.Size()
			r.Bytes[part] += info.Size()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a file was removed meanwhile, or the folder does not exist yet
	}
	return err
}

// partOf is the part that a file of the folder belongs to, "" for one that is
// not the memory's.
func partOf(name string) string {
	first, _, _ := strings.Cut(name, string(filepath.Separator))
	if strings.HasPrefix(first, "memory.") {
		return "database"
	}
	return parts[first]
}

// ResetParams are the parameters of memory.reset.
type ResetParams struct {
	Confirm bool `json:"confirm" doc:"must be true: removed data cannot be restored"`
}

// ResetResult is the result of memory.reset.
type ResetResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path" doc:"folder of the memory, which is empty now"`
	Bytes   int64  `json:"bytes" doc:"size of the removed data"`
}

// Reset is memory.reset.
func (m *Memory) Reset(ctx context.Context, _ *tea.Request, p ResetParams) (*ResetResult, error) {
	if !p.Confirm {
		return nil, tea.Errorf(tea.ValidationError, "memory.reset removes everything in %s; set confirm: true", m.folder.dir)
	}
	if m.folder.embedded == nil {
		return m.folder.resetRemote(ctx)
	}
	var before InspectResult
	before.Bytes = map[string]int64{}
	if err := m.folder.measure(&before); err != nil {
		return nil, store.SystemError(err)
	}
	err := m.folder.embedded.engine.WhileClosed(ctx, func() error { return empty(m.folder.dir) })
	if err != nil {
		return nil, err
	}
	return &ResetResult{Success: true, Path: m.folder.dir, Bytes: before.TotalBytes}, nil
}

// empty removes the memory's files from a folder: first the database, so that a crash
// leaves no rows without their contents, and last the database's identity, so that a
// crash leaves an error, not an empty memory. It keeps directories, which may be open.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("empty the memory: %w", err)
	}
	remove := func(path string) {
		if gone := os.RemoveAll(path); gone != nil {
			err = errors.Join(err, gone)
		}
	}
	for _, dialect := range madeWith(dir) {
		remove(filepath.Join(dir, databaseFile(dialect)))
	}
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		return store.SystemError(fmt.Errorf("empty the memory: %w", err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case partOf(e.Name()) == "" || e.Name() == databaseID:
		case e.IsDir():
			inside, failed := os.ReadDir(path)
			err = errors.Join(err, failed)
			for _, i := range inside {
				remove(filepath.Join(path, i.Name()))
			}
		default:
			remove(path)
		}
	}
	if err == nil {
		remove(filepath.Join(dir, databaseID))
	}
	if err != nil {
		return store.SystemError(fmt.Errorf("empty the memory: %w", err))
	}
	return nil
}
