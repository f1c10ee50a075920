package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/filelock"

	"github.com/the-edge-agent/tea/plugins/graph/internal/cozo"
	"github.com/the-edge-agent/tea/plugins/graph/internal/kuzu"
	"github.com/the-edge-agent/tea/plugins/graph/internal/sqlite"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

// The files of a graph's folder besides those of the backend.
const (
	markerFile = "graph.json"
	ownerFile  = "owner.lock"
)

// markerFormat is the version of the folder's format. Format 1 has no version of words.
const markerFormat = 2

// marker is the content of the marker file.
type marker struct {
	Format  int         `json:"format"`
	Backend backendName `json:"backend"`
	// Ready is false until the backend has created its database.
	Ready bool `json:"ready"`
	// Words is the version of the search keys of all entities; "" is that of format 1.
	// Entities up to Reindexed have the version Indexing.
	Words     string     `json:"words,omitempty"`
	Indexing  string     `json:"indexing,omitempty"`
	Reindexed *reindexed `json:"reindexed,omitempty"`
}

// database is shared by all instances with the same folder.
type database struct {
	settings settings
	owners   *databases
	users    int // guarded by owners.mu

	// mu is held for reading by every call, and for writing while the database is
	// opened, restored and closed.
	mu    sync.RWMutex
	owner *os.File // locked
	store store.Store
	used  backendName

	reindex reindex
	marking sync.Mutex // guards the marker, and its file after the database was opened
	marker  marker

	// writing is held from the first read of a change to its end.
	writing sync.Mutex
}

// databases are the open databases of a process, by path.
type databases struct {
	options *options
	mu      sync.Mutex
	open    map[string]*database
}

// take returns a Graph for the settings. The database is opened by the first
// action that needs it.
func (d *databases) take(_ context.Context, from tea.Settings) (*Graph, error) {
	s, err := readSettings(from)
	if err == nil {
		err = d.options.check(s.Storage)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	db := d.open[s.Path]
	if db == nil {
		db = &database{settings: s, owners: d}
		d.open[s.Path] = db
	}
	if db.settings.ofDatabase() != s.ofDatabase() {
		return nil, tea.Errorf(tea.ValidationError, "%s is open with different settings of the graph; workflows that share a folder at the same time need the same ones", s.Path)
	}
	db.users++
	return &Graph{db: db, settings: s}, nil
}

// release is called once by each user. The last call closes the database.
func (db *database) release() error {
	db.owners.mu.Lock()
	defer db.owners.mu.Unlock()
	if db.users--; db.users > 0 {
		return nil
	}
	delete(db.owners.open, db.settings.Path)
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.close()
}

// close closes the database. The caller holds mu.
func (db *database) close() error {
	err := errors.Join(db.closeStore(), filelock.Close(db.owner))
	db.owner = nil
	return err
}

// closeStore closes the database but keeps the lock. The caller holds mu.
func (db *database) closeStore() (err error) {
	if db.store != nil {
		db.reindex.stop()
		err = db.store.Close()
	}
	db.store = nil
	return err
}

// use opens the database if needed, and keeps it open until done is called.
func (db *database) use(ctx context.Context) (s store.Store, done func(), err error) {
	for {
		db.mu.RLock()
		if db.store != nil {
			return db.store, db.mu.RUnlock, nil
		}
		db.mu.RUnlock()
		db.mu.Lock()
		if db.store == nil {
			err = db.openStore(ctx)
		}
		db.mu.Unlock()
		if err != nil {
			return nil, nil, err
		}
	}
}

// lock creates the folder and locks it. The caller holds mu.
func (db *database) lock(ctx context.Context) error {
	dir := db.settings.Path
	if err := checkFolder(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return systemError("create the folder of the graph", err)
	}
	if err := makePrivate(dir); err != nil {
		return systemError("open the folder of the graph", err)
	}
	path := filepath.Join(dir, ownerFile)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return tea.Errorf(tea.ValidationError, "%s is not a file; remove it, or set another settings.graph.path", path)
	}
	timeout := time.Duration(db.settings.LockTimeoutSeconds * float64(time.Second))
	owner, err := filelock.Own(ctx, path, timeout, false)
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		return tea.Errorf(tea.ConnectionError, "the graph in %s is in use by %s (waited %v); end that process, raise settings.graph.lock_timeout, or set another settings.graph.path", dir, held.Holder, timeout)
	}
	if err != nil {
		return systemError("lock the graph", err)
	}
	db.owner = owner
	return nil
}

// openStore locks the folder and opens the database in it. The caller holds mu.
func (db *database) openStore(ctx context.Context) (err error) {
	dir := db.settings.Path
	if db.owner == nil {
		if err := db.lock(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, filelock.Close(db.owner))
			db.owner = nil
		}
	}()
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, restoreCopy)), finishRestore(dir)); err != nil {
		return err
	}
	m, err := readMarker(dir)
	if err != nil {
		return err
	}
	backend, err := chooseBackend(dir, m, db.settings.Backend)
	if err != nil {
		return err
	}
	if m == nil {
		m = &marker{Format: markerFormat, Backend: backend.name, Words: words.Version()}
		if err := m.write(dir); err != nil {
			return err
		}
	}
	s, err := backend.open(ctx, db.settings.options(dir, !m.Ready))
	if err != nil {
		return err
	}
	if !m.Ready || m.Format < markerFormat {
		// An older version of tea no longer opens the graph: it would write older keys.
		m.Ready, m.Format = true, markerFormat
		if err := m.write(dir); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if err := makePrivate(dir); err != nil { // an engine creates new files with other modes
		return errors.Join(systemError("open the folder of the graph", err), s.Close())
	}
	db.store, db.used, db.marker = s, backend.name, *m
	db.reindex.begin(db, s)
	return nil
}

