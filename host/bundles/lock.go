package bundles

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Plugin is a discovered plugin with its binary.
type Plugin struct {
	Manifest tea.Manifest
	Path     string
}

// UpdateLock returns a lock of the named plugins plus the other entries of
// previous; without names it is a lock of exactly the plugins. An installed
// bundle is pinned for all its platforms. Any other binary is pinned for this
// platform; the digests for other platforms are taken from previous, which can
// be nil, if the version is the same. unread are discovered plugins without a
// manifest; they cannot be pinned.
func UpdateLock(store *Store, plugins []Plugin, unread []string, previous *Lock, names []string) (*Lock, error) {
	l := new(Lock)
	if previous != nil && len(names) > 0 {
		for _, p := range previous.Plugins {
			if !slices.Contains(names, p.Name) {
				l.Plugins = append(l.Plugins, p)
			}
		}
	}
	for _, name := range unread {
		if len(names) == 0 || slices.Contains(names, name) {
			return nil, fmt.Errorf("the manifest of plugin %s is not stored; `tea plugin refresh %s` stores it", name, name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Manifest.Name == name }) {
			return nil, fmt.Errorf("plugin %q not found; `tea plugin list` lists those that are found", name)
		}
	}
	for _, p := range plugins {
		if len(names) > 0 && !slices.Contains(names, p.Manifest.Name) {
			continue
		}
		pinned, err := pin(store, p, previous)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", p.Manifest.Name, err)
		}
		l.Plugins = append(l.Plugins, pinned)
	}
	return l, nil
}

func pin(store *Store, p Plugin, previous *Lock) (Pinned, error) {
	pinned := Pinned{Name: p.Manifest.Name, Version: p.Manifest.Version, Platforms: map[string]Digests{}}
	binary, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return pinned, err
	}
	if store != nil {
		entry, err := store.Find(binary)
		if err != nil {
			return pinned, err
		}
		if entry != nil {
			return pinned, pinBundle(pinned.Platforms, entry)
		}
	}
	if previous != nil {
		if old := previous.Find(pinned.Name); old != nil && old.Version == pinned.Version {
			maps.Copy(pinned.Platforms, old.Platforms)
		}
	}
	platform, err := PlatformOf(binary)
	if err != nil {
		platform = Platform
	}
	files := Digests{}
	for _, name := range append([]string{lockedBinary}, p.Manifest.Files...) {
		path := binary
		if name != lockedBinary {
			path = filepath.Join(filepath.Dir(binary), filepath.FromSlash(name))
		}
		if files[name], err = digest.File(path); err != nil {
			return pinned, err
		}
	}
	pinned.Platforms[platform] = files
	return pinned, nil
}

// pinBundle pins all platforms of an installed bundle.
func pinBundle(platforms map[string]Digests, entry *Entry) error {
	index, err := entry.Index()
	if err != nil {
		return err
	}
	for platform, files := range index.Platforms {
		platforms[platform] = Digests{}
		for i, f := range files {
			name := f.Path
			if i == 0 {
				name = lockedBinary
			}
			platforms[platform][name] = f.SHA256
		}
	}
	return nil
}

// CheckLock compares a lock with the installed plugins and returns the
// differences. A plugin that is not in the lock is not a difference.
func CheckLock(l *Lock, plugins []Plugin) []error {
	var faults []error
	for _, pinned := range l.Plugins {
		i := slices.IndexFunc(plugins, func(p Plugin) bool { return p.Manifest.Name == pinned.Name })
		if i < 0 {
			faults = append(faults, fmt.Errorf("plugin %s %s is not installed", pinned.Name, pinned.Version))
			continue
		}
		binary, err := filepath.EvalSymlinks(plugins[i].Path)
		if err == nil {
			err = l.Check(pinned.Name, binary, Platform, digest.File)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}
