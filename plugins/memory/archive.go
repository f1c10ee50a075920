package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"

	"github.com/the-edge-agent/tea/plugins/memory/internal/archive"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func archiveActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.export", "Writes everything that the memory stores to a portable archive, which any memory can import.", (*Memory).ExportArchive, tea.Idempotent()),
		tea.NewMethod("memory.import", "Adds the contents of an archive to the memory. A damaged archive changes nothing; an interrupted import continues when it is repeated.", writes((*Memory).ImportArchive), tea.Idempotent()),
		tea.NewMethod("memory.backup", "Writes everything that the memory stores to an archive, and reads the archive again to check it.", (*Memory).Backup, tea.Idempotent()),
		tea.NewMethod("memory.restore", "Reads an archive into an empty memory.", writes((*Memory).Restore), tea.Idempotent()),
	}
}

// ArchiveParams are the parameters of memory.export, memory.backup and
// memory.restore.
type ArchiveParams struct {
	Path string `json:"path" minLength:"1" doc:"file in the folder settings.memory.archives"`
}

// ExportResult is the result of memory.export and memory.backup.
type ExportResult struct {
	Success  bool             `json:"success"`
	Path     string           `json:"path"`
	Records  map[string]int64 `json:"records" doc:"numbers by kind: ltm, vectors, and each kind of document (sessions, files, the catalog)"`
	Rows     map[string]int64 `json:"rows" doc:"numbers of rows by table"`
	Contents int64            `json:"contents" doc:"number of contents of files"`
	Damaged  int64            `json:"damaged" doc:"number of records that cannot be read and are not in the archive"`
	Bytes    int64            `json:"bytes" doc:"size of the archive"`
	Checked  bool             `json:"checked" doc:"the archive was read again without an error"`
}

// ImportParams are the parameters of memory.import.
type ImportParams struct {
	ArchiveParams
	Existing string `json:"existing,omitempty" enum:"replace,keep" default:"replace" doc:"what to do with records and rows that exist"`
}

// ImportResult is the result of memory.import and memory.restore.
type ImportResult struct {
	ExportResult
	Written int64    `json:"written" doc:"number of records that were written"`
	Kept    int64    `json:"kept" doc:"number of records that existed and were kept"`
	Resumed bool     `json:"resumed" doc:"an interrupted import was continued; the numbers count this call only"`
	Refused []string `json:"refused" doc:"records and rows that the memory cannot store, with the reasons; at most 100"`
}

// replica returns the contents of the memory as records.
func (f *folder) replica() (store.Replica, error) {
	if f.stores.Replica == nil {
		return nil, store.Unsupported(f.settings.Engine, store.Records, "")
	}
	return f.stores.Replica, nil
}

// archiveTables returns the tables of the memory, nil for one without tables.
func (f *folder) archiveTables() archive.Tables {
	if f.tables == nil {
		return nil
	}
	return &archivedTables{f}
}

// archives opens the folder of the archives and cleans the path of an archive.
func (m *Memory) archives(path string, create bool) (*os.Root, string, error) {
	dir := m.folder.settings.Archives
	if dir == "" {
		return nil, "", tea.Errorf(tea.ValidationError, "settings.memory.archives is not set; set it to the folder of the archives")
	}
	name, err := confine.Clean(path)
	if err != nil {
		return nil, "", err
	}
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, "", store.SystemError(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", tea.Errorf(tea.NotFound, "there is no folder %s, which settings.memory.archives names", dir)
	}
	return root, name, store.SystemError(err)
}

// ExportArchive is memory.export.
func (m *Memory) ExportArchive(ctx context.Context, _ *tea.Request, p ArchiveParams) (*ExportResult, error) {
	return m.export(ctx, p.Path, false)
}

// Backup is memory.backup.
func (m *Memory) Backup(ctx context.Context, _ *tea.Request, p ArchiveParams) (*ExportResult, error) {
	return m.export(ctx, p.Path, true)
}

func (m *Memory) export(ctx context.Context, path string, check bool) (*ExportResult, error) {
	from, err := m.folder.replica()
	if err != nil {
		return nil, err
	}
	root, name, err := m.archives(path, true)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var s archive.Summary
	err = writeWhole(root, name, func(w io.Writer) error {
		var err error
		s, err = archive.Export(ctx, w, from, m.folder.archiveTables())
		return err
	})
	if err != nil {
		return nil, store.SystemError(fmt.Errorf("write the archive %s: %w", path, err))
	}
	r := exportedArchive(path, s)
	info, err := root.Stat(name)
	if err != nil {
		return nil, store.SystemError(err)
	}
	if r.Bytes = info.Size(); !check {
		return r, nil
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, store.SystemError(err)
	}
	defer file.Close()
	if _, _, err := archive.Check(ctx, file); err != nil {
		return nil, tea.Errorf(tea.InternalError, "the archive %s differs from what was written: %w", path, err)
	}
	r.Checked = true
	return r, nil
}

