package memory

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Memory is the bundle opened for one set of settings. Its methods are the
// actions. It is safe for concurrent use.
type Memory struct {
	folder  *folder
	folders *folders
}

// open creates a Memory. The database is opened by the first action that needs
// it, unless the settings ask for it now.
func (f *folders) open(ctx context.Context, from tea.Settings) (*Memory, error) {
	s, err := readSettings(from)
	if err != nil {
		return nil, err
	}
	folder, err := f.take(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Memory{folder: folder, folders: f}, nil
}

// writes wraps a method that changes the memory. It fails at once if the memory
// is read-only. If the disk is full, it removes the contents of deleted records
// and runs the method again.
func writes[P, R any](method func(m *Memory, ctx context.Context, req *tea.Request, p P) (R, error)) func(*Memory, context.Context, *tea.Request, P) (R, error) {
	return func(m *Memory, ctx context.Context, req *tea.Request, p P) (R, error) {
		if err := m.folder.writable(); err != nil {
			var none R
			return none, err
		}
		r, err := method(m, ctx, req, p)
		if err != nil && tea.AsError(err).Type == tea.ResourceExhausted && m.folder.sweepContents(ctx) == nil {
			r, err = method(m, ctx, req, p)
		}
		if err == nil && m.folder.wrote != nil {
			m.folder.wrote()
		}
		if err == nil && m.folder.background != nil {
			m.folder.background.changed()
		}
		return r, err
	}
}

// Close releases the folder. The last instance closes the database.
func (m *Memory) Close() error { return m.folders.release(m.folder) }
