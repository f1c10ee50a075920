package fileactions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	tea "github.com/the-edge-agent/tea/sdk"
)

type readParams struct {
	Path     string `json:"path" doc:"the file, relative to the file root, or absolute in a directory of settings.file.read or write"`
	Encoding string `json:"encoding,omitempty" default:"utf-8" enum:"utf-8,base64,latin-1" doc:"encoding of the file"`
	Parse    string `json:"parse,omitempty" enum:"json,yaml,csv" doc:"parse the text as a value; csv needs a header and returns objects. Default: content is the text"`
}

type readResult struct {
	Success bool  `json:"success" doc:"always true"`
	Content any   `json:"content" doc:"the text, or the value if parse is set"`
	Size    int64 `json:"size" doc:"the size of the file in bytes"`
}

func (i *instance) read(_ context.Context, _ *tea.Request, p readParams) (readResult, error) {
	root, name, err := i.Find(p.Path, fileroot.ReadAccess)
	if err != nil {
		return readResult{}, err
	}
	data, err := root.ReadFile(name, i.MaxBytes)
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
	Path string `json:"path" doc:"the file or directory, as for file.read"`
}

type existsResult struct {
	Success bool   `json:"success" doc:"always true"`
	Exists  bool   `json:"exists" doc:"whether it exists"`
	Type    string `json:"type,omitempty" enum:"file,directory,symlink,other" doc:"its type, if it exists"`
	Size    int64  `json:"size,omitempty" doc:"the size of a file in bytes"`
}

func (i *instance) exists(_ context.Context, _ *tea.Request, p existsParams) (existsResult, error) {
	root, name, err := i.Find(p.Path, fileroot.ReadAccess)
	if err != nil {
		return existsResult{}, err
	}
	info, err := root.Stat(name)
	if e := tea.AsError(err); e != nil {
		if e.Type == tea.NotFound || errors.Is(err, syscall.ENOTDIR) { // the path leads through a file
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
	Path      string `json:"path,omitempty" default:"." doc:"the directory, as for file.read"`
	Pattern   string `json:"pattern,omitempty" doc:"a pattern for names, such as *.csv or *.{md,txt}"`
	Recursive bool   `json:"recursive,omitempty" default:"false" doc:"also list subdirectories"`
}

type listResult struct {
	Success bool    `json:"success" doc:"always true"`
	Entries []entry `json:"entries" doc:"the entries, sorted by path"`
	Count   int     `json:"count" doc:"the number of entries"`
}

type entry struct {
	Path     string    `json:"path" doc:"relative to the file root, or absolute if the listed path was; as for the other file actions"`
	Name     string    `json:"name" doc:"the last part of the path"`
	Type     string    `json:"type" enum:"file,directory,symlink,other" doc:"its type; symbolic links are not followed"`
	Size     int64     `json:"size" doc:"the size of a file in bytes"`
	Modified time.Time `json:"modified" doc:"the time of the last change"`
}

// maxEntries bounds a listing.
const maxEntries = 10_000

func (i *instance) list(ctx context.Context, req *tea.Request, p listParams) (listResult, error) {
	patterns, err := alternatives(p.Pattern)
	if err != nil {
		return listResult{}, err
	}
	if strings.Contains(p.Pattern, "/") {
		return listResult{}, tea.Errorf(tea.ValidationError, "pattern %q applies to names and cannot contain /; set path, and recursive: true for subdirectories", p.Pattern)
	}
	root, name, err := i.Find(p.Path, fileroot.ReadAccess)
	if err != nil {
		return listResult{}, err
	}
	found, err := root.List(ctx, name, p.Recursive, maxEntries)
	if err != nil {
		return listResult{}, err
	}
	entries := []entry{}
	for _, f := range found {
		matches := func(pattern string) bool {
			ok, _ := path.Match(pattern, f.Info.Name())
			return ok
		}
		if p.Pattern != "" && !slices.ContainsFunc(patterns, matches) {
			continue
		}
		if path.IsAbs(p.Path) {
			f.Path = path.Join(p.Path, strings.TrimPrefix(f.Path, path.Clean(name)+"/"))
		}
		e := entry{Path: f.Path, Name: f.Info.Name(), Type: typeOf(f.Info.Mode()), Modified: f.Info.ModTime().UTC()}
		if f.Info.Mode().IsRegular() {
			e.Size = f.Info.Size()
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 && p.Pattern != "" {
		req.Host.Log(ctx, slog.LevelInfo, fmt.Sprintf("file.list: none of the %d entries of %s matches %s", len(found), p.Path, p.Pattern), nil)
	}
	return listResult{Success: true, Entries: entries, Count: len(entries)}, nil
}

// maxAlternatives limits the number of patterns that braces expand to.
const maxAlternatives = 100

// alternatives expands the braces of a pattern: *.{md,txt} becomes *.md and *.txt.
func alternatives(pattern string) ([]string, error) {
	done, open := []string{}, []string{pattern}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		before, rest, found := strings.Cut(next, "{")
		inner, after, closed := strings.Cut(rest, "}")
		switch {
		case !found:
			if _, err := path.Match(next, ""); err != nil {
				return nil, tea.Errorf(tea.ValidationError, "pattern %q: %w", pattern, err)
			}
			done = append(done, next)
		case !closed || strings.Contains(inner, "{"):
			return nil, tea.Errorf(tea.ValidationError, "pattern %q: braces must be closed and cannot be nested; ? matches one that is part of a name", pattern)
		default:
			for _, choice := range strings.Split(inner, ",") {
				open = append(open, before+choice+after)
			}
		}
		if len(done)+len(open) > maxAlternatives {
			return nil, tea.Errorf(tea.ValidationError, "pattern %q expands to more than %d patterns", pattern, maxAlternatives)
		}
	}
	return done, nil
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
