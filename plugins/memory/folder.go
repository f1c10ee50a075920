package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/assemble"
	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/scratch"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/shortterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// folder is the state that all instances with one folder or URL share: the
// database and the families that use it. Each family has a field, and close
// closes it.
type folder struct {
	name     string // the key in folders.byName
	dir      string
	settings settings
	backends backends
	users    int // guarded by folders.mu

	// readOnly is the reason why the memory is read-only; "" if it is writable.
	readOnly string
	// tokens counts the tokens of contexts and chunks.
	tokens *tokens.Encoding
	// acknowledged is where a write is durable on return: local or remote.
	acknowledged string
	clock        *clock.Clock
	stores       *store.Stores
	embedded     *embedded // nil for a memory in a Backend
	// scratch has the index of the files' texts of a memory in a Backend, which each process builds.
	scratch scratch.Folder

	documents store.MetadataStore
	blobs     store.BlobStorage
	longterm  store.LongTermMemory
	vectors   store.VectorIndex
	files     *file.Files
	sessions  *session.Sessions
	shortterm *shortterm.Memory
	recall    *recall.Recall
	tables    store.TableStore // nil = the engine has none
	catalog   *catalog.Catalog
	assembler *assemble.Assembler
	sweeper   *sweeper
	wrote     func() // called after writes; nil = not needed
	// synced is locked while the memory is synchronised.
	synced     lock
	background *background // nil without settings.memory.sync.background
	cloud      cloud
}

// lock is a mutex whose lock method honours a context.
type lock chan struct{}

func (l lock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) unlock() { <-l }

// openFolder opens the memory of the settings.
func openFolder(ctx context.Context, at location, settings settings, b backends, overrun func(growing bool)) (*folder, error) {
	f := &folder{name: at.name, dir: at.dir, settings: settings, backends: b, clock: clock.New(), synced: make(lock, 1)}
	if settings.Vocabulary != "" {
		var err error
		if f.tokens, err = tokens.Load(settings.Vocabulary); err != nil {
			return f, tea.Errorf(tea.ValidationError, "settings.memory.vocabulary: %w", err)
		}
	}
	if at.backend != nil {
		return f, f.openRemote(ctx, *at.backend)
	}
	return f, f.openEmbedded(ctx, overrun)
}

// database is an engine of an embedded memory, which not every platform has.
type database interface {
	store.QueryEngine
	store.Selector
	// Opened is closed at the first use.
	Opened() <-chan struct{}
	// Writable returns the error of every write if the memory is read-only.
	Writable() error
	WhileClosed(ctx context.Context, fn func() error) error
	Close() error
}

// families opens the families on top of the stores. identity names the database,
// texts returns the folder for the index of the files' texts, and contents is the store of the files' contents if the
// stores also write them.
func (f *folder) families(identity func(context.Context) (string, error), texts func() (string, error), contents *content.Store) {
	f.files = file.New(file.Options{
		Documents: f.documents, Blobs: f.blobs, Contents: contents, Clock: f.clock, Tokens: tokens.Count, Shared: f.sharedFiles(),
		Hidden: func(ctx context.Context) (func(string) bool, error) { return f.sessions.Expired(ctx) },
	})
	f.sessions = session.New(session.Options{Documents: f.documents, Files: f.files, Clock: f.clock, ReadOnly: f.readOnly != "", Shared: !inPage && f.embedded == nil})
	f.recall = recall.New(recall.Options{LTM: f.longterm, Vectors: f.vectors, Files: f.files})
	o := assemble.Options{
		Identity: identity, Files: f.files, LTM: f.longterm, Sessions: f.sessions, Vectors: f.vectors,
		IndexDir: texts, Language: f.settings.LTM.Language, Tokens: f.tokens, ReadOnly: f.readOnly != "", Logger: slog.Default(),
	}
	if f.tables != nil {
		o.Tables = f.tables
	}
	f.assembler = assemble.New(o)
}

// writable returns the error of every write if the memory is read-only.
func (f *folder) writable() error {
	if !inPage && f.embedded != nil {
		return f.embedded.engine.Writable()
	}
	if f.readOnly == "" {
		return nil
	}
	return tea.Errorf(tea.PermissionDenied, "the memory in %s is %w: %s", f.settings.Engine, store.ErrReadOnly, f.readOnly)
}

// close closes the families and then the database.
func (f *folder) close() error {
	if f.background != nil {
		f.background.end()
	}
	if f.sweeper != nil {
		f.sweeper.end()
	}
	err := errors.Join(f.longterm.Close(), f.vectors.Close())
	if !inPage {
		err = errors.Join(f.assembler.Close(), err)
	}
	err = errors.Join(err, f.stores.Close())
	if !inPage {
		err = errors.Join(err, f.scratch.Remove())
	}
	return errors.Join(err, f.cloud.close())
}

// cloud is the storage of settings.memory.blobs, opened at its first use.
type cloud struct {
	mu   sync.Mutex
	open store.BlobStorage
}

func (c *cloud) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return nil
	}
	return store.CloseBlobs(c.open)
}

