package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Draft is a file to be stored.
type Draft struct {
	Path    string
	Content []byte
	// Type is the media type; "" derives it from the name or the content.
	Type string
	// Metadata is a JSON object, or nil for none.
	Metadata  json.RawMessage
	SessionID string
}

// Stored is the result of storing a Draft.
type Stored struct {
	File
	// Created reports whether the path had no file.
	Created bool
	// Unchanged reports whether the file already had this content, type and metadata,
	// so nothing was written.
	Unchanged bool
}

// Store writes a file and replaces an existing one at its path. It is durable on
// return.
func (f *Files) Store(ctx context.Context, d Draft) (Stored, error) {
	file, err := f.describe(d)
	if err != nil {
		return Stored{}, err
	}
	defer f.lock(d.Path)()
	before, err := f.o.Documents.Get(ctx, Kind, d.Path)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Stored{}, err
	}
	change := store.Change{Kind: Kind, ID: d.Path, If: store.New}
	created := err != nil
	if !created {
		have := decodeListed(before)
		if have.same(file) {
			return Stored{File: have, Unchanged: true}, nil
		}
		if change.If = before.Version; !have.Damaged {
			file.CreatedAt = have.CreatedAt
		}
	}
	if change.Body, err = json.Marshal(file); err != nil {
		return Stored{}, err
	}
	defer f.content.Hold()()
	if err := f.content.Save(ctx, file.Hash, d.Content); err != nil {
		return Stored{}, err
	}
	return Stored{File: file, Created: created}, f.o.Documents.Apply(ctx, change)
}

func (f *Files) describe(d Draft) (File, error) {
	now := clock.Instant{Time: f.o.Clock.Now()}
	file := File{
		Path: d.Path, Hash: content.Hash(d.Content), Size: int64(len(d.Content)), Type: d.Type, Text: isText(d.Content), SessionID: d.SessionID,
		CreatedAt: now, UpdatedAt: now,
	}
	if file.Type == "" {
		file.Type = typeOf(d.Path, d.Content)
	}
	if file.Text {
		file.Lines, file.Tokens = lines(d.Content), f.o.Tokens(string(d.Content))
	}
	if d.Metadata == nil {
		return file, nil
	}
	v, err := value.Decode(d.Metadata)
	if err != nil {
		return File{}, tea.Errorf(tea.ValidationError, "the metadata of %s: %w", d.Path, err)
	}
	if _, ok := v.(map[string]any); !ok {
		return File{}, tea.Errorf(tea.ValidationError, "the metadata of %s is not an object", d.Path)
	}
	file.Metadata, err = value.Encode(v)
	return file, err
}

// same reports whether other has the same content, type and metadata.
func (f File) same(other File) bool {
	return f.Hash == other.Hash && f.Type == other.Type && bytes.Equal(f.Metadata, other.Metadata) && f.SessionID == other.SessionID && f.Tokens == other.Tokens
}

func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// lines counts lines, the last one with or without a newline.
func lines(data []byte) int {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// Delete removes a file and reports whether it existed.
func (f *Files) Delete(ctx context.Context, path string) (bool, error) {
	defer f.lock(path)()
	d, err := f.o.Documents.Get(ctx, Kind, path)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	err = f.o.Documents.Apply(ctx, store.Change{Kind: Kind, ID: path, If: d.Version})
	return err == nil, err
}

// Sweep removes unused contents. It removes nothing while a file is damaged,
// because its content is unknown.
func (f *Files) Sweep(ctx context.Context) error {
	damaged, err := f.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, Limit: 1, Where: []store.Condition{{Field: "hash", Op: store.Eq, Value: nil}}})
	if err != nil {
		return err
	}
	if len(damaged) > 0 {
		_, err := decode(damaged[0])
		return err
	}
	return f.content.Sweep(ctx, func(ctx context.Context, hashes []string) (map[string]bool, error) {
		wanted := make([]any, len(hashes))
		for i, hash := range hashes {
			wanted[i] = hash
		}
		named := map[string]bool{}
		q := store.DocumentQuery{Kind: Kind, Where: []store.Condition{{Field: "hash", Op: store.In, Value: wanted}}}
		for d, err := range documents.All(ctx, f.o.Documents, q, "") {
			if err != nil {
				return nil, err
			}
			file, err := decode(d)
			if err != nil {
				return nil, err
			}
			named[file.Hash] = true
		}
		return named, nil
	})
}

const (
	typeJSON      = "application/json"
	typeJSONLines = "application/x-ndjson"
)

// mediaTypes are the types of common file names. They do not depend on the machine, unlike those of package mime.
func mediaTypes() map[string]string {
	return map[string]string{
		".json": typeJSON, ".jsonl": typeJSONLines, ".ndjson": typeJSONLines, ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".xml": "application/xml",
		".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
		".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".ts": "text/x-typescript", ".go": "text/x-go",
		".py": "text/x-python", ".lua": "text/x-lua", ".sh": "text/x-shellscript", ".sql": "application/sql", ".svg": "image/svg+xml",
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf", ".zip": "application/zip",
		".gz": "application/gzip", ".wasm": "application/wasm", ".parquet": "application/vnd.apache.parquet", ".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
	}
}

// TypeOf returns a file's media type by its name, or a generic one.
func TypeOf(name string, text bool) string {
	general := "application/octet-stream"
	if text {
		general = "text/plain"
	}
	return cmp.Or(mediaTypes()[strings.ToLower(path.Ext(name))], general)
}

// typeOf returns a file's media type, by its name or else by its content.
func typeOf(name string, data []byte) string {
	if known := mediaTypes()[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	sniffed, _, _ := strings.Cut(detectType(data), ";")
	return sniffed
}
