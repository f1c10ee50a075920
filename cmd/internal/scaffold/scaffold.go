package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// goProject is the project for Go. The others are in the shared files.
//
//go:embed all:templates/go
var goProject embed.FS

// fromShared are the parts of the shared files that a language's project
// contains, each with the directory in the project.
var fromShared = map[string]map[string]string{
	"go":     {"sdk/": "third_party/tea-sdk/"},
	"python": {"plugin-python/": "", "proto/": "proto/"},
	"node":   {"plugin-node/": "", "proto/": "proto/"},
	"rust":   {"plugin-rust/": "", "proto/": "proto/"},
	"proto":  {"proto/": "", "docs/": ""},
}

// Languages returns the languages for which Write has a project. The language
// "proto" is the protocol alone, for every other language.
func Languages() []string { return slices.Sorted(maps.Keys(fromShared)) }

// nameRule is the rule for namespaces: the name of the plugin is also the
// namespace of its actions.
var nameRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`) })

// CheckName returns an error if the name is not valid for a plugin in the
// language.
func CheckName(name, language string) error {
	switch {
	case !nameRule().MatchString(name):
		return fmt.Errorf("plugin name %q: expected at most 31 lower-case letters and digits, beginning with a letter; it is also the namespace of the actions", name)
	case language == "go" && (token.IsKeyword(name) || slices.Contains([]string{"main", "init", "serve"}, name)):
		return fmt.Errorf("plugin name %q: it is reserved in Go; choose another name", name)
	}
	return nil
}

// Write writes the project of a plugin into a directory, which it creates if
// needed, and returns the paths of its files. If one of the files exists, Write
// returns an error and writes nothing. After another error it removes what it has
// written.
func Write(shared Files, dir, name, language string) ([]string, error) {
	files, err := project(shared, name, language)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		target := filepath.Join(dir, filepath.FromSlash(file))
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			return nil, &fs.PathError{Op: "create", Path: target, Err: fs.ErrExist}
		}
		paths = append(paths, target)
	}
	for i, file := range slices.Sorted(maps.Keys(files)) {
		if err := write(paths[i], files[file]); err != nil {
			removeEmpty(filepath.Dir(paths[i]), dir)
			return nil, errors.Join(err, remove(paths[:i], dir))
		}
	}
	return paths, nil
}

// remove removes files, and the directories below dir that become empty.
func remove(files []string, dir string) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, os.Remove(file))
		removeEmpty(filepath.Dir(file), dir)
	}
	return errors.Join(errs...)
}

// removeEmpty removes an empty directory and its empty parents below dir.
func removeEmpty(empty, dir string) {
	for empty != filepath.Clean(dir) && os.Remove(empty) == nil {
		empty = filepath.Dir(empty)
	}
}

// write writes a new file and creates its directory, or writes nothing. A script
// is executable.
func write(target string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(string(data), "#!") {
		mode = 0o755
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(target))
	}
	return err
}

// project returns the files of a project by their slash-separated paths.
func project(shared Files, name, language string) (map[string][]byte, error) {
	if err := CheckName(name, language); err != nil {
		return nil, err
	}
	if !slices.Contains(Languages(), language) {
		return nil, fmt.Errorf("language %q: expected one of %s", language, strings.Join(Languages(), ", "))
	}
	files := map[string][]byte{}
	for from, to := range fromShared[language] {
		for _, f := range shared {
			if rest, ok := strings.CutPrefix(f.Name, from); ok {
				files[to+rest] = f.Data
			}
		}
	}
	if language == "go" {
		if err := addGoProject(files); err != nil {
			return nil, err
		}
	}
	rename := strings.NewReplacer("greeter", name, "Greeter", strings.ToUpper(name[:1])+name[1:], "GREETER", strings.ToUpper(name))
	renamed := map[string][]byte{}
	for file, data := range files {
		renamed[rename.Replace(file)] = []byte(rename.Replace(string(data)))
	}
	return renamed, nil
}

// addGoProject adds the files of the project for Go. A suffix hides them from the
// go command.
func addGoProject(files map[string][]byte) error {
	const root = "templates/go"
	return fs.WalkDir(goProject, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := goProject.ReadFile(file)
		files[strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")] = data
		return err
	})
}
