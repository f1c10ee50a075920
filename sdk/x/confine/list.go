package confine

import (
	"context"
	"errors"
	"io/fs"
	"path"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// Entry is one file or directory of a listing.
type Entry struct {
	// Path is relative to the root. Every other method accepts it.
	Path string
	Info fs.FileInfo
}

// List returns the entries of a directory in the order of their paths and, if recursive
// is true, those of all directories below it. Symbolic links are listed, not followed;
// incomplete files are omitted. More than limit entries are a validation_error.
func (r *Root) List(ctx context.Context, given string, recursive bool, limit int) ([]Entry, error) {
	name, err := Clean(given)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Stat(name)
	if err != nil {
		return nil, r.failure("list", given, err)
	}
	if !info.IsDir() {
		return nil, r.failure("list", given, tea.Errorf(tea.ValidationError, "it is not a directory"))
	}
	var entries []Entry
	err = fs.WalkDir(r.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return tea.AsError(context.Cause(ctx))
		case errors.Is(err, fs.ErrNotExist) && p != name:
			return nil // deleted in the meantime
		case err != nil:
			return err
		case p == name:
			return nil
		}
		if atomicfile.IsTemporary(d.Name()) {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(entries) == limit {
			return tea.Errorf(tea.ValidationError, "it has more than %d entries; list a smaller directory", limit)
		}
		entries = append(entries, Entry{Path: path.Clean(p), Info: info})
		if d.IsDir() && !recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, r.failure("list", given, err)
	}
	return entries, nil
}
