//go:build !wasm

package memory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/manifest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/place"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func cloudActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.cloud_store", "Stores a file in the storage of settings.memory.blobs, and its record in the memory.", writes((*Memory).CloudStore), tea.Idempotent()),
		tea.NewMethod("memory.cloud_retrieve", "Returns a file of the shared storage.", (*Memory).CloudRetrieve, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.cloud_list", "Lists the records of files in the shared storage by their paths.", (*Memory).CloudList, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.manifest_update", "Changes fields of a file's record; the content stays as it is.", writes((*Memory).ManifestUpdate), tea.Idempotent()),
		tea.NewMethod("memory.manifest_search", "Finds the records of files by their anchors.", (*Memory).ManifestSearch, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.sync_parquet", "Writes the files of the shared storage and their records, as far as they have changed since the last snapshot, to a Parquet file there.", writes((*Memory).SyncParquet), tea.Idempotent()),
	}
}

// manifest returns the files in the shared storage.
func (m *Memory) manifest(ctx context.Context) (*manifest.Manifest, error) {
	blobs, err := m.folder.cloudBlobs(ctx)
	if err != nil {
		return nil, err
	}
	base := m.folder.settings.Blobs
	if !strings.Contains(base, "://") {
		if base, err = filepath.Abs(base); err != nil {
			return nil, store.SystemError(err)
		}
	}
	return &manifest.Manifest{Documents: m.folder.documents, Blobs: blobs, Base: base, Clock: m.folder.clock}, nil
}

// sharedFiles returns the files of memory.cloud_store, for searches.
func (f *folder) sharedFiles() file.Shared {
	files := &manifest.Files{Documents: f.documents}
	if f.settings.Blobs != "" {
		files.Blobs = f.cloudBlobs
	}
	return files
}

// records returns a manifest without storage, for calls that need no content.
func (m *Memory) records() *manifest.Manifest {
	return &manifest.Manifest{Documents: m.folder.documents, Clock: m.folder.clock}
}

// CloudStoreParams are the parameters of memory.cloud_store.
type CloudStoreParams struct {
	Path          string          `json:"path" minLength:"1" maxLength:"800" doc:"relative path of the file, with slashes"`
	Content       *string         `json:"content,omitempty" doc:"content as text; alternative to content_base64"`
	ContentBase64 *string         `json:"content_base64,omitempty" doc:"content as Base64"`
	Metadata      json.RawMessage `json:"metadata,omitempty" doc:"fields of the record: anchors (list of texts), status (active, archived, draft), summary, embedding, embedding_model, created_by, project_id, and any others; fields that are not given keep their values"`
}

// CloudStoreResult is the result of memory.cloud_store.
type CloudStoreResult struct {
	Success     bool   `json:"success"`
	FilePath    string `json:"file_path"`
	DocID       string `json:"doc_id" doc:"name of the record"`
	StorageURI  string `json:"storage_uri" doc:"address of the content"`
	ContentHash string `json:"content_hash" doc:"sha256: and the SHA-256 of the content in hex"`
}

// CloudStore is the action memory.cloud_store.
func (m *Memory) CloudStore(ctx context.Context, _ *tea.Request, p CloudStoreParams) (*CloudStoreResult, error) {
	at, err := place.Of(p.Path, "")
	if err != nil {
		return nil, err
	}
	if at.Archived {
		return nil, tea.Errorf(tea.ValidationError, "the path %q is in the archive, which is read-only; session.restore makes its session active again", p.Path)
	}
	path := at.Whole()
	data, err := contentOf("memory.cloud_store", p.Content, p.ContentBase64)
	if err != nil {
		return nil, err
	}
	fields, err := manifest.Fields(p.Metadata)
	if err != nil {
		return nil, err
	}
	if err := m.checkSize(path, data); err != nil {
		return nil, err
	}
	files, err := m.manifest(ctx)
	if err != nil {
		return nil, err
	}
	files.ProjectID = m.folder.settings.ProjectID
	var r manifest.Record
	err = m.write(ctx, at, func(string) (err error) {
		r, err = files.Store(ctx, path, data, fields)
		return err
	})
	if tea.AsError(err) != nil && tea.AsError(err).Type == tea.NotFound && at.Session != "" { // files can exist without a session
		r, err = files.Store(ctx, path, data, fields)
	}
	if err != nil {
		return nil, err
	}
	uri, _ := r[manifest.URI].(string)
	hash, _ := r[manifest.Hash].(string)
	return &CloudStoreResult{Success: true, FilePath: path, DocID: path, StorageURI: uri, ContentHash: hash}, nil
}

