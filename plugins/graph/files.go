package graph

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/confine"

	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

// realRoot returns the absolute path of the root, without symbolic links.
func (s FileSettings) realRoot() (string, error) {
	root, err := filepath.Abs(s.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", tea.Errorf(tea.NotFound, "settings.file.root: %w", err)
	}
	return root, nil
}

// locate returns the absolute path of a file or folder below the root, which need
// not exist. Links in its parent folders must not lead out of the root.
func (s FileSettings) locate(given string) (string, error) {
	clean, err := confine.Clean(given)
	if err != nil {
		return "", err
	}
	root, err := s.realRoot()
	if err != nil || clean == "." {
		return root, err
	}
	full := filepath.Join(root, filepath.FromSlash(clean))
	parent, rest := filepath.Dir(full), filepath.Base(full)
	for {
		if _, err := os.Lstat(parent); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parent, rest = filepath.Dir(parent), filepath.Join(filepath.Base(parent), rest)
	}
	real, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return "", tea.Errorf(tea.NotFound, "the folder %s cannot be used: %w", parent, err)
	}
	if !within(root, real) {
		return "", outsideError(given)
	}
	return filepath.Join(real, rest), nil
}

func outsideError(given string) error {
	return tea.Errorf(tea.PermissionDenied, "the path %q leads out of settings.file.root", given)
}

// within reports whether a path is a folder or below it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkOutside refuses a path in the folder of this graph or of another one,
// whose files it could replace.
func (s settings) checkOutside(target string) error {
	own, err := os.Stat(s.Path)
	if err != nil {
		own = nil
	}
	for dir := target; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && (own != nil && os.SameFile(own, info) || isGraph(dir)) {
			return tea.Errorf(tea.ValidationError, "%s is inside the folder of the graph %s and could overwrite its files; choose a path outside of that folder", target, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// isGraph reports whether a folder has a graph, or one that is being restored.
func isGraph(dir string) bool {
	for _, name := range []string{restoreReady, restoreMove} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	m, err := decodeMarker(filepath.Join(dir, markerFile))
	return err == nil && m != nil
}

// files is the place of exports and imports.
type files interface {
	// write replaces the files of a format. They appear when write returns without an
	// error. It returns their names.
	write(ctx context.Context, path string, format transfer.Format, write func([]io.Writer) error) ([]string, error)
	open(ctx context.Context, path string, format transfer.Format) (*inputs, error)
}

// files returns the file system that a path refers to, and the path in it.
func (g *Graph) files(s settings, given string) (files, string, error) {
	scheme, _, isAddress := strings.Cut(given, "://")
	switch {
	case !isAddress:
		return folder{s}, given, nil
	case scheme == "file":
		local, err := s.File.ofURL(given)
		return folder{s}, local, err
	case scheme == "http" || scheme == "https":
		return web{g.settings.Storage}, given, nil
	}
	return storage{options: g.db.owners.options, settings: g.settings.Settings}, given, nil
}

// open opens the files of an import below the root, or else below the fallback.
func (g *Graph) open(ctx context.Context, given string, format transfer.Format) (in *inputs, err error) {
	for _, s := range g.settings.roots() {
		f, local, fault := g.files(s, given)
		if fault == nil {
			if in, fault = f.open(ctx, local, format); fault == nil {
				return in, nil
			}
		}
		if err == nil || tea.AsError(err).Type == tea.PermissionDenied { // a URL may name a file below the fallback
			err = fault
		}
		if t := tea.AsError(fault).Type; t != tea.NotFound && t != tea.PermissionDenied {
			break
		}
	}
	return nil, err
}

// roots returns the settings for each root that can be read.
func (s settings) roots() []settings {
	if s.File.Fallback == "" {
		return []settings{s}
	}
	other := s
	other.File.Root = s.File.Fallback
	return []settings{s, other}
}

// ofURL returns the path below the root for a URL such as file:///var/data/x.csv.
func (s FileSettings) ofURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" || !path.IsAbs(u.Path) {
		return "", tea.Errorf(tea.ValidationError, "%s is not the URL of a file on this device; write an absolute path, such as file:///var/data/x.csv, with %%20 for a space", given)
	}
	full := filepath.FromSlash(u.Path)
	if filepath.VolumeName(strings.TrimPrefix(full, string(filepath.Separator))) != "" { // file:///C:/x
		full = full[1:]
	}
	for _, root := range []func() (string, error){func() (string, error) { return filepath.Abs(s.Root) }, s.realRoot} {
		dir, err := root()
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return "", outsideError(given)
}

// isPattern reports whether a path is a pattern.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// checkPattern refuses an invalid pattern, and any pattern for GraphML, whose files cannot
// be parts of one graph.
func checkPattern(given string, format transfer.Format) error {
	if format == transfer.GraphML {
		return tea.Errorf(tea.ValidationError, "%s: a pattern is for the formats jsonl, csv and parquet; import GraphML files one by one", given)
	}
	if _, err := path.Match(given, ""); err != nil {
		return tea.Errorf(tea.ValidationError, "the pattern %q is not valid: * matches any characters except a slash, ? for one, and [abc] for one of these", given)
	}
	return nil
}

func noMatch(given string) error {
	return tea.Errorf(tea.NotFound, "no file matches %s; * matches any characters except a slash", given)
}

// isTable reports whether a path names one table in a format, by its extension.
func isTable(given string, format transfer.Format) bool {
	return tableFormats[strings.ToLower(path.Ext(given))] == string(format)
}

// inputs are the open files of an import.
type inputs struct {
	files   []transfer.Input
	closers []func() error
}

func (in *inputs) add(file transfer.Input, closer func() error) {
	in.files = append(in.files, file)
	in.closing(closer)
}

func (in *inputs) closing(closer func() error) { in.closers = append(in.closers, closer) }

func (in *inputs) close() {
	for _, closer := range slices.Backward(in.closers) {
		_ = closer() // they were only read
	}
}

// folder is the place of files for exports and imports, below settings.file.root.
type folder struct{ settings settings }

// paths returns the absolute paths of the files of a format.
func (f folder) paths(given string, format transfer.Format) ([]string, error) {
	target, err := f.settings.File.locate(given)
	if err != nil {
		return nil, err
	}
	names := format.Files()
	if names == nil {
		return []string{target}, nil
	}
	// The folder itself may be a link.
	if real, err := filepath.EvalSymlinks(target); err == nil {
		root, err := f.settings.File.realRoot()
		if err != nil {
			return nil, err
		}
		if !within(root, real) {
			return nil, outsideError(given)
		}
		target = real
	}
	for i := range names {
		names[i] = filepath.Join(target, names[i])
	}
	return names, nil
}

// write replaces files atomically, the last one first.
func (f folder) write(_ context.Context, given string, format transfer.Format, write func([]io.Writer) error) ([]string, error) {
	paths, err := f.paths(given, format)
	if err != nil {
		return nil, err
	}
	for _, target := range paths {
		if err := f.settings.checkOutside(target); err != nil {
			return nil, err
		}
		if info, err := os.Lstat(target); err == nil && info.IsDir() {
			return nil, tea.Errorf(tea.ValidationError, "%s is a folder, and the format %s needs a file; choose another path", target, format)
		}
	}
	top, err := f.settings.File.realRoot()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fileError("open settings.file.root", err)
	}
	defer root.Close()
	outputs := make([]io.Writer, len(paths))
	var next func(i int) error
	next = func(i int) error {
		if i == len(paths) {
			return write(outputs)
		}
		name, err := filepath.Rel(top, paths[i])
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		return atomicfile.WriteIn(root, name, 0o644, func(w io.Writer) error {
			buffered := bufio.NewWriterSize(w, 1<<16)
			outputs[i] = buffered
			return errors.Join(next(i+1), buffered.Flush())
		})
	}
	if err := next(0); err != nil {
		return nil, fileError("write "+paths[0], err)
	}
	return paths, nil
}

// fileError describes an error of a file below the root.
func fileError(what string, err error) error {
	var typed *tea.Error
	if !errors.As(err, &typed) && isReadOnly(err) {
		return tea.Errorf(tea.PermissionDenied, "%s: %w", what, err)
	}
	return systemError(what, err)
}

// open opens the files of an import.
func (f folder) open(_ context.Context, given string, format transfer.Format) (_ *inputs, err error) {
	paths, err := f.sources(given, format)
	if err != nil {
		return nil, err
	}
	in := &inputs{}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	for _, target := range paths {
		file, err := f.openFile(given, target)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(paths) > 1:
			return nil, tea.Errorf(tea.NotFound, "the file %s does not exist; the format %s needs %s and %s in the folder", target, format, filepath.Base(paths[0]), filepath.Base(paths[1]))
		case errors.Is(err, fs.ErrNotExist):
			return nil, tea.Errorf(tea.NotFound, "the file %s does not exist", target)
		case err != nil:
			return nil, fileError("read "+target, err)
		}
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(fileError("read "+target, err), file.Close())
		}
		in.add(transfer.Input{Name: filepath.ToSlash(target), Reader: file, Size: info.Size()}, file.Close)
	}
	return in, nil
}

