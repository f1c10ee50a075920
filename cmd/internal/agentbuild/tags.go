package agentbuild

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkTags returns an error for a build tag of a bundle that no package uses.
// Packages of the modules that the bundle imports count too.
func (p *program) checkTags(ctx context.Context, platforms []string) error {
	for _, b := range p.Bundles {
		if len(b.Tags) == 0 {
			continue
		}
		list := p.command(ctx, "list", "-mod=mod", "-deps", "-f", "{{if not .Standard}}{{.Module.Path}}\t{{.Dir}}{{end}}", b.Package)
		list.Stderr = p.Log
		out, err := list.Output()
		if err != nil {
			return &CompileError{err}
		}
		its, all := slices.Clone(extensions[b.Package].options), []string(nil)
		for line := range strings.Lines(string(out)) {
			module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
			tags, err := tagsIn(dir)
			if err != nil {
				return err
			}
			all = append(all, tags...)
			if module == b.Module {
				its = append(its, tags...)
			}
		}
		for _, tag := range b.Tags {
			if !slices.Contains(all, tag) {
				return &UsageError{fmt.Errorf("bundle %s: unknown build tag %q; %s", strings.TrimPrefix(b.Package, own+"/plugins/"), tag, describeTags(its, platforms))}
			}
		}
	}
	return nil
}

// describeTags lists the build tags and options of a bundle, except those of platforms
// and of the Go toolchain.
func describeTags(tags, platforms []string) string {
	slices.Sort(tags)
	tags = slices.DeleteFunc(slices.Compact(tags), func(tag string) bool {
		return slices.Contains(platforms, tag) || slices.Contains([]string{"cgo", "ignore", "unix", "race"}, tag) || strings.Contains(tag, ".")
	})
	return listed(tags)
}

// tagsIn returns the build tags in the Go files of a directory.
func tagsIn(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tagsOf(bufio.NewScanner(f))...)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// tagsOf returns the build tags in the constraint of a Go file.
func tagsOf(file *bufio.Scanner) []string {
	for file.Scan() {
		line := strings.TrimSpace(file.Text())
		if constraint, ok := strings.CutPrefix(line, "//go:build "); ok {
			return strings.FieldsFunc(constraint, func(r rune) bool { return strings.ContainsRune(" \t()!&|", r) })
		}
		if strings.HasPrefix(line, "package ") {
			break
		}
	}
	return nil
}