// checkSize refuses a text that exceeds the limits of the settings.
func (m *Memory) checkSize(path string, data []byte) error {
	s := m.folder.settings
	if s.MaxFileLines == 0 && s.MaxFileTokens == 0 || !manifest.IsText(data) {
		return nil
	}
	if n := manifest.Lines(string(data)); s.MaxFileLines > 0 && n > s.MaxFileLines {
		return tea.Errorf(tea.ValidationError, "%s is too long: %d lines (limit %d, settings.memory.max_file_lines); split it", path, n, s.MaxFileLines)
	}
	if n := tokens.Count(string(data)); s.MaxFileTokens > 0 && n > s.MaxFileTokens {
		return tea.Errorf(tea.ValidationError, "%s is too long: %d tokens (limit %d, settings.memory.max_file_tokens); split it", path, n, s.MaxFileTokens)
	}
	return nil
}

// CloudRetrieveParams are the parameters of memory.cloud_retrieve.
type CloudRetrieveParams struct {
	Path     string `json:"path" minLength:"1"`
	Encoding string `json:"encoding,omitempty" default:"auto" enum:"auto,text,base64" doc:"form of the content; auto: text if the file is text, otherwise Base64"`
}

// CloudRetrieveResult is the result of memory.cloud_retrieve.
type CloudRetrieveResult struct {
	Success  bool            `json:"success"`
	FilePath string          `json:"file_path"`
	Content  string          `json:"content"`
	Encoding string          `json:"encoding" enum:"text,base64"`
	Metadata manifest.Record `json:"metadata" doc:"record of the file"`
}

// CloudRetrieve is the action memory.cloud_retrieve.
func (m *Memory) CloudRetrieve(ctx context.Context, _ *tea.Request, p CloudRetrieveParams) (*CloudRetrieveResult, error) {
	path, err := confine.Clean(p.Path)
	if err != nil {
		return nil, err
	}
	files, err := m.manifest(ctx)
	if err != nil {
		return nil, err
	}
	r, data, err := files.Retrieve(ctx, path)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tea.Errorf(tea.ResourceExhausted, "%s is too large for a result: %d bytes (limit %d)", path, len(data), maxFile)
	}
	result := &CloudRetrieveResult{Success: true, FilePath: path, Metadata: r}
	isText := manifest.IsText(data)
	switch {
	case p.Encoding == "text" && !isText:
		return nil, tea.Errorf(tea.ValidationError, "%s is not UTF-8 text; retrieve it with encoding: base64", path)
	case p.Encoding != "base64" && isText:
		result.Content, result.Encoding = string(data), "text"
	default:
		result.Content, result.Encoding = base64.StdEncoding.EncodeToString(data), "base64"
	}
	return result, nil
}

