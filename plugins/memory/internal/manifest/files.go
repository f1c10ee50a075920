package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Files provides the files of a Manifest to the searches of a memory.
type Files struct {
	Documents store.MetadataStore
	// Blobs opens the storage; nil if this device has no access to it.
	Blobs func(ctx context.Context) (store.BlobStorage, error)
}

var _ file.Shared = (*Files)(nil)

// Kind returns the kind of the records.
func (*Files) Kind() string { return Kind }

// Readable reports whether the device has access to the storage.
func (f *Files) Readable() bool { return f.Blobs != nil }

// Describe reads a record. The fields that the caller set become the metadata of
// the file. A file whose status is archived is hidden.
func (f *Files) Describe(d store.Document) file.File {
	described := file.File{Path: d.ID, Shared: true, SessionID: file.SessionOf(d.ID)}
	r, err := decode(d)
	var sizes struct {
		Bytes  int64 `json:"byte_size"`
		Lines  int   `json:"line_count"`
		Tokens int   `json:"token_estimate"`
	}
	if err == nil {
		err = json.Unmarshal(d.Body, &sizes)
	}
	own := Record{}
	for name, v := range r {
		if !isDerived(name) && name != "embedding" {
			own[name] = v
		}
	}
	described.Metadata, _ = json.Marshal(own) // it was decoded from JSON, so it encodes
	created, createdErr := clock.FromText(r.text("created_at"))
	updated, updatedErr := clock.FromText(r.text("updated_at"))
	if err = errors.Join(err, createdErr, updatedErr); err != nil || r.hash() == "" {
		return file.File{Path: d.ID, Shared: true, SessionID: described.SessionID, Damaged: true}
	}
	described.Hash, described.Blob, described.Size, described.Lines, described.Tokens = r.hash(), blobOf(d.ID, r), sizes.Bytes, sizes.Lines, sizes.Tokens
	described.Text = sizes.Lines > 0 || sizes.Bytes == 0 // lines are only counted for text
	described.Type = file.TypeOf(d.ID, described.Text)
	described.CreatedAt, described.UpdatedAt = clock.Instant{Time: created}, clock.Instant{Time: updated}
	described.Hidden = r.text(Status) == "archived"
	return described
}

// Open opens the content of a file. The error wraps store.ErrNotFound if the file
// was replaced or removed, and content.ErrDamaged if its content is missing.
func (f *Files) Open(ctx context.Context, described file.File) (io.ReadCloser, error) {
	blobs, err := f.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	r, err := blobs.Get(ctx, described.Blob)
	if !errors.Is(err, store.ErrNotFound) {
		if err != nil {
			return nil, fmt.Errorf("read %s from the shared storage: %w", described.Path, err)
		}
		return content.Checked(r, described.Blob, described.Hash), nil
	}
	d, now := f.Documents.Get(ctx, Kind, described.Path)
	if now == nil && f.Describe(d).Blob == described.Blob {
		return nil, fmt.Errorf("the content of %s is not in the shared storage: %w", described.Path, content.ErrDamaged)
	}
	return nil, err
}

// Renamed returns a record for another path.
func (*Files) Renamed(d store.Document, path string) (json.RawMessage, error) {
	r, err := parse(d.Body)
	if err != nil {
		return d.Body, nil //nolint:nilerr // a damaged record moves as it is
	}
	r[Path] = path
	return json.Marshal(r)
}

// active returns the path of a file before its session was archived: content does
// not move with its file.
func active(path string) string {
	if strings.HasPrefix(path, file.ArchivePrefix+file.SessionPrefix) {
		return strings.TrimPrefix(path, file.ArchivePrefix)
	}
	return path
}

// get reads the record of a file. A file of a session is found by its active path and
// by its archived path.
func (m *Manifest) get(ctx context.Context, path string) (Record, store.Document, error) {
	doc, err := m.Documents.Get(ctx, Kind, path)
	if errors.Is(err, store.ErrNotFound) && file.SessionOf(path) != "" {
		other := file.ArchivePrefix + path
		if activePath := active(path); activePath != path {
			other = activePath
		}
		doc, err = m.Documents.Get(ctx, Kind, other)
	}
	if err != nil {
		return nil, store.Document{}, err
	}
	r, err := decode(doc)
	return r, doc, err
}

// View returns the table of the records, without the contents, for queries of
// workflows.
func View(dialect store.Dialect) store.View {
	shown := []documents.Shown{{Name: Path}}
	for _, name := range []string{Type, URI, Status, "summary", Hash, "embedding_model", "created_by", "project_id"} {
		shown = append(shown, documents.Shown{Name: name, Field: name})
	}
	for _, name := range []string{"byte_size", "line_count", "token_estimate"} {
		shown = append(shown, documents.Shown{Name: name, Field: name, As: documents.Number})
	}
	for _, name := range []string{Anchor, "embedding"} {
		shown = append(shown, documents.Shown{Name: name, Field: name, As: documents.Object})
	}
	for _, name := range []string{"created_at", "updated_at", "synced_at"} {
		shown = append(shown, documents.Shown{Name: name, Field: name, As: documents.Instant})
	}
	return documents.View(dialect, Kind, Kind, shown)
}
