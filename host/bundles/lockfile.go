package bundles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// LockName is the name of the file.
const LockName = "tea.lock"

// Lock is the content of a lock file.
type Lock struct {
	// Format is the version of the format, 1.
	Format int `json:"format"`
	// Plugins are sorted by name.
	Plugins []Pinned `json:"plugins"`
	// Sum is the SHA-256 of the file with an empty Sum.
	Sum string `json:"sum"`

	path string
}

// Pinned is one pinned plugin.
type Pinned struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Platforms has the files of each platform, such as "linux/arm64": their
	// SHA-256 by path, relative to the binary's directory. The binary is ".".
	// The platform "any" applies to all platforms that are not listed.
	Platforms map[string]Digests `json:"platforms"`
}

// Digests are the digests of a plugin's files by path.
type Digests map[string]string

// lockedBinary represents the binary in [Digests].
const lockedBinary = "."

const (
	lockFormat = 1
	maxLock    = 8 << 20
)

// ReadLock reads a lock file. The error is fs.ErrNotExist if there is none, and a
// [*LockError] for a file that cannot be read or a dangling link.
func ReadLock(path string) (*Lock, error) {
	data, err := confine.ReadRegular(path, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		if info, found := os.Lstat(path); found == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, &LockError{path, errors.New("it is a link to a file that does not exist")}
		}
		return nil, err
	}
	if err != nil {
		return nil, &LockError{path, err}
	}
	l := &Lock{path: path}
	if err := digest.ParseCanonical(data, l); err != nil {
		return nil, &LockError{path, err}
	}
	if l.Format != lockFormat {
		return nil, &LockError{path, fmt.Errorf("it has format %d; this tea reads format %d", l.Format, lockFormat)}
	}
	sum, err := l.sum()
	if err != nil {
		return nil, err
	}
	if sum != l.Sum {
		return nil, &LockError{path, errors.New("it was changed after it was written")}
	}
	return l, nil
}

// LockError reports a lock file that cannot be used.
type LockError struct {
	Path string
	Err  error
}

func (e *LockError) Error() string {
	return fmt.Sprintf("the lock file %s is not valid: %v; restore it, or write it again with `tea plugin lock`", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *LockError) Unwrap() error { return e.Err }

// Write writes the lock to a file, atomically.
func (l *Lock) Write(path string) error {
	l.Format = lockFormat
	sort.Slice(l.Plugins, func(i, j int) bool { return l.Plugins[i].Name < l.Plugins[j].Name })
	var err error
	if l.Sum, err = l.sum(); err != nil {
		return err
	}
	data, err := digest.Canonical(l)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (l *Lock) sum() (string, error) {
	data, err := digest.Canonical(Lock{Format: l.Format, Plugins: l.Plugins})
	return digest.Of(data), err
}

// Path returns the path of the file that the lock was read from.
func (l *Lock) Path() string { return l.path }

// Find returns a pinned plugin, or nil.
func (l *Lock) Find(name string) *Pinned {
	for i := range l.Plugins {
		if l.Plugins[i].Name == name {
			return &l.Plugins[i]
		}
	}
	return nil
}

// For returns the digests for a platform, or nil.
func (p *Pinned) For(platform string) Digests {
	if files, ok := p.Platforms[platform]; ok {
		return files
	}
	return p.Platforms["any"]
}

// Refusal reports a plugin that a lock does not allow.
type Refusal struct {
	Lock, Name, Reason string
	// Unlisted is set if the lock does not contain the plugin.
	Unlisted bool
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s does not allow it: %s; `tea plugin lock` allows the plugins that are installed now", e.Lock, e.Reason)
}

// Check checks the files of a plugin against the lock. sum returns the SHA-256
// of a file. The error is a [*Refusal].
func (l *Lock) Check(name, binary, platform string, sum func(path string) (string, error)) error {
	refuse := func(format string, args ...any) error {
		return &Refusal{Lock: l.path, Name: name, Reason: fmt.Sprintf(format, args...)}
	}
	p := l.Find(name)
	if p == nil {
		return &Refusal{Lock: l.path, Name: name, Reason: fmt.Sprintf("the plugin %s is not in it", name), Unlisted: true}
	}
	files := p.For(platform)
	if files[lockedBinary] == "" {
		return refuse("it has %s %s for %s, not for %s", name, p.Version, strings.Join(slices.Sorted(maps.Keys(p.Platforms)), ", "), platform)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		path := binary
		if file != lockedBinary {
			path = filepath.Join(filepath.Dir(binary), filepath.FromSlash(file))
		}
		got, err := sum(path)
		if errors.Is(err, os.ErrNotExist) {
			return refuse("%s is missing", path)
		}
		if err != nil {
			return refuse("%v", err)
		}
		if got != files[file] {
			return refuse("the SHA-256 of %s is %s, not %s as for %s %s", path, short(got), short(files[file]), name, p.Version)
		}
	}
	return nil
}

// short returns a prefix of a digest, for messages.
func short(sum string) string { return sum[:min(len(sum), 12)] + "..." }
