// Package fileroot reads settings.file: the directory that file actions are
// confined to. Start with [OpenLazily].
package fileroot

import (
	"cmp"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// SettingsKey is the key of [Settings] in a workflow's settings.
const SettingsKey = "file"

// Settings are settings.file.
type Settings struct {
	Root     string `json:"root,omitempty" format:"path" default:"." doc:"the directory that file actions are confined to; default the workflow file's"`
	MaxBytes int64  `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the maximum size of a file that is read or written"`
}

// Lazy opens a root at the first access: a workflow that uses no file needs no
// directory. It is safe for concurrent use. The owner must call [Lazy.Close].
type Lazy struct {
	// MaxBytes is the maximum size of a file that is read or written.
	MaxBytes int64

	dir  string
	mu   sync.Mutex
	root *confine.Root
}

// OpenLazily reads settings.file. A relative or absent root is relative to
// workDir; "" is the working directory.
func OpenLazily(settings tea.Settings, workDir string) (*Lazy, error) {
	var s Settings
	if err := settings.Decode(SettingsKey, &s); err != nil {
		return nil, err
	}
	dir := s.Root
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cmp.Or(workDir, "."), dir)
	}
	return &Lazy{MaxBytes: s.MaxBytes, dir: dir}, nil
}

// Root returns the root, which the first call opens.
func (l *Lazy) Root() (*confine.Root, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.root == nil {
		root, err := confine.Open(l.dir)
		if err != nil {
			return nil, err
		}
		l.root = root
	}
	return l.root, nil
}

// Close releases the root, if it was opened.
func (l *Lazy) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.root == nil {
		return nil
	}
	return l.root.Close()
}
