package scaffold

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed" // for packed
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// packed is a compressed text archive of [Files]. The file in the repository is
// empty: scripts/build compiles a current one in its place (go build -overlay),
// so that none is committed or left in the tree, where it would become stale.
//
//go:embed shared.txtar.gz
var packed []byte

// Files are the files of the repository that projects contain: the SDK for Go,
// the example plugins in other languages and the protocol.
type Files []txtar.File

// ErrNotPacked reports that the program does not contain the files.
var ErrNotPacked = errors.New("this tea was built without the files of new projects")

// Packed returns the files in the program. The error is [ErrNotPacked] if there
// are none.
func Packed() (Files, error) {
	if len(packed) == 0 {
		return nil, ErrNotPacked
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("read the embedded files: %w", err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("read the embedded files: %w", err)
	}
	return txtar.Parse(text).Files, nil
}

// Pack writes the archive of the files.
func (files Files) Pack(w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(txtar.Format(&txtar.Archive{Files: files}))
	return errors.Join(err, z.Close())
}

// Released returns the files of a released version from Go's module cache, where
// `go install` has stored the modules of the program. Missing modules are
// downloaded.
func Released(ctx context.Context, version string) (Files, error) {
	const root = "github.com/the-edge-agent/tea"
	cache, err := goCommand(ctx, "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	dir := func(module string) string {
		return filepath.Join(strings.TrimSpace(cache), filepath.FromSlash(module)+"@v"+version)
	}
	for _, module := range []string{root, root + "/sdk"} {
		if _, err := os.Stat(dir(module)); err == nil {
			continue
		}
		if _, err := goCommand(ctx, "mod", "download", module+"@v"+version); err != nil {
			return nil, err
		}
	}
	return Read(dir(root), dir(root+"/sdk"))
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// Read returns the files of a checkout of tea, or of the directories of its
// modules.
func Read(root, sdk string) (Files, error) {
	files, err := readTree(nil, sdk, "sdk/", isSDK)
	files = slices.DeleteFunc(files, func(f txtar.File) bool {
		// For the plugins of tea; no package of the SDK imports them.
		return strings.HasPrefix(f.Name, "sdk/x/httpapi/") || strings.HasPrefix(f.Name, "sdk/x/words/")
	})
	for _, example := range []string{"plugin-node", "plugin-python", "plugin-rust"} {
		if err == nil {
			files, err = readTree(files, filepath.Join(root, "examples", example), example+"/", isProject)
		}
	}
	for _, f := range []struct{ name, file string }{
		{"sdk/LICENSE", "LICENSE"},
		{"proto/plugin.proto", "proto/tea/plugin/v1/plugin.proto"},
		{"proto/go_plugin_broker.proto", "proto/go-plugin/go_plugin_broker.proto"},
		{"docs/README.md", "docs/guide/plugin-protocol.md"},
	} {
		var data []byte
		if err == nil {
			data, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(f.file)))
		}
		if f.name == "docs/README.md" {
			data = []byte(fromGuide.Replace(string(data)))
		}
		files = append(files, txtar.File{Name: f.name, Data: data})
	}
	return files, err
}

// fromGuide adapts the links of a page in docs/guide to its place next to the
// protocol.
var fromGuide = strings.NewReplacer(
	"](../../proto/tea/plugin/v1/", "](",
	"](../../proto/go-plugin/", "](",
	"](../../", "](https://github.com/the-edge-agent/tea/blob/main/",
	"](writing-plugins.md", "](https://github.com/the-edge-agent/tea/blob/main/docs/guide/writing-plugins.md",
)

// readTree appends the files below a directory that used selects, with a prefix
// before their names.
func readTree(files Files, dir, prefix string, used func(string) bool) (Files, error) {
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && generated[entry.Name()]:
			return fs.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(file, "_test.go") || !used(entry.Name()):
			return nil
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		files = append(files, txtar.File{Name: prefix + filepath.ToSlash(name), Data: data})
		return err
	})
	return files, err
}

// generated are the directories that the tools of a language write, and the
// protocol, which is added to each project separately.
var generated = map[string]bool{
	"bin": true, "dist": true, "node_modules": true, "proto": true, "target": true,
	".venv": true, "__pycache__": true, ".pytest_cache": true,
}

func isSDK(name string) bool { return name == "go.mod" || strings.HasSuffix(name, ".go") }

func isProject(string) bool { return true }
