package agentbuild

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// own is the module of tea; its bundles are modules below plugins/.
const own = "github.com/the-edge-agent/tea"

// Bundle is one bundle to link in. The package exports a function Bundle without
// parameters that returns a tea.Bundle.
type Bundle struct {
	// Package is the import path, and Module the path of its module.
	Package, Module string
	// Version of the module; "" for the version of tea, or for a directory.
	Version string
	// Dir is the module's directory on this machine; "" if it is downloaded.
	Dir string
	// Tags are the build tags in brackets.
	Tags []string
}

var (
	bundleForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([^\[\]]+?)(?:\[([a-z0-9_]+(?:,[a-z0-9_]+)*)\])?$`)
	})
	ownName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*$`) })
)

// ParseBundles reads a list such as "llm,memory[lite],./mine,example.com/x@v1.2.0".
// The error names the entry that is not valid.
func ParseBundles(list string) ([]Bundle, error) {
	var bundles []Bundle
	for _, entry := range splitList(list) {
		form := bundleForm().FindStringSubmatch(entry)
		if form == nil {
			return nil, fmt.Errorf("bundle %q is not valid: expected NAME, ./DIRECTORY or MODULE@VERSION, each with optional [TAG,...]", entry)
		}
		b, err := find(form[1])
		if err != nil {
			return nil, err
		}
		if form[2] != "" {
			b.Tags = strings.Split(form[2], ",")
		}
		for _, other := range bundles {
			if other.Package == b.Package {
				return nil, fmt.Errorf("bundle %q appears twice", entry)
			}
		}
		bundles = append(bundles, b)
	}
	return bundles, nil
}

// splitList splits at the commas outside of brackets.
func splitList(list string) []string {
	depth := 0
	var entries []string
	for field := range strings.FieldsFuncSeq(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ',' && depth == 0
	}) {
		entries = append(entries, strings.TrimSpace(field))
	}
	return entries
}

func find(name string) (Bundle, error) {
	switch {
	case strings.HasPrefix(name, ".") || filepath.IsAbs(name):
		return inDirectory(name)
	case ownName().MatchString(name):
		return Bundle{Package: own + "/plugins/" + name, Module: own + "/plugins/" + name}, nil
	}
	path, version, _ := strings.Cut(name, "@")
	if err := module.CheckPath(path); err != nil {
		return Bundle{}, fmt.Errorf("bundle %q is not valid: %w; a directory begins with ./", name, err)
	}
	return Bundle{Package: path, Module: path, Version: version}, nil
}

// inDirectory finds the module that a directory belongs to.
func inDirectory(name string) (Bundle, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return Bundle{}, err
	}
	for root := dir; ; root = filepath.Dir(root) {
		file := filepath.Join(root, "go.mod")
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && root != filepath.Dir(root) {
			continue
		}
		if err != nil {
			return Bundle{}, fmt.Errorf("bundle %s: there is no Go module at %s or above", name, dir)
		}
		path := modfile.ModulePath(data)
		if path == "" {
			return Bundle{}, fmt.Errorf("bundle %s: %s has no module line", name, file)
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return Bundle{}, err
		}
		b := Bundle{Package: path, Module: path, Dir: root}
		if rel != "." {
			b.Package += "/" + filepath.ToSlash(rel)
		}
		return b, nil
	}
}
