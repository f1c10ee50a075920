package agentbuild

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// The forms are compiled when they are used: most runs of tea build nothing.
const (
	bundleForm = `^([^\[\]]+?)(?:\[([a-z0-9_]+(?:,[a-z0-9_]+)*)\])?$`
	ownName    = `^[a-z][a-z0-9]*$`
	moduleForm = `^([A-Za-z0-9-]+\.[A-Za-z0-9._~/-]+)(?:@(v[0-9A-Za-z.+-]+))?$`
	moduleLine = `(?m)^module\s+"?([A-Za-z0-9._~/-]+)"?\s*(?://.*)?$`
)

// ParseBundles reads a list such as "llm,memory[lite],./mine,example.com/x@v1.2.0".
// The error names the entry that is not valid.
func ParseBundles(list string) ([]Bundle, error) {
	entryForm := regexp.MustCompile(bundleForm)
	var bundles []Bundle
	for _, entry := range splitList(list) {
		form := entryForm.FindStringSubmatch(entry)
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
	case regexp.MustCompile(ownName).MatchString(name):
		return Bundle{Package: own + "/plugins/" + name, Module: own + "/plugins/" + name}, nil
	}
	form := regexp.MustCompile(moduleForm).FindStringSubmatch(name)
	if form == nil {
		return Bundle{}, fmt.Errorf("bundle %q is not a module such as example.com/mine@v1.2.0; a directory begins with ./", name)
	}
	return Bundle{Package: form[1], Module: form[1], Version: form[2]}, nil
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
		line := regexp.MustCompile(moduleLine).FindSubmatch(data)
		if line == nil {
			return Bundle{}, fmt.Errorf("bundle %s: %s has no module line", name, file)
		}
		path := string(line[1])
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