func exportedArchive(path string, s archive.Summary) *ExportResult {
	r := &ExportResult{Success: true, Path: path, Records: s.Records, Rows: s.Rows, Contents: s.Contents, Damaged: s.Damaged}
	if r.Rows == nil {
		r.Rows = map[string]int64{}
	}
	return r
}

// ImportArchive is memory.import.
func (m *Memory) ImportArchive(ctx context.Context, _ *tea.Request, p ImportParams) (*ImportResult, error) {
	return m.importFrom(ctx, p.Path, p.Existing != "keep", false)
}

// Restore is memory.restore.
func (m *Memory) Restore(ctx context.Context, _ *tea.Request, p ArchiveParams) (*ImportResult, error) {
	return m.importFrom(ctx, p.Path, true, true)
}

func (m *Memory) importFrom(ctx context.Context, path string, replace, empty bool) (*ImportResult, error) {
	to, err := m.folder.replica()
	if err != nil {
		return nil, err
	}
	root, name, err := m.archives(path, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tea.Errorf(tea.NotFound, "there is no archive %s in %s", path, m.folder.settings.Archives)
	}
	if err != nil {
		return nil, store.SystemError(err)
	}
	defer file.Close()
	o := archive.Options{Tables: m.folder.archiveTables(), Replace: replace}
	if empty {
		o.Empty = func(ctx context.Context) error { return m.mustBeEmpty(ctx, to) }
	}
	got, err := archive.Import(ctx, file, to, o)
	if m.folder.sessions != nil { // a page has none
		m.folder.sessions.Replaced() // even a failed import may have replaced sessions
	}
	if err != nil {
		return nil, store.SystemError(fmt.Errorf("import the archive %s: %w", path, err))
	}
	r := &ImportResult{ExportResult: *exportedArchive(path, got.Summary), Written: got.Written, Kept: got.Kept, Resumed: got.Resumed, Refused: got.Refused}
	r.Checked = true
	if r.Refused == nil {
		r.Refused = []string{}
	}
	return r, nil
}

func (m *Memory) mustBeEmpty(ctx context.Context, r store.Replica) error {
	tables, _, err := m.folder.catalog.Tables(ctx, catalog.TableQuery{Page: catalog.Page{Limit: 1}})
	if err != nil {
		return err
	}
	found := len(tables) > 0
	for _, feed := range store.Feeds() {
		query := store.ChangeQuery{Feed: feed, Limit: 1000}
		for more := true; more && !found; {
			page, err := r.Changes(ctx, query)
			if err != nil {
				return err
			}
			for _, record := range page.Records {
				found = found || !record.Deleted
			}
			query.After, query.FromStart, more = page.Last, true, page.More
		}
	}
	interrupted, err := m.folder.documents.Query(ctx, store.DocumentQuery{Kind: archive.ImportKind, Limit: 1})
	switch {
	case err != nil:
		return err
	case len(interrupted) > 0:
		return tea.Errorf(tea.ValidationError, "the import of another archive into the memory was interrupted; call memory.import (`tea memory import FILE`) with that archive to continue it, or remove the contents with `tea memory reset`")
	case found:
		return tea.Errorf(tea.ValidationError, "the memory is not empty; remove its contents with `tea memory reset`, or add the archive to them with memory.import")
	}
	return nil
}

// archivedTables are the tables of data.* for an archive.
type archivedTables struct{ f *folder }

func (t *archivedTables) Tables(ctx context.Context) ([]archive.Table, error) {
	entries, _, err := t.f.catalog.Tables(ctx, catalog.TableQuery{Managed: true, Page: catalog.Page{Limit: math.MaxInt32}})
	if err != nil {
		return nil, err
	}
	all := make([]archive.Table, 0, len(entries))
	for _, e := range entries {
		all = append(all, archive.Table{Name: e.Name, Description: e.Description, Schema: e.Schema, PrimaryKey: e.PrimaryKey})
	}
	return all, nil
}

const rowsPerPage = 2000

// Rows calls page with all rows of a table.
func (t *archivedTables) Rows(ctx context.Context, table archive.Table, page func([]json.RawMessage) error) error {
	for after := ""; ; {
		rows, next, err := t.f.tables.Rows(ctx, table.Name, after, rowsPerPage)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := page(rows); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

func (t *archivedTables) Create(ctx context.Context, table archive.Table) error {
	_, err := t.f.tables.Create(ctx, store.NewTable{Name: table.Name, Schema: table.Schema, PrimaryKey: table.PrimaryKey, Description: table.Description})
	return err
}

func (t *archivedTables) Insert(ctx context.Context, table string, raw []json.RawMessage, replace bool, key string) error {
	rows := make([]store.TableRow, len(raw))
	for i, one := range raw {
		if err := json.Unmarshal(one, &rows[i]); err != nil {
			return tea.Errorf(tea.ValidationError, "a row of table %s is not an object: %w", table, err)
		}
	}
	conflict := store.RowIgnore
	if replace {
		conflict = store.RowReplace
	}
	_, err := t.f.tables.Insert(ctx, table, rows, conflict, store.TableCall{Key: key, Hash: key})
	return err
}
