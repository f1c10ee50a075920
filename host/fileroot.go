package host

import (
	"fmt"
	"io/fs"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	"github.com/the-edge-agent/tea/host/internal/expr"
	tea "github.com/the-edge-agent/tea/sdk"
)

// FileRoot reads the files that runs of a workflow have written: those that its file
// actions can read. It is safe for concurrent use. The caller must call [FileRoot.Close].
type FileRoot struct{ files *fileroot.Lazy }

// FileRoot opens the file root of the workflow. It fails if settings.file needs secrets
// that are missing.
func (wf *Workflow) FileRoot(secrets map[string]any) (*FileRoot, error) {
	given, err := tea.ValuePayload(wf.spec.Settings[fileroot.SettingsKey]).JSON()
	if err == nil && expr.IsTemplate(string(given)) { // without its secrets, it is another directory
		err = wf.graph.MissingSecrets(secrets).Err()
	}
	if err != nil {
		return nil, fmt.Errorf("settings.file: %w", err)
	}
	r, err := wf.resolve(secrets)
	if err != nil {
		return nil, err
	}
	raw, err := tea.ValuePayload(r.settings[fileroot.SettingsKey]).JSON()
	if err != nil {
		return nil, fmt.Errorf("settings.file: %w", err)
	}
	files, err := fileroot.OpenLazily(tea.Settings{fileroot.SettingsKey: raw}, "")
	return &FileRoot{files}, err
}

// Stat returns information about a file. The error is a [*tea.Error]: not_found for a file that does
// not exist, permission_denied for one outside of the file root.
func (f *FileRoot) Stat(file string) (fs.FileInfo, error) {
	root, name, err := f.files.Find(file, fileroot.ReadAccess)
	if err != nil {
		return nil, err
	}
	return root.Stat(name)
}

// Read returns the content of a file of at most limit bytes, or settings.file.max_bytes if
// limit is 0. The error for a larger file is resource_exhausted; others are those of Stat.
func (f *FileRoot) Read(file string, limit int64) ([]byte, error) {
	root, name, err := f.files.Find(file, fileroot.ReadAccess)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = f.files.MaxBytes
	}
	return root.ReadFile(name, limit)
}

// Close releases the directories.
func (f *FileRoot) Close() error { return f.files.Close() }
