package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// statBatch is the number of blobs that are checked together: checking can
	// mean a full scan.
	statBatch = 5000
	// removeBatch is the number of blobs that are removed while writers wait.
	removeBatch = 200
	stripes     = 64
)

// ErrDamaged means that a stored content is missing, or does not match its hash.
var ErrDamaged = errors.New("damaged")

// Store stores contents below a prefix of a BlobStorage. There is one Store for
// each prefix. It is safe for concurrent use.
type Store struct {
	blobs  store.BlobStorage
	prefix string
	// rows is read-locked from before a blob is checked until its row is written, and write-locked while blobs are
	// removed.
	rows sync.RWMutex
	// saving is locked while a content is written: another caller must not rely on a blob that is not yet durable.
	saving [stripes]sync.Mutex
}

// New creates a store for blobs whose names begin with prefix, such as "ltm/".
// The caller closes the storage.
func New(blobs store.BlobStorage, prefix string) *Store { return &Store{blobs: blobs, prefix: prefix} }

// Hash returns the hash of a content: its SHA-256 in hex.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Name returns the name of the blob of a content.
func (s *Store) Name(hash string) string { return s.prefix + hash[:2] + "/" + hash }

// Hold prevents the removal of blobs until release is called: from before a Save
// until the row of the content is written, or from before a row is read until
// its blob is open. It must not be called again before release.
func (s *Store) Hold() (release func()) {
	s.rows.RLock()
	return s.rows.RUnlock
}

// Stat describes the blob of a content.
func (s *Store) Stat(ctx context.Context, hash string) (store.BlobInfo, error) {
	return s.blobs.Stat(ctx, s.Name(hash))
}

// Save writes a content unless it exists. The caller holds the store.
func (s *Store) Save(ctx context.Context, hash string, data []byte) error {
	lock := &s.saving[(int(hash[0])*31+int(hash[1]))%stripes]
	lock.Lock()
	defer lock.Unlock()
	name := s.Name(hash)
	info, err := s.blobs.Stat(ctx, name)
	if err == nil && info.Size == int64(len(data)) {
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = s.blobs.Put(ctx, name, bytes.NewReader(data))
	return err
}

// Load reads a content and checks it. The caller holds the store.
func (s *Store) Load(ctx context.Context, hash string) ([]byte, error) {
	r, err := s.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Open opens a content for reading; the caller closes it. Reading a damaged
// content fails at its end. The caller holds the store until Open returns.
func (s *Store) Open(ctx context.Context, hash string) (io.ReadCloser, error) {
	name := s.Name(hash)
	r, err := s.blobs.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return Checked(r, name, hash), nil
}

// Checked returns a reader of a blob whose last Read fails if the content does not have
// this hash.
func Checked(r io.ReadCloser, name, hash string) io.ReadCloser {
	return &checked{ReadCloser: r, name: name, want: hash, sum: sha256.New()}
}

// checked compares the hash of the data with the expected one.
type checked struct {
	io.ReadCloser
	name, want string
	sum        hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.sum.Write(p[:n]) // a hash never fails
	if err == io.EOF && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		return n, fmt.Errorf("blob %s is %w: its hash does not match its name", c.name, ErrDamaged)
	}
	return n, err
}

// Named returns which of the hashes are in use.
type Named func(ctx context.Context, hashes []string) (map[string]bool, error)

// Sweep removes unused blobs. It first finds candidates, usually few, and then
// checks them again while writers wait.
func (s *Store) Sweep(ctx context.Context, named Named) error {
	var batch []string
	flush := func() error {
		unnamed, err := without(ctx, batch, named)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(unnamed, removeBatch) {
			if err := s.removeUnnamed(ctx, some, named); err != nil {
				return err
			}
		}
		batch = batch[:0]
		return nil
	}
	for info, err := range s.blobs.List(ctx, s.prefix) {
		if err != nil {
			return err
		}
		if batch = append(batch, info.Name); len(batch) < statBatch {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

func (s *Store) removeUnnamed(ctx context.Context, names []string, named Named) error {
	s.rows.Lock()
	defer s.rows.Unlock()
	unnamed, err := without(ctx, names, named)
	if err != nil {
		return err
	}
	for _, name := range unnamed {
		if err := s.blobs.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func without(ctx context.Context, names []string, named Named) (unnamed []string, err error) {
	hashes := make([]string, len(names))
	for i, name := range names {
		hashes[i] = path.Base(name)
	}
	kept, err := named(ctx, hashes)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if !kept[hashes[i]] {
			unnamed = append(unnamed, name)
		}
	}
	return unnamed, nil
}