// makePrivate removes the permissions of other users for the folder of a graph and its
// files. It does not change files of another user.
func makePrivate(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := []string{dir}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(name, info.Mode().Perm()&^0o077)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isReadOnly(err) {
			return err
		}
	}
	return nil
}

// checkFolder refuses a folder with files but without a marker: it is not a graph.
// Nothing is written into it.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, err := os.Readlink(dir); err == nil {
			return tea.Errorf(tea.ValidationError, "settings.graph.path: %s is a link to %s, which does not exist; create that folder, or set another path", dir, target)
		}
		return nil
	case err != nil:
		return systemError("open the folder of the graph", err)
	case !info.IsDir():
		return tea.Errorf(tea.ValidationError, "settings.graph.path: %s is a file, and a graph is a folder; set another path", dir)
	}
	for _, name := range []string{markerFile, restoreReady, restoreMove} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return systemError("open the folder of the graph", err)
	}
	for _, e := range entries {
		if ours := slices.Contains([]string{ownerFile, restoreCopy}, e.Name()); !ours && !atomicfile.IsTemporary(e.Name()) {
			return tea.Errorf(tea.ValidationError, "settings.graph.path: %s has other files, such as %s, but no graph; set the path of a new or empty folder", dir, e.Name())
		}
	}
	return nil
}

// readMarker returns nil for a new folder.
func readMarker(dir string) (*marker, error) {
	path := filepath.Join(dir, markerFile)
	m, err := decodeMarker(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, systemError("open the graph", err)
	case m == nil:
		return nil, store.Unusable(tea.ValidationError, "restore a backup, or set another settings.graph.path", "%s is damaged or belongs to another program", path)
	case m.Format > markerFormat:
		return nil, tea.Errorf(tea.ValidationError, "the graph in %s has format %d, which is newer than the format %d of this version; update the graph plugin", dir, m.Format, markerFormat)
	}
	return m, nil
}

// decodeMarker returns nil for a file that is not a marker.
func decodeMarker(path string) (*marker, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<16))
	if err != nil {
		return nil, err
	}
	var m marker
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 || m.Backend == "" {
		return nil, nil
	}
	return &m, nil
}

func (m *marker) write(dir string) error {
	err := atomicfile.Write(filepath.Join(dir, markerFile), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(m) })
	if err != nil {
		return systemError("create the graph", err)
	}
	return nil
}

// mark changes the marker.
func (db *database) mark(change func(*marker)) error {
	db.marking.Lock()
	defer db.marking.Unlock()
	change(&db.marker)
	return db.marker.write(db.settings.Path)
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isReadOnly(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// systemError describes an error of the operating system.
func systemError(what string, err error) error {
	var typed *tea.Error
	switch {
	case errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isFull(err):
		return tea.Errorf(tea.ResourceExhausted, "%s: the disk is full", what) // err names temporary files
	case isReadOnly(err):
		return tea.Errorf(tea.PermissionDenied, "%s: %w; a graph needs a writable folder, even for reading: set settings.graph.path", what, err)
	}
	return tea.Errorf(tea.InternalError, "%s: %w", what, err)
}

// backend is a database engine of this build.
type backend struct {
	name backendName
	open func(context.Context, store.Options) (store.Store, error)
	// missing is the reason why the build cannot open it; nil if it can.
	missing error
	// installed reports whether a library that the backend loads is installed; nil for
	// a backend without one.
	installed func() bool
}

// defaultBackend is used for a new graph without a setting. Every build has it, so
// that such a graph opens everywhere.
const defaultBackend backendName = "memory"

// chooseBackend returns the backend for a folder: the one that created it, or for a
// new folder the one in the settings.
func chooseBackend(dir string, m *marker, wanted backendName) (backend, error) {
	if m != nil && wanted != "" && wanted != m.Backend {
		return backend{}, tea.Errorf(tea.ValidationError, "the graph in %s was created by the backend %s and cannot be opened by %s; set settings.graph.backend: %[2]s, or another settings.graph.path", dir, m.Backend, wanted)
	}
	if m != nil {
		wanted = m.Backend
	}
	wanted = cmp.Or(wanted, defaultBackend)
	for _, b := range backends() {
		switch {
		case wanted != b.name:
		case b.missing != nil && m != nil:
			return backend{}, tea.Errorf(tea.DependencyMissing, "the graph in %s was created by the backend %s: %s", dir, b.name, tea.AsError(b.missing).Message)
		default:
			return b, b.missing
		}
	}
	return backend{}, tea.Errorf(tea.ValidationError, "the graph in %s was created by the backend %q, which this version does not include; update the graph plugin", dir, wanted)
}

// backends returns the backends of this version.
func backends() []backend {
	return []backend{
		{name: "memory", open: sqlite.Open},
		{name: "cozo", open: cozo.Open, missing: cozo.Missing()},
		{name: "cypher", open: kuzu.Open, missing: kuzu.Missing(), installed: kuzu.Installed},
	}
}

// Available returns the names of the backends that this build can open on this
// machine.
func Available() []string {
	var names []string
	for _, b := range backends() {
		if b.missing == nil && (b.installed == nil || b.installed()) {
			names = append(names, string(b.name))
		}
	}
	return names
}