// cloudBlobs returns the storage of settings.memory.blobs.
func (f *folder) cloudBlobs(ctx context.Context) (store.BlobStorage, error) {
	f.cloud.mu.Lock()
	defer f.cloud.mu.Unlock()
	if f.cloud.open != nil {
		return f.cloud.open, nil
	}
	where := f.settings.Blobs
	if where == "" {
		return nil, tea.Errorf(tea.ValidationError, "settings.memory.blobs is not set; set it to a folder or a URL such as s3://bucket/prefix")
	}
	scheme, _, isURL := strings.Cut(where, "://")
	var err error
	if isURL {
		var backend store.BlobBackend
		if backend, err = f.backends.storage(strings.ToLower(scheme)); err != nil {
			return nil, err
		}
		f.cloud.open, err = backend.Open(ctx, store.BlobConfig{URL: where, Options: f.settings.BlobOptions.raw(), Timeout: f.settings.timeout(), Logger: slog.Default()})
	} else if where, err = filepath.Abs(where); err == nil {
		f.cloud.open, err = blob.Open(where)
	}
	if err != nil {
		f.cloud.open = nil
		return nil, err
	}
	return f.cloud.open, nil
}

// needsTables makes a method fail if the memory has no tables.
func needsTables[P, R any](method func(m *Memory, ctx context.Context, req *tea.Request, p P) (R, error)) func(*Memory, context.Context, *tea.Request, P) (R, error) {
	return func(m *Memory, ctx context.Context, req *tea.Request, p P) (R, error) {
		if m.folder.tables == nil {
			var none R
			return none, store.Unsupported(m.folder.settings.Engine, store.Tables, "")
		}
		return method(m, ctx, req, p)
	}
}

// location is where a memory is.
type location struct {
	// name is the same for settings of the same memory.
	name string
	// dir is the folder of the memory, or of what a backend stores on this device.
	dir string
	// backend is nil for an embedded database.
	backend *store.Backend
}

// locate returns where the memory of the settings is.
func (f *folders) locate(s settings) (location, error) {
	dir, err := s.dir()
	if err != nil || embeddedEngine(s.Engine) {
		return location{name: dir, dir: dir}, err
	}
	backend, err := f.backends.engine(s.Engine)
	if err != nil {
		return location{}, err
	}
	// Options can name a part of the database.
	database := s.URL + "\x00" + string(s.Options)
	if backend.Identify != nil {
		if database, err = backend.Identify(store.Config{URL: s.URL, Options: s.Options.raw()}); err != nil {
			return location{}, err
		}
	}
	sum := sha256.Sum256([]byte(database))
	dir = filepath.Join(dir, s.Engine+"-"+hex.EncodeToString(sum[:8]))
	return location{name: dir, dir: dir, backend: &backend}, nil
}

// folders are the open memories of a process, by name.
type folders struct {
	mu        sync.Mutex
	byName    map[string]*folder
	closing   map[string]chan struct{}     // closed when the folder is closed
	shortTerm map[string]*shortterm.Memory // see shortTermOf
	exported  bool                         // the short-term memory was exported to the next version
	overrun   func(growing bool)           // see engine.Options
	backends  backends
}

func newFolders(overrun func(growing bool), options []Option) *folders {
	return &folders{overrun: overrun, backends: newBackends(options), byName: map[string]*folder{}, closing: map[string]chan struct{}{}, shortTerm: map[string]*shortterm.Memory{}}
}

// take opens a folder, or returns the open one.
func (f *folders) take(ctx context.Context, settings settings) (*folder, error) {
	at, err := f.locate(settings)
	if err != nil {
		return nil, err
	}
	for {
		if err := f.lockOpen(ctx, at.name); err != nil {
			return nil, err
		}
		open := f.byName[at.name]
		if open == nil || open.settings == settings || open.users > 0 {
			break
		}
		if err := f.end(open); err != nil { // a page has kept it open
			return nil, err
		}
	}
	defer f.mu.Unlock()
	f.exported = false
	if open := f.byName[at.name]; open != nil {
		if open.settings != settings {
			return nil, tea.Errorf(tea.ValidationError, "%s is open with different settings of the memory; workflows that share a folder at the same time need the same ones", at.name)
		}
	}
	if open := f.byName[at.name]; open != nil {
		open.users++
		return open, nil
	}
	opened, err := openFolder(ctx, at, settings, f.backends, f.overrun)
	if err != nil {
		return nil, err
	}
	opened.users, opened.shortterm = 1, f.shortTermOf(at.name)
	opened.shortterm.Bound(shortterm.Bounds{Entries: settings.ShortTerm.MaxEntries, Bytes: settings.ShortTerm.MaxBytes})
	f.byName[at.name] = opened
	if settings.Sync.Background && opened.readOnly == "" {
		opened.background = f.synchronises(opened)
	}
	return opened, nil
}

// lockOpen waits while a folder with the name is being closed, and locks f.mu.
func (f *folders) lockOpen(ctx context.Context, name string) error {
	for {
		f.mu.Lock()
		closing := f.closing[name]
		if closing == nil {
			return nil
		}
		f.mu.Unlock()
		select {
		case <-closing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release releases a folder. The last user closes it, unless it is kept open.
func (f *folders) release(given *folder) error {
	f.mu.Lock()
	if given.users--; given.users > 0 || inPage {
		f.mu.Unlock()
		return nil
	}
	return f.end(given)
}

// end closes an unused folder. The caller holds f.mu, which end unlocks.
func (f *folders) end(given *folder) error {
	delete(f.byName, given.name)
	closing := make(chan struct{})
	f.closing[given.name] = closing
	f.mu.Unlock()
	// Close without the lock, since background synchronisation takes and releases
	// folders.
	err := given.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.closing, given.name)
	close(closing)
	return err
}
