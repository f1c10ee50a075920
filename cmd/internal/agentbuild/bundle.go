package agentbuild

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// own is the module path of tea; its bundles are modules below plugins/.
const own = "github.com/the-edge-agent/tea"

// Bundle is one bundle to link in. The package exports a function Bundle without
// parameters that returns a tea.Bundle.
type Bundle struct {
	// Package is the import path, and Module the path of its module.
	Package, Module string
	// Version is the module's version; "" for the version of tea, or for a directory.
	Version string
	// Dir is the module's directory on this machine; "" if it is downloaded.
	Dir string
	// Tags are the build tags in brackets.
	Tags []string
	// Options are the words in brackets that name packages of the bundle's
	// extension; see extensions.
	Options []string
}

// extensions maps a bundle to the module with its optional parts, which a program
// links only if it names them. Each word in options is a package of the module; it
// exports a function Option, whose result is an argument of the bundle's function
// Bundle.
var extensions = map[string]struct {
	module  string
	options []string
}{
	own + "/plugins/graph":  {own + "/plugins/graph/cloud", []string{"azure", "gcs", "s3"}},
	own + "/plugins/memory": {own + "/plugins/memory/cloud", []string{"azure", "bucket", "d1", "firestore", "gcs", "libsql", "objects", "postgres", "s3"}},
}

// setWords splits the words in brackets into options and build tags.
func (b *Bundle) setWords(words []string) {
	for _, word := range words {
		if slices.Contains(extensions[b.Package].options, word) {
			b.Options = append(b.Options, word)
			continue
		}
		b.Tags = append(b.Tags, word)
	}
	slices.Sort(b.Options)
	b.Options = slices.Compact(b.Options)
}

// extension returns the path of the module with the options, "" if there are none.
func (b *Bundle) extension() string {
	if len(b.Options) == 0 {
		return ""
	}
	return extensions[b.Package].module
}

// These are compiled on first use: most runs of tea build nothing.
const (
	bundleForm = `^([^\[\]]+?)(?:\[([a-z0-9_]+(?:,[a-z0-9_]+)*)\])?$`
	ownName    = `^[a-z][a-z0-9]*$`
	moduleForm = `^([A-Za-z0-9-]+\.[A-Za-z0-9._~/-]+)(?:@(v[0-9A-Za-z.+-]+))?$`
	moduleLine = `(?m)^module\s+"?([A-Za-z0-9._~/-]+)"?\s*(?://.*)?$`
)

// ParseBundles reads a list such as "llm,memory[lite],./mine,example.com/x@v1.2.0".
// The error names the invalid entry.
func ParseBundles(list string) ([]Bundle, error) {
	entryForm := regexp.MustCompile(bundleForm)
	var bundles []Bundle
	for _, entry := range splitList(list) {
		form := entryForm.FindStringSubmatch(entry)
		if form == nil {
			return nil, fmt.Errorf("bundle %q is not valid: expected NAME, ./DIRECTORY or MODULE@VERSION, each with optional [OPTION,...]", entry)
		}
		b, err := find(form[1])
		if err != nil {
			return nil, err
		}
		if form[2] != "" {
			b.setWords(strings.Split(form[2], ","))
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