// CloudListParams are the parameters of memory.cloud_list.
type CloudListParams struct {
	Prefix  string         `json:"prefix,omitempty" doc:"beginning of the paths"`
	Filters map[string]any `json:"filters,omitempty" doc:"values that fields of the record must have, such as status or content_type; lists and operators as in metadata_filter of memory.file_list"`
	Limit   int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor  string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// CloudListResult is the result of memory.cloud_list.
type CloudListResult struct {
	Success    bool              `json:"success"`
	Files      []manifest.Record `json:"files" doc:"records, ordered by path"`
	Count      int               `json:"count"`
	NextCursor string            `json:"next_cursor" doc:"empty on the last page"`
}

// CloudList is the action memory.cloud_list.
func (m *Memory) CloudList(ctx context.Context, _ *tea.Request, p CloudListParams) (*CloudListResult, error) {
	if p.Prefix != "" {
		if _, err := confine.Clean(p.Prefix); err != nil {
			return nil, err
		}
	}
	q := manifest.Query{Prefix: p.Prefix, After: p.Cursor, Limit: p.Limit}
	var err error
	if q.Filter, err = filter.Parse("filters", p.Filters); err != nil {
		return nil, err
	}
	for _, field := range []string{manifest.Status, manifest.Type} {
		if value, ok := p.Filters[field].(string); ok {
			q.Where = append(q.Where, store.Condition{Field: field, Op: store.Eq, Value: value})
		}
	}
	found, next, err := m.records().Find(ctx, q)
	if err != nil {
		return nil, err
	}
	return &CloudListResult{Success: true, Files: notNil(found), Count: len(found), NextCursor: next}, nil
}

// ManifestUpdateParams are the parameters of memory.manifest_update.
type ManifestUpdateParams struct {
	Path           string          `json:"path" minLength:"1"`
	Updates        json.RawMessage `json:"updates,omitempty" doc:"changed fields of the record, as metadata of memory.cloud_store; null removes a field. The fields below can be given outside of it"`
	Anchors        json.RawMessage `json:"anchors,omitempty" doc:"list of texts"`
	Status         *string         `json:"status,omitempty" enum:"active,archived,draft"`
	Summary        *string         `json:"summary,omitempty"`
	Embedding      json.RawMessage `json:"embedding,omitempty" doc:"list of numbers"`
	EmbeddingModel *string         `json:"embedding_model,omitempty"`
	CreatedBy      *string         `json:"created_by,omitempty"`
	ProjectID      *string         `json:"project_id,omitempty"`
}

// fields returns all changed fields.
func (p ManifestUpdateParams) fields() (manifest.Record, error) {
	direct := p
	direct.Path, direct.Updates = "", nil
	raw, err := json.Marshal(direct)
	if err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	delete(given, "path")
	if updates := objectOrNone(p.Updates); updates != nil {
		if err := json.Unmarshal(updates, &given); err != nil { // adds them
			return nil, tea.Errorf(tea.ValidationError, "updates must be an object, not %.40s", updates)
		}
	}
	if raw, err = json.Marshal(given); err != nil {
		return nil, err
	}
	return manifest.Fields(raw)
}

// ManifestUpdateResult is the result of memory.manifest_update.
type ManifestUpdateResult struct {
	Success  bool            `json:"success"`
	Updated  bool            `json:"updated" doc:"false if the record had these values"`
	FilePath string          `json:"file_path"`
	Metadata manifest.Record `json:"metadata" doc:"record of the file"`
}

// ManifestUpdate is the action memory.manifest_update.
func (m *Memory) ManifestUpdate(ctx context.Context, _ *tea.Request, p ManifestUpdateParams) (*ManifestUpdateResult, error) {
	path, err := confine.Clean(p.Path)
	if err != nil {
		return nil, err
	}
	fields, err := p.fields()
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "memory.manifest_update needs at least one field to change")
	}
	r, changed, err := m.records().Update(ctx, path, fields)
	if err != nil {
		return nil, err
	}
	return &ManifestUpdateResult{Success: true, Updated: changed, FilePath: path, Metadata: r}, nil
}

// ManifestSearchParams are the parameters of memory.manifest_search.
type ManifestSearchParams struct {
	Anchors []string `json:"anchors,omitempty" doc:"anchors that the record must have; none = all records"`
	Match   string   `json:"match,omitempty" default:"any" enum:"any,all" doc:"whether one of the anchors is sufficient"`
	Status  string   `json:"status,omitempty" enum:"active,archived,draft"`
	Prefix  string   `json:"prefix,omitempty" doc:"beginning of the paths"`
	Limit   int      `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor  string   `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// ManifestSearchResult is the result of memory.manifest_search.
type ManifestSearchResult struct {
	Success    bool              `json:"success"`
	Results    []manifest.Record `json:"results" doc:"records, ordered by path"`
	Count      int               `json:"count"`
	NextCursor string            `json:"next_cursor" doc:"empty on the last page"`
}

// ManifestSearch is the action memory.manifest_search.
func (m *Memory) ManifestSearch(ctx context.Context, _ *tea.Request, p ManifestSearchParams) (*ManifestSearchResult, error) {
	q := manifest.Query{Prefix: p.Prefix, After: p.Cursor, Limit: p.Limit}
	if p.Status != "" {
		q.Where = append(q.Where, store.Condition{Field: manifest.Status, Op: store.Eq, Value: p.Status})
	}
	q.Accept = func(r manifest.Record) bool {
		anchors, _ := r[manifest.Anchor].([]any)
		has := func(anchor string) bool { return slices.Contains(anchors, any(anchor)) }
		if p.Match == "all" {
			return !slices.ContainsFunc(p.Anchors, func(anchor string) bool { return !has(anchor) })
		}
		return len(p.Anchors) == 0 || slices.ContainsFunc(p.Anchors, has)
	}
	found, next, err := m.records().Find(ctx, q)
	if err != nil {
		return nil, err
	}
	return &ManifestSearchResult{Success: true, Results: notNil(found), Count: len(found), NextCursor: next}, nil
}
