// Package project writes a small working project. Start with [Write].
package project

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed files
var files embed.FS

// Write puts the project's files into a directory, which it makes where there
// is none, and gives their paths. A file that is there already is an error,
// and then nothing is written.
func Write(dir string) ([]string, error) {
	entries, err := files.ReadDir("files")
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("write the project: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
		}
		paths = append(paths, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write the project: %w", err)
	}
	for i, e := range entries {
		data, err := files.ReadFile("files/" + e.Name())
		if err != nil {
			return nil, err
		}
		if err := writeNew(paths[i], data); err != nil {
			return nil, fmt.Errorf("write the project: %w", err)
		}
	}
	return paths, nil
}

func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
