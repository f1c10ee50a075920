package fileactions

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

type readParams struct {
	Path     string `json:"path" doc:"the file, relative to the file root"`
	Encoding string `json:"encoding,omitempty" default:"utf-8" enum:"utf-8,base64,latin-1" doc:"encoding of the file"`
	Parse    string `json:"parse,omitempty" enum:"json,yaml,csv" doc:"parse the text as a value; csv needs a header and returns objects. Default: content is the text"`
}

type readResult struct {
	Success bool  `json:"success" doc:"always true"`
	Content any   `json:"content" doc:"the text, or the value if parse is set"`
	Size    int64 `json:"size" doc:"the size of the file in bytes"`
}

func (i *instance) read(_ context.Context, _ *tea.Request, p readParams) (readResult, error) {
	root, err := i.Root()
	if err != nil {
		return readResult{}, err
	}
	data, err := root.ReadFile(p.Path, i.MaxBytes)
	if err != nil {
		return readResult{}, err
	}
	text, err := toText(data, p.Encoding)
	if err != nil {
		return readResult{}, err
	}
	var content any = text
	if p.Parse != "" {
		if p.Encoding == "base64" {
			return readResult{}, tea.Errorf(tea.ValidationError, "parse needs text: remove encoding: base64")
		}
		if content, err = parse(p.Path, text, p.Parse); err != nil {
			return readResult{}, err
		}
	}
	return readResult{Success: true, Content: content, Size: int64(len(data))}, nil
}

type existsParams struct {
	Path string `json:"path" doc:"the file or directory, relative to the file root"`
}

type existsResult struct {
	Success bool   `json:"success" doc:"always true"`
	Exists  bool   `json:"exists" doc:"whether it exists"`
	Type    string `json:"type,omitempty" enum:"file,directory,symlink,other" doc:"its type, if it exists"`
	Size    int64  `json:"size,omitempty" doc:"the size of a file in bytes"`
}

func (i *instance) exists(_ context.Context, _ *tea.Request, p existsParams) (existsResult, error) {
	root, err := i.Root()
	if err != nil {
		return existsResult{}, err
	}
	info, err := root.Stat(p.Path)
	if e := tea.AsError(err); e != nil {
		if e.Type == tea.NotFound || errors.Is(err, syscall.ENOTDIR) { // a file has no entries
			return existsResult{Success: true}, nil
		}
		return existsResult{}, err
	}
	result := existsResult{Success: true, Exists: true, Type: typeOf(info.Mode())}
	if info.Mode().IsRegular() {
		result.Size = info.Size()
	}
	return result, nil
}

type listParams struct {
	Path      string `json:"path,omitempty" default:"." doc:"the directory, relative to the file root"`
	Pattern   string `json:"pattern,omitempty" doc:"a pattern for names, such as *.csv"`
	Recursive bool   `json:"recursive,omitempty" default:"false" doc:"also list subdirectories"`
}

type listResult struct {
	Success bool    `json:"success" doc:"always true"`
	Entries []entry `json:"entries" doc:"the entries, sorted by path"`
	Count   int     `json:"count" doc:"the number of entries"`
}

type entry struct {
	Path     string    `json:"path" doc:"relative to the file root, as for the other file actions"`
	Name     string    `json:"name" doc:"the last part of the path"`
	Type     string    `json:"type" enum:"file,directory,symlink,other" doc:"its type; symbolic links are not followed"`
	Size     int64     `json:"size" doc:"the size of a file in bytes"`
	Modified time.Time `json:"modified" doc:"the time of the last change"`
}

// maxEntries bounds a listing.
const maxEntries = 10_000

func (i *instance) list(ctx context.Context, _ *tea.Request, p listParams) (listResult, error) {
	if _, err := path.Match(p.Pattern, ""); err != nil {
		return listResult{}, tea.Errorf(tea.ValidationError, "pattern %q: %w", p.Pattern, err)
	}
	if strings.Contains(p.Pattern, "/") {
		return listResult{}, tea.Errorf(tea.ValidationError, "pattern %q applies to names and cannot contain /; set path, and recursive: true for subdirectories", p.Pattern)
	}
	root, err := i.Root()
	if err != nil {
		return listResult{}, err
	}
	found, err := root.List(ctx, p.Path, p.Recursive, maxEntries)
	if err != nil {
		return listResult{}, err
	}
	entries := []entry{}
	for _, f := range found {
		if matches, _ := path.Match(p.Pattern, f.Info.Name()); p.Pattern != "" && !matches {
			continue
		}
		e := entry{Path: f.Path, Name: f.Info.Name(), Type: typeOf(f.Info.Mode()), Modified: f.Info.ModTime().UTC()}
		if f.Info.Mode().IsRegular() {
			e.Size = f.Info.Size()
		}
		entries = append(entries, e)
	}
	return listResult{Success: true, Entries: entries, Count: len(entries)}, nil
}

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	}
	return "other"
}
