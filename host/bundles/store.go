package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/the-edge-agent/tea/host/internal/digest"
)

// Store is the store of one user. It is safe for concurrent use, also by
// several processes.
type Store struct {
	root    string // the directory of the entries
	plugins string // the directory of the links, which is searched for plugins
}

// UserStore returns the store of the user, $XDG_DATA_HOME/tea; nil if there is
// no home directory. getenv is os.Getenv outside tests.
func UserStore(getenv func(string) string) *Store {
	data := home(getenv, "XDG_DATA_HOME", filepath.Join(".local", "share"))
	if data == "" {
		return nil
	}
	return storeAt(filepath.Join(data, "tea"))
}

func home(getenv func(string) string, name, underHome string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, underHome)
	}
	return ""
}

// storeAt returns the store in tea's data directory, such as ~/.local/share/tea. Nothing
// is created before the first installation.
func storeAt(data string) *Store {
	return &Store{root: filepath.Join(data, "store"), plugins: filepath.Join(data, "plugins")}
}

// Entry is an installed version of a plugin.
type Entry struct {
	// ID is the name of its directory.
	ID string
	Record

	dir string
}

// Record describes an entry. The entry's ID is the digest of the record, so that any
// change to a record is detected.
type Record struct {
	// Format is the version of the format, 1.
	Format   int    `json:"format"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	// Bundle is the SHA-256 of the bundle file.
	Bundle string `json:"bundle"`
	// Files has the SHA-256 of each other file of the entry, by its path.
	Files map[string]string `json:"files"`
	// Key has signed the bundle; the installation verified the signature.
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// recordFormat is the version of the format that this package writes.
const recordFormat = 1

// Path returns the path of a file of the entry.
func (e *Entry) Path(name string) string { return filepath.Join(e.dir, filepath.FromSlash(name)) }

// Binary returns the path of the plugin's binary.
func (e *Entry) Binary() string { return e.Path(binaryName(e.Name, e.Platform)) }

// Index reads the index of the bundle that was installed.
func (e *Entry) Index() (*Index, error) {
	data, err := e.read(indexName)
	if err != nil {
		return nil, err
	}
	return parseIndex(data)
}

// read reads a file of the entry and compares it with the record.
func (e *Entry) read(name string) ([]byte, error) {
	data, err := os.ReadFile(e.Path(name))
	if err == nil && digest.Of(data) != e.Files[name] {
		err = e.changed(name)
	}
	return data, err
}

func (e *Entry) changed(file string) error {
	return &ChangedError{Plugin: e.Name + " " + e.Version, Path: e.Path(file)}
}

// ChangedError reports a file that differs from the installed one.
type ChangedError struct{ Plugin, Path string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is missing or was changed after the installation; install %s again", e.Path, e.Plugin)
}

// Find returns the entry that contains a file, with its record verified; nil if
// the file is not in the store. The path has no symbolic links.
func (s *Store) Find(path string) (*Entry, error) {
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return nil, nil // without a store the file is not in it
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, nil // a path on another volume is not in the store
	}
	id, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	if !isID(id) {
		return nil, nil
	}
	return s.entry(id)
}

func isID(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// entry reads the record of an entry and verifies it.
func (s *Store) entry(id string) (*Entry, error) {
	e := &Entry{ID: id, dir: filepath.Join(s.root, id)}
	data, err := os.ReadFile(e.Path(recordName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && digest.Of(data) != id {
		return nil, &ChangedError{Plugin: "the plugin", Path: e.Path(recordName)}
	}
	if err != nil {
		return nil, err
	}
	if err := digest.ParseCanonical(data, &e.Record); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Path(recordName), err)
	}
	if e.Format != recordFormat {
		return nil, fmt.Errorf("%s has format %d; this tea reads format %d", e.Path(recordName), e.Format, recordFormat)
	}
	return e, nil
}

// link returns the path of a plugin's link.
func (s *Store) link(name string) string {
	return filepath.Join(s.plugins, binaryName(name, Platform))
}

// active returns the ID of the active version of a plugin; "" if it is not
// installed. A file that was not installed from a bundle is an error.
func (s *Store) active(name string) (string, error) {
	target, err := os.Readlink(s.link(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, syscall.EINVAL):
		return "", fmt.Errorf("%s was not installed from a bundle; remove it first", s.link(name))
	case err != nil:
		return "", err
	}
	parts := strings.Split(filepath.ToSlash(target), "/")
	if len(parts) != 4 || parts[0] != ".." || parts[1] != filepath.Base(s.root) || !isID(parts[2]) || parts[3] != filepath.Base(s.link(name)) {
		return "", fmt.Errorf("%s is a link that tea did not create; remove it first", s.link(name))
	}
	return parts[2], nil
}

// names returns the plugins that have a link or a history, sorted.
func (s *Store) names() ([]string, error) {
	var names []string
	links, err := readDir(s.plugins)
	for _, e := range links {
		name, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), binarySuffix(Platform)), binaryPrefix)
		if id, err := s.active(name); ok && err == nil && id != "" {
			names = append(names, name)
		}
	}
	histories, more := readDir(s.historyDir())
	for _, e := range histories {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(err, more)
}

// readDir lists a directory that need not exist.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

// Installed is a plugin of the store with its versions.
type Installed struct {
	Name string
	// Versions are the versions that were active, oldest first. Versions after
	// the active one remain from a rollback.
	Versions []*Entry
	// Active is the index of the active version in Versions, or -1.
	Active int
}

// List returns the installed plugins, sorted by name. Entries that cannot be used
// are reported in the error; the others are returned.
func (s *Store) List() ([]Installed, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var all []Installed
	var errs []error
	for _, name := range names {
		in, err := s.installed(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: %w", name, err))
		}
		if len(in.Versions) > 0 {
			all = append(all, in)
		}
	}
	return all, errors.Join(errs...)
}

func (s *Store) installed(name string) (Installed, error) {
	in := Installed{Name: name, Active: -1}
	current, err := s.active(name)
	if err != nil {
		return in, err
	}
	ids, err := s.history(name, current)
	errs := []error{err}
	for _, id := range ids {
		e, err := s.entry(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if id == current {
			in.Active = len(in.Versions)
		}
		in.Versions = append(in.Versions, e)
	}
	return in, errors.Join(errs...)
}

// Verify compares the entry's files with the record, except the documents. sum
// returns the SHA-256 of a file. The error is a [*ChangedError].
func (e *Entry) Verify(sum func(path string) (string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if strings.HasPrefix(name, documentsDir+"/") || name == signedBundle {
			continue
		}
		if got, err := sum(e.Path(name)); err != nil || got != e.Files[name] {
			return e.changed(name)
		}
	}
	return nil
}

// ErrOtherKey is the error for a bundle that was signed with another key.
var ErrOtherKey = errors.New("another key has signed it")

// VerifySignature verifies that the key has signed the entry's bundle. It verifies
// the signature again instead of relying on the installation. The error is
// ErrOtherKey, or reports what is damaged.
func (e *Entry) VerifySignature(key Key) error {
	signature, err := parseSignature(e.Signature)
	if err != nil {
		return fmt.Errorf("the signature of %s: %w", e.Name, err)
	}
	data, err := e.read(indexName)
	if err != nil {
		return err
	}
	if !signature.VerifyIndex(e.Files[indexName], key) {
		if err := e.verifyWhole(signature, key); err != nil {
			return err
		}
	}
	part, err := parsePart(data, e.Platform)
	if err != nil {
		return err
	}
	for _, f := range part.Files {
		if e.Files[f.Path] != f.SHA256 {
			return e.changed(f.Path)
		}
	}
	manifest, err := storedManifest(part)
	if err != nil {
		return err
	}
	if name := binaryName(e.Name, e.Platform) + ".json"; e.Files[name] != digest.Of(manifest) {
		return e.changed(name)
	}
	return nil
}

// verifyWhole verifies a signature over the bundle that is kept in the entry.
func (e *Entry) verifyWhole(signature Signature, key Key) error {
	if e.Files[signedBundle] == "" {
		return ErrOtherKey
	}
	b, err := Open(e.Path(signedBundle))
	if err != nil {
		return err
	}
	defer b.Close()
	if !b.Verify(signature, key) {
		return ErrOtherKey
	}
	if b.IndexSHA256() != e.Files[indexName] {
		return e.changed(indexName)
	}
	return nil
}
