package subproc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// maxManifest bounds the size of a stored manifest.
const maxManifest = 8 << 20

// storedManifest is a manifest with the state of the files that it describes, as stored
// next to a plugin's binary and in the cache.
type storedManifest struct {
	tea.Manifest
	// SHA256 has the checksums of the binary (under selfKey) and of the listed
	// files. They are set for a manifest next to a binary, because they survive
	// copying and packing.
	SHA256 map[string]string `json:"sha256,omitempty"`
	// States has the states of the listed files, see [digest.State]. They are set
	// for a manifest in the cache, because they are cheap to compare. The state of
	// the binary is part of the name of the file in the cache.
	States map[string]string `json:"states,omitempty"`
}

// selfKey is the key of the binary in storedManifest.SHA256.
const selfKey = "."

// manifestStore finds the manifests of plugins without starting them. A manifest is
// stored as tea-plugin-NAME.json next to the binary, as in a package, or in the user's
// cache under a name that is derived from the binary's path and state, so that a changed
// binary has a different name.
type manifestStore struct {
	dir    string // of the cache; "" for none
	logger *slog.Logger
}

// errUnknown is the error for a binary without a stored manifest.
var errUnknown = errors.New("its manifest is not stored")

// read returns the stored manifest of a binary. The error is errUnknown, or the reason
// why a stored manifest is not used.
func (s manifestStore) read(b binary) (tea.Manifest, error) {
	if m, err := s.readCached(b); err == nil {
		return m.Manifest, nil
	}
	m, err := readStored(b)
	if errors.Is(err, fs.ErrNotExist) {
		return tea.Manifest{}, errUnknown
	}
	if err != nil {
		return tea.Manifest{}, err
	}
	if err := s.write(b, m.Manifest); err != nil { // later reads would need no checksums
		s.logger.Debug("cannot cache the manifest of a plugin", "plugin", b.name, "error", err)
	}
	return m.Manifest, nil
}

// readCached uses only files that other users cannot have written.
func (s manifestStore) readCached(b binary) (storedManifest, error) {
	if s.dir == "" {
		return storedManifest{}, fs.ErrNotExist
	}
	if err := digest.CheckPrivate(s.dir, fs.ModeDir); err != nil {
		return storedManifest{}, err
	}
	path := s.file(b)
	if err := digest.CheckPrivate(path, 0); err != nil {
		return storedManifest{}, err
	}
	m, err := readManifest(path)
	if err == nil && !maps.Equal(m.States, stateOf(b, m.Files)) {
		err = fs.ErrNotExist
	}
	return m, err
}

// readStored reads the manifest next to the binary and checks that it describes the
// current files.
func readStored(b binary) (storedManifest, error) {
	path := withoutLink(b.path) + ".json" // as in the store of bundles
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = b.path + ".json"
		info, err = os.Stat(path)
	}
	if err != nil {
		return storedManifest{}, err
	}
	if digest.OthersCanWrite(info, 0o002) {
		return storedManifest{}, fmt.Errorf("its manifest %s is not used: every user can write to it (chmod o-w)", path)
	}
	m, err := readManifest(path)
	switch {
	case err != nil:
		return m, fmt.Errorf("its manifest %s is not valid: %w", path, err)
	case m.Name != b.name:
		return m, fmt.Errorf("%s is the manifest of %q", path, m.Name)
	case m.isStale(b, path):
		return m, fmt.Errorf("its manifest %s is stale: the plugin has changed since", path)
	}
	return m, nil
}

// isStale reports whether a manifest next to a binary describes other files. Without
// checksums, the manifest's modification and change times must not be older than those
// of any file.
func (m storedManifest) isStale(b binary, path string) bool {
	if m.SHA256 != nil {
		sums, err := sumsOf(b, m.Files)
		return err != nil || !maps.Equal(m.SHA256, sums)
	}
	modified, changed, err := digest.Times(path)
	if err != nil {
		return true
	}
	for _, source := range append([]string{b.path}, b.locate(m.Files)...) {
		m, c, err := digest.Times(source)
		if err != nil || modified.Before(m) || changed.Before(c) {
			return true
		}
	}
	return false
}

func readManifest(path string) (storedManifest, error) {
	var m storedManifest
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return m, err
	}
	if len(data) > maxManifest {
		return m, fmt.Errorf("it is larger than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	return m, m.Check()
}

// keep is write, but without a usable cache it stores nothing, and tea asks the plugin
// again.
func (s manifestStore) keep(b binary, m tea.Manifest) {
	if s.dir == "" {
		return
	}
	if err := s.write(b, m); err != nil {
		s.logger.Warn("cannot cache the manifest of a plugin", "plugin", b.name, "error", err)
	}
}

// write stores a manifest in the cache and removes the manifests of earlier states of
// the binary.
func (s manifestStore) write(b binary, m tea.Manifest) error {
	if s.dir == "" {
		return errors.New("there is no cache directory for its manifest")
	}
	target := s.file(b)
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = digest.CheckPrivate(s.dir, fs.ModeDir)
	}
	if err == nil {
		err = writeJSON(target, storedManifest{Manifest: m, States: stateOf(b, m.Files)}, 0o600)
	}
	if err != nil {
		return err
	}
	stored, _ := filepath.Glob(filepath.Join(s.dir, hash(b.path)+"-*")) // the pattern is valid
	for _, file := range stored {
		if file != target {
			os.Remove(file)
		}
	}
	return nil
}

// writeBeside stores a manifest next to the binary, for packaging.
func writeBeside(b binary, m tea.Manifest) error {
	sums, err := sumsOf(b, m.Files)
	if err != nil {
		return err
	}
	return writeJSON(b.path+".json", storedManifest{Manifest: m, SHA256: sums}, 0o644)
}

// writeJSON replaces a file atomically and durably.
func writeJSON(path string, v any, mode fs.FileMode) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// file returns the path in the cache for a binary in its current state.
func (s manifestStore) file(b binary) string {
	return filepath.Join(s.dir, hash(b.path)+"-"+hash(b.state)+".json")
}

// locate returns the paths of the files that a manifest lists. They are relative to the
// directory of the binary, or of its target if it is a link.
func (b binary) locate(files []string) []string {
	path, err := filepath.EvalSymlinks(b.path)
	if err != nil {
		path = b.path
	}
	paths := make([]string, len(files))
	for i, file := range files {
		if paths[i] = file; !filepath.IsAbs(file) {
			paths[i] = filepath.Join(filepath.Dir(path), file)
		}
	}
	return paths
}

// stateOf returns the states of the files that a manifest lists.
func stateOf(b binary, files []string) map[string]string {
	if len(files) == 0 {
		return nil
	}
	states := map[string]string{}
	for i, path := range b.locate(files) {
		states[files[i]] = digest.State(path)
	}
	return states
}

// sumsOf returns the checksums of the binary and of the files of its manifest.
func sumsOf(b binary, files []string) (map[string]string, error) {
	sums := map[string]string{}
	paths := append([]string{b.path}, b.locate(files)...)
	for i, name := range append([]string{selfKey}, files...) {
		sum, err := digest.File(paths[i])
		if err != nil {
			return nil, err
		}
		sums[name] = sum
	}
	return sums, nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
