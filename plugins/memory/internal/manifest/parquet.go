package manifest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/scratch"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// parquetPrefix begins the names of the blobs of Parquet files.
	parquetPrefix = "parquet/"
	oldFile       = "old.parquet"
	newFile       = "new.parquet"
	changedFile   = "changed.json"
	idsFile       = "ids.json"
)

// columns are the columns of the Parquet file, with DuckDB's types.
var columns = [][2]string{
	{"file_path", "VARCHAR"},
	{"file_name", "VARCHAR"},
	{"project_id", "VARCHAR"},
	{"content", "VARCHAR"},
	{"content_type", "VARCHAR"},
	{"content_parsed", "JSON"},
	{"content_hash", "VARCHAR"},
	{"anchors", "VARCHAR[]"},
	{"status", "VARCHAR"},
	{"summary", "VARCHAR"},
	{"embedding", "FLOAT[]"},
	{"line_count", "BIGINT"},
	{"byte_size", "BIGINT"},
	{"token_estimate", "BIGINT"},
	{"created_at", "TIMESTAMP"},
	{"updated_at", "TIMESTAMP"},
	{"synced_at", "TIMESTAMP"},
	{"content_lower", "VARCHAR"},
	{"first_heading", "VARCHAR"},
	{"has_todo", "BOOLEAN"},
	{"has_fixme", "BOOLEAN"},
}

// Synced is the result of SyncParquet.
type Synced struct {
	Rows, Changed int64
	Snapshot      catalog.Snapshot
	// Path is the name of the Parquet file in the storage.
	Path string
}

// snapshotNote is the metadata of a snapshot.
type snapshotNote struct {
	Type string `json:"type"`
	// Seq is the last change in the file.
	Seq int64 `json:"seq"`
	// SourceDocIDs are the files that were changed or removed since the previous
	// snapshot.
	SourceDocIDs []string `json:"source_doc_ids"`
	// ParquetFileID is the name of the file in the storage.
	ParquetFileID string `json:"parquet_file_id"`
}

// SyncParquet writes the records and contents of all files to a Parquet file in
// the storage and makes a snapshot of the table agent_memory. It reuses unchanged
// rows of the last snapshot's file. call identifies the call, "" for none.
func (m *Manifest) SyncParquet(ctx context.Context, c *catalog.Catalog, call string) (s Synced, err error) {
	if !duckdb.Available { // a constant, so that a build without DuckDB omits the rest
		_, err := duckdb.New()
		return s, err
	}
	if err := m.register(ctx, c); err != nil {
		return s, err
	}
	last, note, err := lastSync(ctx, c)
	if err != nil {
		return s, err
	}
	var folder scratch.Folder
	dir, err := folder.Path()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	before := map[string]bool{}
	if last != nil {
		if before, err = m.fetchOld(ctx, dir, *last, note); err != nil {
			return s, err
		}
		if before == nil { // the old file is lost: write everything again
			note.Seq = 0
		}
	}
	w := &parquetWriter{m: m, dir: dir, since: note.Seq, before: before}
	if err := w.write(ctx); err != nil {
		return s, err
	}
	s.Changed = int64(len(w.changed))
	if last != nil && before != nil && len(w.changed) == 0 {
		s.Snapshot, s.Path, s.Rows = *last, note.ParquetFileID, last.Files[0].Rows
		return s, nil
	}
	made, err := w.finish(ctx, before != nil && last != nil)
	if err != nil {
		return s, err
	}
	s.Path, s.Rows = made.Path, made.Rows
	s.Snapshot, err = m.snapshot(ctx, c, made, snapshotNote{Type: "memory", Seq: w.seq, SourceDocIDs: w.changed, ParquetFileID: made.Path}, call)
	return s, err
}

