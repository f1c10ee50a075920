package manifest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// prefix begins the names of the blobs.
	prefix = "cloud/"
	// maxTries bounds the repetitions of a change after conflicts.
	maxTries = 100
)

// Manifest is the files of a memory in a shared storage. The documents and the
// storage belong to the caller. It is safe for concurrent use, also by several
// devices that share both.
//
// A content is never replaced: each content is a separate blob below the file's
// path, written before the record that names it. So a reader sees a record and
// its content, and a crash leaves at most an unused blob.
type Manifest struct {
	Documents store.MetadataStore
	Blobs     store.BlobStorage
	// Base is the address of the storage, for storage_uri.
	Base  string
	Clock *clock.Clock
	// ProjectID is the default project_id of files; "" = none.
	ProjectID string
}

// blobName returns the name of a blob of a file. It writes bytes that blob names
// cannot contain as =XX.
func blobName(file, last string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for i := range len(file) {
		switch c := file[i]; {
		case c == '/', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String() + "/" + last
}

// URI returns the address of a blob.
func (m *Manifest) URI(name string) string { return strings.TrimSuffix(m.Base, "/") + "/" + name }

// blobOf returns the blob of a record, "" for none.
func blobOf(file string, r Record) string {
	uri := r.text(URI)
	if uri == "" {
		return ""
	}
	name := blobName(file, path.Base(uri))
	if !strings.HasSuffix(uri, "/"+name) { // the session of the file was archived
		name = blobName(active(file), path.Base(uri))
	}
	return name
}

// Store writes a file and its record. Missing fields keep their values.
func (m *Manifest) Store(ctx context.Context, file string, data []byte, fields Record) (Record, error) {
	hash := content.Hash(data)
	own := blobName(active(file), hash+"-"+strings.ToLower(rand.Text()[:8]))
	if err := store.CheckBlobName(own); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the path %q is too long for the storage", file)
	}
	saved, replaced := false, ""
	r, err := m.change(ctx, file, func(r Record, _ bool) (Record, error) {
		name := blobOf(file, r)
		replaced = ""
		if same, err := m.has(ctx, name, r.hash() == hash, len(data)); err != nil {
			return nil, err
		} else if !same {
			name, replaced = own, name
		}
		if name == own && !saved {
			if _, err := m.Blobs.Put(ctx, own, bytes.NewReader(data)); err != nil {
				return nil, err
			}
			saved = true
		}
		now := clock.Text(m.Clock.Now())
		if r["created_at"] == nil {
			r["created_at"] = now
		}
		r = r.with(describe(file, data)).with(fields)
		if r["project_id"] == nil && m.ProjectID != "" {
			r["project_id"] = m.ProjectID
		}
		r[Hash], r[URI], r["updated_at"], r["synced_at"] = hashPrefix+hash, m.URI(name), now, now
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	// Only this change replaced that blob.
	if saved && blobOf(file, r) != own {
		replaced = own
	}
	if replaced != "" {
		if err := m.Blobs.Delete(ctx, replaced); err != nil {
			slog.WarnContext(ctx, "a content that is no longer used could not be removed from the storage", "path", file, "error", err)
		}
	}
	return r, nil
}

// has reports whether the blob of a record with the same content exists.
func (m *Manifest) has(ctx context.Context, name string, same bool, size int) (bool, error) {
	if name == "" || !same {
		return false, nil
	}
	info, err := m.Blobs.Stat(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return info.Size == int64(size), err
}

// change changes a record. It retries if another caller changes the record
// meanwhile.
func (m *Manifest) change(ctx context.Context, file string, fn func(r Record, found bool) (Record, error)) (Record, error) {
	for try := 1; ; try++ {
		condition := store.New
		r, have, err := m.get(ctx, file)
		id, found := file, err == nil
		switch {
		case found:
			condition, id = have.Version, have.ID
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		default:
			r = Record{}
		}
		if r, err = fn(r, found); err != nil {
			return nil, err
		}
		body, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		err = m.Documents.Apply(ctx, store.Change{Kind: Kind, ID: id, Body: body, If: condition})
		if !errors.Is(err, store.ErrConflict) || try == maxTries || ctx.Err() != nil {
			return r, err
		}
	}
}

func decode(doc store.Document) (Record, error) {
	r, err := parse(doc.Body)
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "the record of the file %q is damaged; store the file again", doc.ID)
	}
	return r, nil
}

// Missing returns the error for a file that is not in the manifest.
func Missing(file string) error {
	return tea.Errorf(tea.NotFound, "there is no file %q in the shared storage", file)
}

// Retrieve returns a file and its record.
func (m *Manifest) Retrieve(ctx context.Context, file string) (Record, []byte, error) {
	for try := 1; ; try++ {
		r, _, err := m.get(ctx, file)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil, Missing(file)
		}
		if err != nil {
			return nil, nil, err
		}
		data, err := m.load(ctx, file, r)
		if !errors.Is(err, store.ErrNotFound) {
			return r, data, err
		}
		// Another caller may have replaced the file since its record was read.
		if now, _, err := m.get(ctx, file); try == maxTries || err == nil && now.text(URI) == r.text(URI) {
			return nil, nil, tea.Errorf(tea.InternalError, "the content of %s is not in the storage (%s); store the file again", file, r.text(URI))
		}
	}
}

func (m *Manifest) load(ctx context.Context, file string, r Record) ([]byte, error) {
	reader, err := m.Blobs.Get(ctx, blobOf(file, r))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if content.Hash(data) != r.hash() {
		return nil, tea.Errorf(tea.InternalError, "the content of %s in the storage is damaged; store the file again", file)
	}
	return data, nil
}

// Update changes fields of a record and reports whether a value changed.
func (m *Manifest) Update(ctx context.Context, file string, fields Record) (r Record, changed bool, err error) {
	r, err = m.change(ctx, file, func(r Record, found bool) (Record, error) {
		if !found {
			return nil, Missing(file)
		}
		before, err := json.Marshal(r.with(nil))
		if err != nil {
			return nil, err
		}
		r = r.with(fields)
		after, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if changed = !bytes.Equal(before, after); changed {
			r["updated_at"] = clock.Text(m.Clock.Now())
		}
		return r, nil
	})
	return r, changed, err
}

// Query selects records.
type Query struct {
	// Prefix begins the paths.
	Prefix string
	// Where are conditions that the memory's database evaluates.
	Where []store.Condition
	// Filter restricts the records by their fields.
	Filter filter.Filter
	// Accept restricts the records; nil = all.
	Accept func(r Record) bool
	// After is the path after which the records begin.
	After string
	Limit int
}

// Find returns records in the order of their paths. next is the path for
// Query.After of the next page, "" at the end. Damaged records are left out.
func (m *Manifest) Find(ctx context.Context, q Query) (found []Record, next string, err error) {
	query := store.DocumentQuery{Kind: Kind, Where: slices.Clone(q.Where)}
	if q.Prefix != "" {
		query.Where = append(query.Where, store.Condition{Field: "id", Op: store.Prefix, Value: q.Prefix})
	}
	after := q.After
	for doc, err := range documents.All(ctx, m.Documents, query, q.After) {
		if err != nil {
			return nil, "", err
		}
		last := after
		after = doc.ID
		r, err := decode(doc)
		if err != nil {
			slog.WarnContext(ctx, "a damaged record was left out", "error", err)
			continue
		}
		if !filter.Matches(doc.Body, q.Filter) || q.Accept != nil && !q.Accept(r) {
			continue
		}
		if len(found) == q.Limit {
			return found, last, nil
		}
		found = append(found, r)
	}
	return found, "", nil
}
