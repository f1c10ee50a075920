package graph

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/objstore"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func backupActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.backup", "Copies the graph into a new folder while it is in use.", (*Graph).Backup),
		tea.NewMethod("graph.restore", "Replaces the graph by a backup.", (*Graph).Restore, tea.Idempotent()),
	}
}

// The folders in the graph's folder during a restore. A crash may leave one of them,
// and the next open continues.
const (
	// restoreCopy is incomplete and is removed.
	restoreCopy = "restore.new"
	// restoreReady is complete; the graph's own files are still there.
	restoreReady = "restore.ready"
	// restoreMove has files that are being moved out of it.
	restoreMove = "restore.move"
)

// BackupParams are the parameters of graph.backup.
type BackupParams struct {
	Path string `json:"path" doc:"new folder for the copy, below settings.file.root"`
}

// BackupResult is the result of graph.backup.
type BackupResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path" doc:"absolute path of the copy, which is a graph: settings.graph.path can name it"`
	Bytes   int64  `json:"bytes" doc:"its size"`
}

// Backup is the action graph.backup.
func (g *Graph) Backup(ctx context.Context, _ *tea.Request, p BackupParams) (_ *BackupResult, err error) {
	target, err := g.settings.File.folder(p.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(target); err == nil {
		return nil, tea.Errorf(tea.ValidationError, "%s exists; a backup needs the path of a new folder", target)
	}
	s, done, err := g.db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := g.settings.checkOutside(target); err != nil {
		return nil, err
	}
	part := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".tea-tmp")
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o700)); err != nil {
		return nil, fileError("write the backup "+target, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	g.db.marking.Lock()
	m := g.db.marker
	g.db.marking.Unlock()
	if err := s.Backup(ctx, part); err != nil {
		return nil, err
	}
	if err := m.write(part); err != nil {
		return nil, err
	}
	bytes, err := sizeOf(part)
	if err != nil {
		return nil, fileError("write the backup "+target, err)
	}
	if err := errors.Join(atomicfile.SyncDir(part), os.Rename(part, target), atomicfile.SyncDir(filepath.Dir(target))); err != nil {
		return nil, fileError("write the backup "+target, err)
	}
	return &BackupResult{Success: true, Path: target, Bytes: bytes}, nil
}

// folder returns the absolute path of a folder below the root. Its parent must
// exist, and its symbolic links must not lead out of the root.
func (s FileSettings) folder(given string) (string, error) {
	if strings.HasPrefix(given, "file://") {
		local, err := s.ofURL(given)
		if err != nil {
			return "", err
		}
		given = local
	}
	if objstore.IsAddress(given) {
		return "", tea.Errorf(tea.ValidationError, "%s is an address, and a backup is in a folder of this device; graph.export writes to object storage", given)
	}
	target, err := s.locate(given)
	if err != nil {
		return "", err
	}
	if root, err := s.realRoot(); err != nil || target == root {
		return "", tea.Errorf(tea.ValidationError, "the path %q does not name a folder", given)
	}
	if _, err := os.Stat(filepath.Dir(target)); err != nil {
		return "", tea.Errorf(tea.NotFound, "the folder %s does not exist; create it first", filepath.Dir(target))
	}
	return target, nil
}

// RestoreParams are the parameters of graph.restore.
type RestoreParams struct {
	Path    string `json:"path" doc:"folder of the backup, below settings.file.root"`
	Confirm bool   `json:"confirm" doc:"must be true: what is in the graph is removed"`
}

// RestoreResult is the result of graph.restore.
type RestoreResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path" doc:"folder of the graph"`
	Backend string `json:"backend"`
}

// Restore is the action graph.restore.
func (g *Graph) Restore(ctx context.Context, _ *tea.Request, p RestoreParams) (*RestoreResult, error) {
	if !p.Confirm {
		return nil, tea.Errorf(tea.ValidationError, "graph.restore removes everything in %s; set confirm: true", g.settings.Path)
	}
	source, err := g.settings.backupAt(p.Path)
	if err != nil {
		return nil, err
	}
	m, err := readMarker(source)
	if err != nil {
		return nil, unusable(source, source, err)
	}
	if m == nil || !m.Ready {
		return nil, tea.Errorf(tea.NotFound, "%s is not a backup of a graph: it has no %s", source, markerFile)
	}
	backend, err := chooseBackend(source, m, g.settings.Backend)
	if err != nil {
		return nil, err
	}
	db := g.db
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.owner == nil {
		// Only the lock matters: the graph itself may be damaged.
		if err := db.lock(ctx); err != nil {
			return nil, err
		}
	}
	if db.store == nil {
		// An interrupted restore has already replaced the graph.
		if err := finishRestore(g.settings.Path); err != nil {
			return nil, err
		}
	}
	if err := db.replace(ctx, source, backend); err != nil {
		return nil, err
	}
	return &RestoreResult{Success: true, Path: g.settings.Path, Backend: string(backend.name)}, db.openStore(ctx)
}

