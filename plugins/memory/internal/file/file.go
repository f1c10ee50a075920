package file

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/place"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// Kind is the kind of the documents.
	Kind = "file"
	// ArchivePrefix begins the paths of archived files, before their original
	// path. Readers can use both paths.
	ArchivePrefix = place.Archive
	// SessionPrefix begins the paths of the files of sessions.
	SessionPrefix = place.Sessions

	blobPrefix = "files/"
	stripes    = 256
)

// Options configure Files. Documents, Blobs and Clock are required; they belong
// to the caller.
type Options struct {
	Documents store.MetadataStore
	Blobs     store.BlobStorage
	// Contents are the contents in Blobs, for a memory that also writes them itself; nil = only Files write them.
	Contents *content.Store
	Clock    *clock.Clock
	// Shared provides the files of memory.cloud_store; nil = none.
	Shared Shared
	// Hidden returns a function that reports whether the files of a session are
	// hidden although they are not archived; nil = none.
	Hidden func(ctx context.Context) (func(sessionID string) bool, error)
	// Tokens counts the tokens of a text; nil counts one token per four bytes.
	Tokens func(string) int
}

// Files are the files of a memory. There must be one for each database. It is
// safe for concurrent use.
type Files struct {
	o       Options
	content *content.Store
	seed    maphash.Seed
	// writing is locked, by path, while a file is written or removed.
	writing [stripes]sync.Mutex
}

// New creates Files.
func New(o Options) *Files {
	if o.Hidden == nil {
		o.Hidden = func(context.Context) (func(string) bool, error) { return func(string) bool { return false }, nil }
	}
	if o.Tokens == nil {
		o.Tokens = func(text string) int { return (len(text) + 3) / 4 }
	}
	if o.Contents == nil {
		o.Contents = Contents(o.Blobs)
	}
	return &Files{o: o, content: o.Contents, seed: maphash.MakeSeed()}
}

// lock excludes other writers of a path until unlock is called.
func (f *Files) lock(path string) (unlock func()) {
	m := &f.writing[maphash.String(f.seed, path)%stripes]
	m.Lock()
	return m.Unlock
}

// File describes a file. Its JSON is the body of its document.
type File struct {
	Path string `json:"-"`
	// Hash is the SHA-256 of the content in hex.
	Hash string `json:"hash"`
	Size int64  `json:"size"`
	// Type is the media type.
	Type string `json:"type"`
	// Text reports whether the content is UTF-8 without NUL. Lines and Tokens
	// are 0 if it is not.
	Text   bool `json:"text"`
	Lines  int  `json:"lines"`
	Tokens int  `json:"tokens"`
	// Metadata is a JSON object, or nil for none.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// SessionID is the session of the file, "" for none.
	SessionID string        `json:"session_id,omitempty"`
	CreatedAt clock.Instant `json:"created_at"`
	UpdatedAt clock.Instant `json:"updated_at"`
	// Shared reports whether the file comes from Options.Shared. Blob is then the name
	// of its content.
	Shared bool   `json:"-"`
	Blob   string `json:"-"`
	// Hidden reports whether the session has expired without being archived (see
	// Options.Hidden), or the file itself is archived.
	Hidden bool `json:"-"`
	// Damaged reports whether the document is damaged; only Path is set then.
	Damaged bool `json:"-"`
}

// Archived reports whether the file is archived or belongs to an archived session.
func (f File) Archived() bool {
	return f.Hidden || strings.HasPrefix(f.Path, ArchivePrefix+SessionPrefix)
}

func decode(d store.Document) (File, error) {
	f := File{Path: d.ID}
	if err := json.Unmarshal(d.Body, &f); err != nil {
		return File{}, tea.Errorf(tea.InternalError, "the description of the file %q is damaged; store it again or delete it: %w", d.ID, err)
	}
	return f, nil
}

// decodeListed is decode for a file in a list. A damaged file must not hide the
// others.
func decodeListed(d store.Document) File {
	f, err := decode(d)
	if err != nil {
		return File{Path: d.ID, Damaged: true}
	}
	return f
}

// View is the table files for queries of workflows. It does not have the
// contents: see Search and Grep.
func View(dialect store.Dialect) store.View {
	return documents.View(dialect, "files", Kind, []documents.Shown{
		{Name: "path"},
		{Name: "type", Field: "type"},
		{Name: "size", Field: "size", As: documents.Number},
		{Name: "is_text", Field: "text", As: documents.Bool},
		{Name: "lines", Field: "lines", As: documents.Number},
		{Name: "tokens", Field: "tokens", As: documents.Number},
		{Name: "content_hash", Field: "hash"},
		{Name: "metadata", Field: "metadata", As: documents.Object},
		{Name: "session_id", Field: "session_id"},
		{Name: "archived", As: documents.Bool, Is: "id LIKE '" + ArchivePrefix + SessionPrefix + "%'"},
		{Name: "created_at", Field: "created_at", As: documents.Instant},
		{Name: "updated_at", Field: "updated_at", As: documents.Instant},
	})
}