// register adds the table to the catalog.
func (m *Manifest) register(ctx context.Context, c *catalog.Catalog) error {
	_, err := c.Table(ctx, Kind)
	if typed := new(tea.Error); err == nil || !errors.As(err, &typed) || typed.Type != tea.NotFound {
		return err
	}
	schema := map[string]string{}
	for _, column := range columns {
		schema[column[0]] = column[1]
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	_, _, err = c.Register(ctx, catalog.Table{
		Name: Kind, Description: "files of memory.cloud_store", Format: "parquet", Location: m.URI(parquetPrefix + Kind + "/"),
		Schema: raw, PrimaryKey: []string{Path}, Metadata: json.RawMessage(`{"type": "memory", "source_prefix": "` + prefix + `"}`),
	})
	return err
}

// lastSync returns the last snapshot of SyncParquet, nil if there is none.
func lastSync(ctx context.Context, c *catalog.Catalog) (*catalog.Snapshot, snapshotNote, error) {
	last, err := c.LastSnapshot(ctx, Kind)
	if err != nil || last == nil {
		return nil, snapshotNote{}, err
	}
	var note snapshotNote
	if json.Unmarshal(last.Metadata, &note) != nil || note.Type != "memory" || len(last.Files) != 1 {
		return nil, snapshotNote{}, nil // a snapshot of catalog.create_snapshot
	}
	return last, note, nil
}

// fetchOld stores the file of the last snapshot in dir, and returns the paths of
// its rows; nil if it is missing or damaged.
func (m *Manifest) fetchOld(ctx context.Context, dir string, last catalog.Snapshot, note snapshotNote) (map[string]bool, error) {
	from, err := m.Blobs.Get(ctx, note.ParquetFileID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(dir, oldFile))
	if err != nil {
		return nil, store.SystemError(err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, store.SystemError(err)
	}
	if hashPrefix+hex.EncodeToString(sum.Sum(nil)) != last.Files[0].ContentHash {
		return nil, nil
	}
	paths := map[string]bool{}
	return paths, duckdb.Texts(ctx, dir, "SELECT file_path FROM read_parquet("+quoted(dir, oldFile)+")", func(path string) { paths[path] = true })
}

func quoted(dir, name string) string {
	return "'" + strings.ReplaceAll(filepath.Join(dir, name), "'", "''") + "'"
}

// parquetWriter writes one file.
type parquetWriter struct {
	m      *Manifest
	dir    string
	since  int64
	before map[string]bool // the paths in the old file

	seq     int64
	changed []string // changed and removed
	largest int64    // size of a row as JSON
}

// write writes the changed rows and the paths of all files.
func (w *parquetWriter) write(ctx context.Context) (err error) {
	rows, err := os.Create(filepath.Join(w.dir, changedFile))
	if err != nil {
		return store.SystemError(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	ids, err := os.Create(filepath.Join(w.dir, idsFile))
	if err != nil {
		return store.SystemError(err)
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	// Changes made while the records are read have later numbers, and the next call
	// reads them again.
	last, err := w.m.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, OrderBy: "seq", Descending: true, Limit: 1})
	if err != nil {
		return err
	}
	for _, doc := range last {
		w.seq = doc.Seq
	}
	rowsTo, idsTo := bufio.NewWriter(rows), bufio.NewWriter(ids)
	gone := make(map[string]bool, len(w.before))
	for path := range w.before {
		gone[path] = true
	}
	for doc, err := range documents.All(ctx, w.m.Documents, store.DocumentQuery{Kind: Kind}, "") {
		if err != nil {
			return err
		}
		delete(gone, doc.ID)
		if err := json.NewEncoder(idsTo).Encode(map[string]string{"file_path": doc.ID}); err != nil {
			return err
		}
		if doc.Seq <= w.since && w.before[doc.ID] {
			continue
		}
		w.changed = append(w.changed, doc.ID)
		row, err := w.row(ctx, doc)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(row)
		if err != nil {
			return err
		}
		w.largest = max(w.largest, int64(len(raw)))
		if _, err := rowsTo.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	for path := range gone {
		w.changed = append(w.changed, path)
	}
	slices.Sort(w.changed)
	return store.SystemError(errors.Join(rowsTo.Flush(), idsTo.Flush()))
}

// row returns the columns of a file.
func (w *parquetWriter) row(ctx context.Context, doc store.Document) (map[string]any, error) {
	r, err := decode(doc)
	if err != nil {
		return nil, err
	}
	row := map[string]any{"file_name": path.Base(doc.ID)}
	for _, column := range columns {
		if v, ok := r[column[0]]; ok {
			row[column[0]] = v
		}
	}
	data, err := w.m.load(ctx, doc.ID, r)
	if errors.Is(err, store.ErrNotFound) { // it was replaced since the record was read
		if r, data, err = w.m.Retrieve(ctx, doc.ID); err == nil {
			return w.row(ctx, store.Document{ID: doc.ID, Body: mustJSON(r)})
		}
	}
	if err != nil {
		return nil, err
	}
	if !IsText(data) {
		return row, nil
	}
	text := string(data)
	row["content"], row["content_lower"] = text, strings.ToLower(text)
	row["has_todo"], row["has_fixme"] = strings.Contains(text, "TODO"), strings.Contains(text, "FIXME")
	row["first_heading"] = firstHeading(text)
	switch r.text(Type) {
	case "json":
		if json.Valid(data) {
			row["content_parsed"] = json.RawMessage(data)
		}
	case "yaml":
		row["content_parsed"] = parsedYAML(data)
	}
	return row, nil
}

// parsedYAML returns a YAML text as JSON, with several documents as a list; nil if it
// is not valid.
func parsedYAML(data []byte) any {
	documents, err := file.DecodeYAML(bytes.NewReader(data))
	if err != nil || len(documents) == 0 {
		return nil
	}
	if len(documents) == 1 {
		return documents[0].Value
	}
	list := make([]any, len(documents))
	for i, d := range documents {
		list[i] = d.Value
	}
	return list
}

func mustJSON(r Record) json.RawMessage {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil // a record was parsed from JSON
	}
	return raw
}

// firstHeading returns the text of the first heading in Markdown, nil if there is
// none.
func firstHeading(text string) any {
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && len(line)-len(title) <= 6 && strings.HasPrefix(title, " ") {
			return strings.TrimSpace(title)
		}
	}
	return nil
}

// leastObject is the minimum size of the buffer with which DuckDB reads rows.
const leastObject = 1 << 20

// finish writes the Parquet file and stores it.
func (w *parquetWriter) finish(ctx context.Context, merge bool) (f catalog.File, err error) {
	types, names := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		types[i], names[i] = "'"+column[0]+"': '"+column[1]+"'", column[0]
	}
	list := strings.Join(names, ", ")
	query := "SELECT " + list + " FROM read_json(" + quoted(w.dir, changedFile) + ", format = 'newline_delimited', maximum_object_size = " + fmt.Sprint(max(2*w.largest, leastObject)) + ", columns = {" + strings.Join(types, ", ") + "})"
	if merge {
		ids := "read_json(" + quoted(w.dir, idsFile) + ", format = 'newline_delimited', columns = {'file_path': 'VARCHAR'})"
		query = "WITH changed AS (" + query + ") SELECT * FROM changed UNION ALL SELECT " + list + " FROM read_parquet(" + quoted(w.dir, oldFile) +
			") WHERE file_path NOT IN (SELECT file_path FROM changed) AND file_path IN (SELECT file_path FROM " + ids + ")"
	}
	rows, err := duckdb.Copy(ctx, w.dir, newFile, "SELECT * FROM ("+query+") ORDER BY file_path", w.largest)
	if err != nil {
		return f, fmt.Errorf("write the Parquet file: %w", err)
	}
	f = catalog.File{Path: parquetPrefix + Kind + "/" + strings.ToLower(rand.Text()) + ".parquet", Rows: rows, Format: "parquet"}
	from, err := os.Open(filepath.Join(w.dir, newFile))
	if err != nil {
		return f, store.SystemError(err)
	}
	defer from.Close()
	sum := sha256.New()
	info, err := w.m.Blobs.Put(ctx, f.Path, io.TeeReader(from, sum))
	f.Size, f.ContentHash = info.Size, hashPrefix+hex.EncodeToString(sum.Sum(nil))
	return f, err
}

// keptFiles is the number of Parquet files to keep: readers may still use the
// previous one.
const keptFiles = 2

// snapshot makes the snapshot of a new file, and removes files of old snapshots.
func (m *Manifest) snapshot(ctx context.Context, c *catalog.Catalog, f catalog.File, note snapshotNote, call string) (catalog.Snapshot, error) {
	raw, err := json.Marshal(note)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	if _, err := c.Track(ctx, Kind, []catalog.File{f}); err != nil {
		return catalog.Snapshot{}, err
	}
	s, err := c.CreateSnapshot(ctx, Kind, catalog.NewSnapshot{Paths: []string{f.Path}, Metadata: raw, Call: call})
	if err != nil {
		return s, err
	}
	files, err := c.FilesOf(ctx, Kind)
	if err != nil {
		return s, err
	}
	sort.Slice(files, func(i, j int) bool { return files[i].TrackedAt.After(files[j].TrackedAt.Time) })
	for i, old := range files {
		if i < keptFiles || old.Path == f.Path {
			continue
		}
		if err := m.Blobs.Delete(ctx, old.Path); err != nil {
			return s, err
		}
		if _, err := c.Forget(ctx, Kind, old.Path); err != nil {
			return s, err
		}
	}
	return s, nil
}
