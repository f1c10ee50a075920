package catalog

import (
	"context"
	"sort"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Compare selects the two lists of files to compare. Without Files these are the
// snapshot Since (default the last one, or no files if there is none) and the
// snapshot Until (default the current files). With Files they are the snapshot
// Since (default the current files) and Files.
type Compare struct {
	Since, Until string
	Files        []FileRef
}

// Difference is the result of a comparison. The lists are in the order of paths.
type Difference struct {
	// From and To are snapshots; empty = the current or given files.
	From, To                string
	Added, Changed, Removed []FileRef
	Unchanged               int
}

// ChangedFiles compares the files of a table at two times.
func (c *Catalog) ChangedFiles(ctx context.Context, table string, q Compare) (Difference, error) {
	t, err := c.Table(ctx, table)
	if err != nil {
		return Difference{}, err
	}
	id := strings.ToLower(t.Name)
	if q.Files != nil {
		if q.Until != "" {
			return Difference{}, tea.Errorf(tea.ValidationError, "files are compared with one snapshot: remove until")
		}
		for _, f := range q.Files {
			if err := checkPath(f.Path); err != nil {
				return Difference{}, err
			}
		}
		return c.compare(ctx, id, q.Since, "", q.Files)
	}
	if q.Since == "" {
		last, err := c.LastSnapshot(ctx, id)
		if err != nil {
			return Difference{}, err
		}
		if last != nil {
			q.Since = last.ID
		}
	}
	after, err := c.filesAt(ctx, id, q.Until)
	if err != nil {
		return Difference{}, err
	}
	if q.Since == "" {
		return difference(nil, after, Difference{To: q.Until}), nil
	}
	return c.compare(ctx, id, q.Since, q.Until, after)
}

func (c *Catalog) compare(ctx context.Context, id, since, until string, after []FileRef) (Difference, error) {
	before, err := c.filesAt(ctx, id, since)
	if err != nil {
		return Difference{}, err
	}
	return difference(before, after, Difference{From: since, To: until}), nil
}

func (c *Catalog) filesAt(ctx context.Context, id, snapshot string) ([]FileRef, error) {
	if snapshot != "" {
		s, err := c.snapshot(ctx, id, snapshot)
		return s.Files, err
	}
	files, err := c.allFiles(ctx, id)
	return refs(files), err
}

func difference(before, after []FileRef, d Difference) Difference {
	old := make(map[string]FileRef, len(before))
	for _, f := range before {
		old[f.Path] = f
	}
	seen := make(map[string]bool, len(after))
	for _, f := range after {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		was, there := old[f.Path]
		switch {
		case !there:
			d.Added = append(d.Added, f)
		case !was.sameContent(f):
			d.Changed = append(d.Changed, f)
		default:
			d.Unchanged++
		}
	}
	for _, f := range before {
		if !seen[f.Path] {
			d.Removed = append(d.Removed, f)
		}
	}
	for _, list := range [][]FileRef{d.Added, d.Changed, d.Removed} {
		sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	}
	return d
}

// sameContent compares hashes, or sizes if there are none.
func (f FileRef) sameContent(other FileRef) bool {
	if f.ContentHash != "" || other.ContentHash != "" {
		return f.ContentHash == other.ContentHash
	}
	return f.Size == other.Size && f.Rows == other.Rows
}