// backupAt returns the absolute path of a backup below the root, or of one below the
// fallback if the root has none.
func (s settings) backupAt(given string) (source string, err error) {
	for i, s := range s.roots() {
		at, fault := s.File.folder(given)
		if fault == nil {
			fault = s.checkBackup(given, at)
		}
		if _, missing := os.Stat(at); fault == nil && missing == nil {
			return at, nil
		}
		if i == 0 {
			source, err = at, fault
		}
	}
	return source, err
}

// checkBackup refuses a backup outside of the root, also one reached by a link, and one in
// the folder of the graph, which would be copied into itself.
func (s settings) checkBackup(given, source string) error {
	info, err := os.Stat(source)
	switch {
	case err != nil:
		return nil // there is no marker
	case !info.IsDir():
		return tea.Errorf(tea.ValidationError, "%s is a file; a backup is a folder that graph.backup has written", source)
	}
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return systemError("open the backup "+source, err)
	}
	if root, err := s.File.realRoot(); err != nil || !within(root, real) {
		return errors.Join(err, outsideError(given))
	}
	own, err := os.Stat(s.Path)
	for dir := real; err == nil; dir = filepath.Dir(dir) {
		if info, failed := os.Stat(dir); failed == nil && os.SameFile(own, info) {
			return tea.Errorf(tea.ValidationError, "%s is the graph itself, or in its folder; a backup is a folder outside of it", source)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return nil
}

// replace atomically replaces the graph with a copy of a backup. The caller holds
// mu and the lock of the folder.
func (db *database) replace(ctx context.Context, source string, b backend) error {
	dir := db.settings.Path
	part := filepath.Join(dir, restoreCopy)
	if err := copyFolder(source, part); err != nil {
		return errors.Join(systemError("copy the backup", err), os.RemoveAll(part))
	}
	// A damaged backup must not replace the graph.
	options := db.settings.options(part, false)
	options.Verify = true
	s, err := b.open(ctx, options)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return errors.Join(unusable(source, part, err), os.RemoveAll(part))
	}
	if err := db.closeStore(); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(part, filepath.Join(dir, restoreReady)), atomicfile.SyncDir(dir)); err != nil {
		return systemError("restore the graph", err)
	}
	return finishRestore(dir)
}

// unusable describes a backup that cannot be opened. err may name its copy.
func unusable(source, copied string, err error) error {
	var reason *store.Reason
	var typed *tea.Error
	switch {
	case errors.As(err, &reason):
		return tea.Errorf(tea.ValidationError, "the backup %s cannot be restored, and the graph is unchanged: %s; choose another backup", source, strings.ReplaceAll(reason.Error(), copied, source))
	case errors.As(err, &typed):
		return tea.Errorf(typed.Type, "the backup %s cannot be restored, and the graph is unchanged: %s", source, strings.ReplaceAll(typed.Message, copied, source))
	}
	return err
}

func (s settings) options(dir string, create bool) store.Options {
	return store.Options{Dir: dir, Create: create, MemoryBytes: s.MemoryMB << 20, Threads: s.Threads}
}

// finishRestore completes an interrupted restore.
func finishRestore(dir string) error {
	ready, move := filepath.Join(dir, restoreReady), filepath.Join(dir, restoreMove)
	if _, err := os.Lstat(ready); err == nil {
		if err := removeAllBut(dir, ownerFile, restoreReady); err != nil {
			return systemError("restore the graph", err)
		}
		if err := errors.Join(os.Rename(ready, move), atomicfile.SyncDir(dir)); err != nil {
			return systemError("restore the graph", err)
		}
	}
	entries, err := os.ReadDir(move)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(move, e.Name()), filepath.Join(dir, e.Name())))
	}
	if err = errors.Join(err, atomicfile.SyncDir(dir)); err == nil {
		err = os.Remove(move)
	}
	if err != nil {
		return systemError("restore the graph", err)
	}
	return nil
}

func removeAllBut(dir string, kept ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if keep := kept[0] == e.Name() || kept[1] == e.Name(); !keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// copyFolder copies the regular files and folders of a folder durably.
func copyFolder(from, to string) error {
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == ownerFile:
		case e.IsDir():
			err = copyFolder(source, target)
		case e.Type().IsRegular():
			err = copyFile(source, target)
		default:
			err = tea.Errorf(tea.ValidationError, "%s is not a file", source)
		}
		if err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(to)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}