// sources returns the absolute paths of the files that a path names: the files of a
// folder in the format, one file, or the matches of a pattern.
func (f folder) sources(given string, format transfer.Format) ([]string, error) {
	if strings.ContainsAny(given, "*?") { // file names do not have them
		return f.matches(given, format)
	}
	target, err := f.settings.File.locate(given)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	switch {
	case err == nil && info.Mode().IsRegular():
		return []string{target}, nil
	case err != nil && isPattern(given):
		return f.matches(given, format)
	case err != nil && isTable(given, format):
		return nil, tea.Errorf(tea.NotFound, "the file %s does not exist", target)
	}
	return f.paths(given, format)
}

// matches returns the absolute paths of the files that a pattern matches.
func (f folder) matches(given string, format transfer.Format) ([]string, error) {
	if err := checkPattern(given, format); err != nil {
		return nil, err
	}
	top, err := f.settings.File.realRoot()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fileError("open settings.file.root", err)
	}
	defer root.Close()
	if _, err := confine.Clean(strings.NewReplacer("*", "x", "?", "x").Replace(given)); err != nil {
		return nil, err
	}
	names, err := fs.Glob(root.FS(), path.Clean(given))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if info, err := root.Stat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() {
			found = append(found, filepath.Join(top, filepath.FromSlash(name)))
		}
	}
	if found == nil {
		return nil, noMatch(given)
	}
	return found, nil
}

// openFile opens a file, which may be a link within the root.
func (f folder) openFile(given, target string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(target)
	if err != nil {
		return nil, err
	}
	top, err := f.settings.File.realRoot()
	if err != nil {
		return nil, err
	}
	if !within(top, real) {
		return nil, outsideError(given)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name, err := filepath.Rel(top, real)
	if err != nil {
		return nil, err
	}
	switch info, err := root.Stat(name); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, tea.Errorf(tea.ValidationError, "%s is a folder, and the format needs a file", target)
	case !info.Mode().IsRegular():
		return nil, tea.Errorf(tea.ValidationError, "%s is not a file", target)
	}
	return root.Open(name)
}
