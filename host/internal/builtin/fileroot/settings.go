package fileroot

import (
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/confine"
)

// SettingsKey is where a workflow's settings hold [Settings].
const SettingsKey = "file"

// Settings are settings.file.
type Settings struct {
	Root     string `json:"root,omitempty" format:"path" default:"." doc:"the directory that file actions stay in; default the workflow file's"`
	MaxBytes int64  `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the largest file that is read or written"`
}

// Lazy opens a root when it is first needed: a workflow that touches no file
// needs no directory. It is safe for concurrent use.
type Lazy struct {
	// MaxBytes is the largest file that may be read or written.
	MaxBytes int64

	dir  string
	mu   sync.Mutex
	root *confine.Root
}

// OpenLazily reads settings.file; a relative or absent root is below workDir,
// "" being the working directory.
func OpenLazily(settings tea.Settings, workDir string) (*Lazy, error) {
	s := Settings{MaxBytes: 16 << 20}
	if err := settings.Decode(SettingsKey, &s); err != nil {
		return nil, err
	}
	if s.MaxBytes < 1 {
		return nil, tea.Errorf(tea.ValidationError, "settings.file.max_bytes must be at least 1")
	}
	dir := s.Root
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workDir, dir)
	}
	if dir == "" {
		dir = "."
	}
	return &Lazy{MaxBytes: s.MaxBytes, dir: dir}, nil
}

// Root gives the root, opening it at first.
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
