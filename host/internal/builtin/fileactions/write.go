package fileactions

import (
	"context"

	"github.com/the-edge-agent/tea/host/internal/builtin/fileroot"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

type writeParams struct {
	Path       string `json:"path" doc:"the file, relative to the file root, or absolute in a directory of settings.file.write"`
	Content    string `json:"content" doc:"the text, or base64 with encoding: base64"`
	Encoding   string `json:"encoding,omitempty" default:"utf-8" enum:"utf-8,base64,latin-1" doc:"encoding of the text"`
	CreateDirs bool   `json:"create_dirs,omitempty" default:"false" doc:"create missing directories"`
}

type writeResult struct {
	Success bool   `json:"success" doc:"always true"`
	Path    string `json:"path" doc:"the path parameter"`
	Bytes   int    `json:"bytes" doc:"the number of bytes written"`
}

func (i *instance) write(_ context.Context, _ *tea.Request, p writeParams) (writeResult, error) {
	root, name, data, err := i.target(p)
	if err != nil {
		return writeResult{}, err
	}
	if err := root.WriteFile(name, data, p.CreateDirs); err != nil {
		return writeResult{}, err
	}
	return writeResult{Success: true, Path: p.Path, Bytes: len(data)}, nil
}

func (i *instance) append(_ context.Context, _ *tea.Request, p writeParams) (writeResult, error) {
	root, name, data, err := i.target(p)
	if err != nil {
		return writeResult{}, err
	}
	if err := root.AppendFile(name, data, p.CreateDirs); err != nil {
		return writeResult{}, err
	}
	return writeResult{Success: true, Path: p.Path, Bytes: len(data)}, nil
}

// target returns the directory, the file in it and the bytes to write.
func (i *instance) target(p writeParams) (root *confine.Root, name string, data []byte, err error) {
	data, err = fromText(p.Content, p.Encoding)
	if err != nil {
		return nil, "", nil, err
	}
	if int64(len(data)) > i.MaxBytes {
		return nil, "", nil, tea.Errorf(tea.ResourceExhausted, "the content has %d bytes, the limit is %d (settings.file.max_bytes)", len(data), i.MaxBytes)
	}
	root, name, err = i.Find(p.Path, fileroot.WriteAccess)
	return root, name, data, err
}

type deleteParams struct {
	Path      string `json:"path" doc:"the file or empty directory, as for file.write"`
	MissingOK bool   `json:"missing_ok,omitempty" default:"false" doc:"whether a missing file is not an error"`
}

type deleteResult struct {
	Success bool   `json:"success" doc:"always true"`
	Path    string `json:"path" doc:"the path parameter"`
	Deleted bool   `json:"deleted" doc:"false if it was missing"`
}

func (i *instance) delete(_ context.Context, _ *tea.Request, p deleteParams) (deleteResult, error) {
	root, name, err := i.Find(p.Path, fileroot.WriteAccess)
	if err != nil {
		return deleteResult{}, err
	}
	err = root.Remove(name)
	if e := tea.AsError(err); e != nil {
		if e.Type == tea.NotFound && p.MissingOK {
			return deleteResult{Success: true, Path: p.Path}, nil
		}
		return deleteResult{}, err
	}
	return deleteResult{Success: true, Path: p.Path, Deleted: true}, nil
}
