package file

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/place"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	// Kind is that of the documents.
	Kind = "file"
	// ArchivePrefix begins the paths of archived files: their path before is
	// what follows. A reader may use either path.
	ArchivePrefix = place.Archive
	// SessionPrefix begins the paths of the files of sessions.
	SessionPrefix = place.Sessions

	blobPrefix = "files/"
	stripes    = 256
)

// Options configure Files. Documents, Blobs and Clock are needed.
type Options struct {
	Documents store.MetadataStore
	Blobs     store.BlobStorage
	Clock     *clock.Clock
	// Tokens counts those of a text; nil counts a token for four bytes.
	Tokens func(string) int
}

// Files are the files of a memory, of which there is one for each database.
// It is safe for concurrent use.
type Files struct {
	o       Options
	content *content.Store
	seed    maphash.Seed
	// writing is held, by path, while a file is written or removed.
	writing [stripes]sync.Mutex
}

// New makes Files. What the options name belongs to the caller.
func New(o Options) *Files {
	if o.Tokens == nil {
		o.Tokens = func(text string) int { return (len(text) + 3) / 4 }
	}
	return &Files{o: o, content: content.New(o.Blobs, blobPrefix), seed: maphash.MakeSeed()}
}

// lock keeps other writers of a path away until unlock is called.
func (f *Files) lock(path string) (unlock func()) {
	m := &f.writing[maphash.String(f.seed, path)%stripes]
	m.Lock()
	return m.Unlock
}

// File describes a file.
type File struct {
	Path string
	// Hash is the SHA-256 of the content in hex.
	Hash string
	Size int64
	// Type is the media type.
	Type string
	// Text says that the content is UTF-8 without NUL. Lines and Tokens are 0
	// for what is no text.
	Text          bool
	Lines, Tokens int
	// Metadata is a JSON object, or nil for none.
	Metadata json.RawMessage
	// SessionID is the session that the file belongs to, "" for none.
	SessionID            string
	CreatedAt, UpdatedAt time.Time
}

// Archived says whether the file is out of sight with its session.
func (f File) Archived() bool { return strings.HasPrefix(f.Path, ArchivePrefix+SessionPrefix) }

// body is a file as a document.
type body struct {
	Hash      string          `json:"hash"`
	Size      int64           `json:"size"`
	Type      string          `json:"type"`
	Text      bool            `json:"text"`
	Lines     int             `json:"lines"`
	Tokens    int             `json:"tokens"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

func (f File) encode() (json.RawMessage, error) {
	return json.Marshal(body{
		Hash: f.Hash, Size: f.Size, Type: f.Type, Text: f.Text, Lines: f.Lines, Tokens: f.Tokens, Metadata: f.Metadata, SessionID: f.SessionID,
		CreatedAt: clock.Text(f.CreatedAt), UpdatedAt: clock.Text(f.UpdatedAt),
	})
}

func decode(d store.Document) (File, error) {
	var b body
	if err := json.Unmarshal(d.Body, &b); err != nil {
		return File{}, fmt.Errorf("file %s: %w", d.ID, err)
	}
	created, err := clock.FromText(b.CreatedAt)
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", d.ID, err)
	}
	updated, err := clock.FromText(b.UpdatedAt)
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", d.ID, err)
	}
	return File{
		Path: d.ID, Hash: b.Hash, Size: b.Size, Type: b.Type, Text: b.Text, Lines: b.Lines, Tokens: b.Tokens, Metadata: b.Metadata, SessionID: b.SessionID,
		CreatedAt: created, UpdatedAt: updated,
	}, nil
}
