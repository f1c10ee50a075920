package bundles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	// stagingPrefix is the prefix of the name of an incomplete entry,
	// trashPrefix of one that is being removed.
	stagingPrefix = ".new-"
	trashPrefix   = ".old-"
)

// signedBundle is the bundle itself in an entry. It is kept only if the signature
// cannot be verified by the index.
const signedBundle = "bundle" + Suffix

// Signed is a signature with the key that verified it.
type Signed struct {
	Signature Signature
	Key       Key
}

// Install installs the files for a platform and activates them. It returns the new
// entry and the previously active one, which is nil for a new plugin. After an error
// the active version is unchanged. Without signed, a bundle that is already installed
// keeps its signature; with it, the new entry replaces one of the same bundle. check,
// if not nil, decides whether the unpacked version becomes active.
func (s *Store) Install(b *Bundle, platform string, signed *Signed, check func(*Entry) error) (now, before *Entry, err error) {
	if platform, err = b.Index.For(platform); err != nil {
		return nil, nil, err
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if _, err := s.tidy(); err != nil {
		return nil, nil, err
	}
	name := b.Index.Manifest.Name
	active, err := s.active(name)
	if err != nil {
		return nil, nil, err
	}
	if active != "" {
		before, _ = s.entry(active) // a damaged version is replaced
	}
	ids, damaged := s.history(name, active) // a damaged history is started again
	id, created := s.same(b, platform, ids), false
	if signed != nil || id == "" {
		if id, created, err = s.unpack(b, platform, signed); err != nil {
			return nil, nil, err
		}
	}
	if now, err = s.entry(id); err != nil {
		return nil, nil, err
	}
	if check != nil {
		if err := check(now); err != nil {
			return nil, nil, s.forget(id, created, err)
		}
	}
	if id == active && damaged == nil {
		return now, before, nil
	}
	ids = ids[:slices.Index(ids, active)+1]
	ids = append(slices.DeleteFunc(ids, func(old string) bool {
		e, err := s.entry(old)
		return old == id || err == nil && e.contains(b, platform)
	}), id)
	if err := s.writeHistory(name, ids); err != nil {
		return nil, nil, s.forget(id, created, err)
	}
	return now, before, s.activate(name, id)
}

// forget removes a created entry that nothing refers to, and returns the reason
// joined with the errors of the removal.
func (s *Store) forget(id string, created bool, reason error) error {
	if !created {
		return reason
	}
	if err := s.discard(id); err != nil {
		return errors.Join(reason, err)
	}
	if _, err := s.tidy(); err != nil {
		return errors.Join(reason, err)
	}
	return reason
}

// same returns the newest of the entries with the same files as a bundle, with or
// without a signature; "" if all others differ or are damaged.
func (s *Store) same(b *Bundle, platform string, ids []string) string {
	for _, id := range slices.Backward(ids) {
		if e, err := s.entry(id); err == nil && e.contains(b, platform) && len(e.check()) == 0 {
			return id
		}
	}
	return ""
}

// contains reports whether an entry was made from the bundle, for the platform.
func (e *Entry) contains(b *Bundle, platform string) bool {
	return e.Bundle == b.SHA256 && e.Platform == platform
}

// unpack creates an entry unless the store has it.
func (s *Store) unpack(b *Bundle, platform string, signed *Signed) (id string, created bool, err error) {
	dir, err := os.MkdirTemp(s.root, stagingPrefix)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, removeTree(dir)) }()
	id, err = stage(dir, b, platform, signed)
	if err != nil {
		return "", false, err
	}
	if e, err := s.entry(id); err == nil && len(e.check()) == 0 {
		return id, false, nil
	}
	if _, err := os.Lstat(filepath.Join(s.root, id)); err == nil { // damaged
		if err := s.discard(id); err != nil {
			return "", false, err
		}
	}
	if err := os.Rename(dir, filepath.Join(s.root, id)); err != nil {
		return "", false, err
	}
	return id, true, atomicfile.SyncDir(s.root)
}

