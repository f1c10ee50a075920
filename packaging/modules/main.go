// Command modules writes the modules of the current commit as a directory that
// GOPROXY can name, as file:///DIR.
//
//	go run ./packaging/modules VERSION DIR
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: modules VERSION DIR")
		os.Exit(2)
	}
	if err := write("v"+strings.TrimPrefix(os.Args[1], "v"), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

// write writes each module of go.work that is released: those below the path of
// the root module.
func write(version, dir string) error {
	data, err := os.ReadFile("go.work")
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	root := ""
	for _, use := range work.Use {
		mod, err := os.ReadFile(filepath.Join(use.Path, "go.mod"))
		if err != nil {
			return err
		}
		path := modfile.ModulePath(mod)
		if use.Path == "." {
			root = path
		}
		if path != root && !strings.HasPrefix(path, root+"/") {
			continue // an example
		}
		if err := writeModule(module.Version{Path: path, Version: version}, use.Path, mod, dir); err != nil {
			return fmt.Errorf("module %s: %w", path, err)
		}
	}
	return nil
}

// writeModule writes the files of the protocol that GOPROXY describes
// (https://go.dev/ref/mod#goproxy-protocol).
func writeModule(m module.Version, subdir string, mod []byte, dir string) (err error) {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	versions := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(m.Version + "\n"), m.Version + ".info": info, m.Version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(versions, name), content, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(versions, m.Version+".zip"))
	if err != nil {
		return err
	}
	if subdir == "." {
		subdir = ""
	}
	return errors.Join(zip.CreateFromVCS(f, m, ".", "HEAD", strings.TrimPrefix(subdir, "./")), f.Close())
}
