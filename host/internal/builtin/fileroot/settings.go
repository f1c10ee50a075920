// Package fileroot reads settings.file: the directories that file actions are
// confined to. Start with [OpenLazily].
package fileroot

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// SettingsKey is the key of [Settings] in a workflow's settings.
const SettingsKey = "file"

// Settings are settings.file.
type Settings struct {
	Root     string   `json:"root,omitempty" format:"path" default:"." doc:"the directory that file actions are confined to; default the workflow file's, under tea serve the workflow's data directory"`
	Fallback string   `json:"fallback,omitempty" format:"path" doc:"a second directory: a relative path refers to a file in it if only this directory has the file; default none, under tea serve without root the directory of the workflow file"`
	Read     []string `json:"read,omitempty" doc:"further directories that file.read, exists and list and csv.parse reach by absolute paths"`
	Write    []string `json:"write,omitempty" doc:"further directories that every file action reaches by absolute paths"`
	MaxBytes int64    `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the maximum size of a file that is read or written"`
}

// Access is what an action does with a file.
type Access int

// The kinds of access. WriteAccess includes deleting.
const (
	ReadAccess Access = iota
	WriteAccess
)

// Lazy opens directories on the first access, since a workflow that uses no files needs
// none. It is safe for concurrent use. The caller must call [Lazy.Close].
type Lazy struct {
	// MaxBytes is the maximum size of a file that is read or written.
	MaxBytes int64

	dir         string
	fallback    string   // "" = none
	read, write []string // absolute
	mu          sync.Mutex
	roots       map[string]*confine.Root
}

// OpenLazily reads settings.file. Relative directories are relative to workDir; "" is
// the working directory.
func OpenLazily(settings tea.Settings, workDir string) (*Lazy, error) {
	var s Settings
	if err := settings.Decode(SettingsKey, &s); err != nil {
		return nil, err
	}
	l := &Lazy{MaxBytes: s.MaxBytes, roots: map[string]*confine.Root{}}
	absolute := func(dir string) string {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cmp.Or(workDir, "."), dir)
		}
		return filepath.Clean(dir)
	}
	if l.dir = absolute(s.Root); s.Fallback != "" {
		l.fallback = absolute(s.Fallback)
	}
	for _, dir := range s.Read {
		l.read = append(l.read, absolute(dir))
	}
	for _, dir := range s.Write {
		l.write = append(l.write, absolute(dir))
	}
	return l, nil
}

// Find returns the directory that contains the file at a path, and the file's path in
// that directory. A relative path refers to the root, or to the fallback if only the
// fallback has the file. An absolute path must be in the root or in a directory of
// settings.file.read or write; its symbolic links may lead from one of them to another.
// The error is a [*tea.Error].
func (l *Lazy) Find(given string, access Access) (*confine.Root, string, error) {
	if !strings.HasPrefix(given, "/") {
		root, err := l.open(l.dir)
		if err == nil && l.fallback != "" {
			if other, err := l.open(l.fallback); err == nil && !exists(root, given) && exists(other, given) {
				return other, given, nil
			}
		}
		return root, given, err
	}
	inside, err := confine.Clean("./" + given[1:])
	if err != nil {
		return nil, "", err
	}
	file := path.Join("/", inside)
	dirs := append([]string{l.dir}, l.write...)
	if l.fallback != "" {
		dirs = append(dirs, l.fallback)
	}
	if access == ReadAccess {
		dirs = append(dirs, l.read...)
	}
	named := func(dir string) bool { return contains(dir, file) }
	if !slices.ContainsFunc(dirs, named) {
		return nil, "", l.refusal(given, "is outside of the file root "+l.dir, access)
	}
	if slices.ContainsFunc(dirs, func(dir string) bool { return named(dir) && contains(kernelDevices, dir) }) {
		dirs = append(dirs, kernelDevices)
	}
	target := realPath(file)
	if access == WriteAccess { // the link itself, not its target
		target = filepath.Join(realPath(filepath.Dir(file)), filepath.Base(file))
	}
	for _, dir := range dirs {
		real := realPath(dir)
		if name, err := filepath.Rel(real, target); err == nil && contains(real, target) {
			root, err := l.open(dir)
			return root, filepath.ToSlash(name), err
		}
	}
	return nil, "", l.refusal(given, "leads to "+target+", outside of the file root "+l.dir, access)
}

// MissingDir returns the directory of a file to be written if it does not exist, else "".
// If there is a fallback, the root is created before the run.
func (l *Lazy) MissingDir(given string) string {
	file := given
	if !path.IsAbs(given) {
		if _, err := os.Stat(filepath.Join(l.fallback, given)); l.fallback != "" && err == nil {
			return "" // it is overwritten there
		}
		file = filepath.Join(l.dir, given)
	}
	dir := filepath.Dir(file)
	if dir == l.dir && l.fallback != "" {
		return ""
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return dir
}

func exists(root *confine.Root, name string) bool {
	_, err := root.Stat(name)
	return err == nil
}

// kernelDevices is the directory of the kernel's devices. It consists of links into
// each other, which only the kernel creates.
const kernelDevices = "/sys"

func (l *Lazy) refusal(given, why string, access Access) error {
	setting := "settings.file.read"
	if access == WriteAccess {
		setting = "settings.file.write"
	}
	e := tea.Errorf(tea.PermissionDenied, "path %q %s; use a path relative to the root, or add its directory to %s", given, why, setting)
	e.Details = map[string]any{"path": given}
	return e
}

// contains reports whether file is dir or below it.
func contains(dir, file string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// realPath resolves the symbolic links of a path whose last elements need not exist.
func realPath(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err == nil || file == "/" || file == "." {
		return cmp.Or(real, file)
	}
	return filepath.Join(realPath(filepath.Dir(file)), filepath.Base(file))
}

func (l *Lazy) open(dir string) (*confine.Root, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.roots[dir] == nil {
		root, err := confine.Open(dir)
		if err != nil {
			return nil, err
		}
		l.roots[dir] = root
	}
	return l.roots[dir], nil
}

// Close releases the directories that were opened.
func (l *Lazy) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var faults []error
	for _, root := range l.roots {
		faults = append(faults, root.Close())
	}
	return errors.Join(faults...)
}