// stage writes a complete entry into a directory and returns its ID.
func stage(dir string, b *Bundle, platform string, signed *Signed) (string, error) {
	st := staging{dir: dir, record: Record{
		Format: recordFormat, Name: b.Index.Manifest.Name, Version: b.Index.Manifest.Version,
		Platform: platform, Bundle: b.SHA256, Files: map[string]string{},
	}}
	if err := st.unpack(b, platform); err != nil {
		return "", err
	}
	if signed != nil {
		st.record.Key, st.record.Signature = signed.Key.String(), signed.Signature.String()
		if !signed.Signature.VerifyIndex(b.IndexSHA256(), signed.Key) {
			if err := st.create(signedBundle, 0o444, b.Copy); err != nil {
				return "", err
			}
			st.record.Files[signedBundle] = b.SHA256
		}
	}
	record, err := digest.Canonical(st.record)
	if err != nil {
		return "", err
	}
	if err := st.write(recordName, 0o444, record); err != nil {
		return "", err
	}
	return digest.Of(record), st.seal()
}

// staging is an incomplete entry.
type staging struct {
	dir    string
	record Record
}

// unpack writes the files of a platform, the manifest and the documents.
func (st *staging) unpack(b *Bundle, platform string) error {
	targets := map[string][]File{}
	for _, f := range b.Index.Platforms[platform] {
		targets[f.SHA256] = append(targets[f.SHA256], f)
	}
	for _, f := range b.Index.Documents {
		f.Path, f.Executable = path.Join(documentsDir, f.Path), false
		targets[f.SHA256] = append(targets[f.SHA256], f)
	}
	err := b.Each(func(blob File, r io.Reader) error {
		for i, f := range targets[blob.SHA256] {
			mode := fs.FileMode(0o444)
			if f.Executable {
				mode = 0o555
			}
			from := func(w io.Writer) error { _, err := io.Copy(w, r); return err }
			if i > 0 { // the content has been read
				first := filepath.Join(st.dir, filepath.FromSlash(targets[blob.SHA256][0].Path))
				from = func(w io.Writer) error { return copyFile(w, first) }
			}
			if err := st.create(f.Path, mode, from); err != nil {
				return err
			}
			st.record.Files[f.Path] = f.SHA256
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := st.put(indexName, b.IndexBytes); err != nil {
		return err
	}
	part, err := parsePart(b.IndexBytes, platform)
	if err != nil {
		return err
	}
	manifest, err := storedManifest(part)
	if err != nil {
		return err
	}
	return st.put(binaryName(b.Index.Manifest.Name, platform)+".json", manifest)
}

// storedManifest returns the manifest as it is stored next to a binary, with the
// digests of the binary (".") and of the other files.
func storedManifest(part Part) ([]byte, error) {
	var m struct {
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(part.Manifest, &m); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for i, f := range part.Files {
		switch {
		case i == 0:
			sums["."] = f.SHA256
		case slices.Contains(m.Files, f.Path):
			sums[f.Path] = f.SHA256
		}
	}
	text, err := json.Marshal(sums)
	if err != nil {
		return nil, err
	}
	manifest := bytes.TrimSuffix(part.Manifest, []byte("}"))
	return slices.Concat(manifest, []byte(`,"sha256":`), text, []byte("}\n")), nil
}

// put writes a generated file and records it.
func (st *staging) put(name string, data []byte) error {
	st.record.Files[name] = digest.Of(data)
	return st.write(name, 0o444, data)
}

func (st *staging) write(name string, mode fs.FileMode, data []byte) error {
	return st.create(name, mode, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// create writes a file, which is on disk when create returns.
func (st *staging) create(name string, mode fs.FileMode, write func(io.Writer) error) error {
	file := filepath.Join(st.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// seal makes the directories read-only and durable, the innermost first.
func (st *staging) seal() error {
	var dirs []string
	err := filepath.WalkDir(st.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Chmod(dir, 0o555); err != nil {
			return err
		}
		if err := atomicfile.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// check compares all files of an entry with its record.
func (e *Entry) check() []error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if sum, err := digest.File(e.Path(name)); err != nil || sum != e.Files[name] {
			faults = append(faults, e.changed(name))
		}
	}
	err := filepath.WalkDir(e.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(e.dir, path)
		if err != nil {
			return err
		}
		if _, ok := e.Files[filepath.ToSlash(rel)]; !ok && rel != recordName {
			faults = append(faults, fmt.Errorf("%s does not belong to %s; remove it", path, e.Name))
		}
		return nil
	})
	if err != nil {
		faults = append(faults, err)
	}
	return faults
}

// lock serializes the changes of all processes. It creates the store.
func (s *Store) lock() (unlock func(), err error) {
	if err := makeDir(s.root); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.root, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// makeDir creates a directory and its parents, durably.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.SyncDir(parent)
}
