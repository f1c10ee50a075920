// Package project writes a small working project. Start with [Write].
package project

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

//go:embed files
var files embed.FS

// schemaFile is the file that the first line of the project's workflow refers to.
const schemaFile = "tea.schema.json"

// Write writes the project's files into a directory, which it creates if
// needed, and returns their paths. schema is the JSON Schema of workflow files,
// for editors. If one of the files exists, Write returns an error and writes
// nothing.
func Write(dir string, schema []byte) ([]string, error) {
	entries, err := files.ReadDir("files")
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{schemaFile: append(schema, '\n')}
	for _, e := range entries {
		if contents[e.Name()], err = files.ReadFile("files/" + e.Name()); err != nil {
			return nil, err
		}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("write the project: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
		}
		paths = append(paths, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write the project: %w", err)
	}
	for _, path := range paths {
		if err := writeNew(path, contents[filepath.Base(path)]); err != nil {
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
