// Package develop rebuilds a plugin while its author changes it. Start with
// [Open] and [Loop].
package develop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prefix begins the file name of every plugin.
const prefix = "tea-plugin-"

// Project is the source of a plugin.
type Project struct {
	// Dir is the absolute path of the project.
	Dir string
	// Name is the name of the plugin.
	Name string
	// compile writes the program to a file; nil if the project contains the
	// program itself, as in an interpreted language.
	compile func(ctx context.Context, file string) error
}

// Open determines how the project in a directory is built: with the go command,
// with cargo, or not at all if it contains an executable tea-plugin-NAME.
func Open(dir string) (*Project, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &Project{Dir: dir}
	switch {
	case exists(dir, "go.mod"):
		program, err := only(dir, "cmd/"+prefix+"*")
		if err != nil {
			return nil, err
		}
		p.Name = strings.TrimPrefix(filepath.Base(program), prefix)
		p.compile = func(ctx context.Context, file string) error {
			return p.command(ctx, "go", "build", "-o", file, "./cmd/"+prefix+p.Name)
		}
	case exists(dir, "Cargo.toml"):
		p.Name = strings.TrimPrefix(filepath.Base(dir), prefix)
		if err := p.readCargo(); err != nil {
			return nil, err
		}
		p.compile = func(ctx context.Context, file string) error {
			if err := p.command(ctx, "cargo", "build", "--quiet"); err != nil {
				return err
			}
			return copyProgram(filepath.Join(dir, "target", "debug", prefix+p.Name), file)
		}
	default:
		program, err := only(dir, prefix+"*")
		if err != nil {
			return nil, err
		}
		p.Name = strings.TrimPrefix(filepath.Base(program), prefix)
	}
	return p, nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// only returns the single file that matches a pattern.
func only(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	found = slices.DeleteFunc(found, func(file string) bool { return filepath.Ext(file) != "" })
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s is not the project of a plugin: it has no %sNAME; `tea plugin new` writes a project", dir, strings.TrimSuffix(pattern, "*"))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s has more than one %sNAME", dir, strings.TrimSuffix(pattern, "*"))
}

// readCargo reads the name of the package from Cargo.toml. The program has the same
// name.
func (p *Project) readCargo() error {
	data, err := os.ReadFile(filepath.Join(p.Dir, "Cargo.toml"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		key, text, ok := strings.Cut(line, "=")
		name, isPlugin := strings.CutPrefix(strings.Trim(strings.TrimSpace(text), `"'`), prefix)
		if ok && isPlugin && strings.TrimSpace(key) == "name" {
			p.Name = name
			return nil
		}
	}
	return fmt.Errorf("%s is not the project of a plugin: Cargo.toml names no %sNAME", p.Dir, prefix)
}

// command runs a command in the project. The error contains its output.
func (p *Project) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = p.Dir, time.Second // compilers can outlive the command
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w; building this project needs it", err)
	case err != nil && len(out) > 0:
		return errors.New(strings.TrimSpace(string(out)))
	}
	return err
}

func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// program returns the program of an interpreted project.
func (p *Project) program() string { return filepath.Join(p.Dir, prefix+p.Name) }

// maxFiles bounds the number of watched files.
const maxFiles = 20000

// files are the files of a project by their paths.
type files map[string]fs.FileInfo

// changed returns the files that differ from before, including new and removed
// ones.
func (f files) changed(before files) []string {
	var changed []string
	for file, info := range f {
		old := before[file]
		if old == nil || !os.SameFile(old, info) || old.Size() != info.Size() || old.Mode() != info.Mode() || !old.ModTime().Equal(info.ModTime()) {
			changed = append(changed, file)
		}
	}
	for file := range before {
		if f[file] == nil {
			changed = append(changed, file)
		}
	}
	return changed
}

// files returns the project's files, except build output, downloads, hidden
// files, and the directory for programs.
func (p *Project) files(into string) (files, error) {
	all := files{}
	err := filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil
		case err != nil:
			return err
		case path != p.Dir && (strings.HasPrefix(entry.Name(), ".") || path == into || entry.IsDir() && generated(entry.Name())):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil // removed in the meantime
		}
		if all[path] = info; len(all) > maxFiles {
			return fmt.Errorf("%s has more than %d files; move the plugin to a separate directory", p.Dir, maxFiles)
		}
		return nil
	})
	return all, err
}

func generated(dir string) bool {
	return dir == "node_modules" || dir == "target" || dir == "__pycache__"
}
