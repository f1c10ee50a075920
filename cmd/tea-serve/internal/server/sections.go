package server

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// serveFile holds the serve sections that are not in workflow files.
const serveFile = "serve.yaml"

// sections are the serve sections of serve.yaml. They are safe for concurrent use.
type sections struct {
	file   string
	report func(string)

	mu sync.Mutex
	// problem is the last logged problem of the file.
	problem string
}

// errSection reports a workflow whose section has mistakes. They were logged.
var errSection = errors.New("its section in " + serveFile + " has mistakes")

// read returns the sections by workflow name, and the mistakes in the file. It logs
// new mistakes. A missing file has no sections.
func (s *sections) read() (map[string]*host.ServeConfig, host.Diagnostics) {
	list, err := host.LoadServe(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var diags host.Diagnostics
	problem := ""
	switch {
	case errors.As(err, &diags):
		lines := make([]string, len(diags))
		for i, d := range diags {
			lines[i] = d.Error()
		}
		problem = strings.Join(lines, "\n")
	case err != nil:
		problem = err.Error()
		diags.Errorf(codeValue, diag.Pos{File: s.file}, "", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem != s.problem && problem != "" {
		s.report(problem)
	}
	s.problem = problem
	return list, diags
}

// of returns the serve section of a workflow, from its file or from serve.yaml. A
// mistake in another workflow's section is not an error.
func (s *sections) of(wf *host.Workflow) (*host.Serving, error) {
	list, diags := s.read()
	section := list[wf.Name()]
	switch own := sectionPath(wf.Name()); {
	case section != nil && wf.HasServing():
		var conflict host.Diagnostics
		conflict.Errorf(codeConflict, section.Pos, "remove one of them", "the workflow %q has a section serve in its own file", wf.Name())
		return nil, conflict
	case wf.HasServing():
		return wf.Serving(), nil
	case slices.ContainsFunc(diags, func(d diag.Diagnostic) bool {
		return within(d.Path, own) || d.Path == "workflows" || !within(d.Path, "workflows")
	}):
		return nil, errSection
	case section == nil:
		return wf.Serving(), nil
	}
	return wf.ServingBy(section)
}

// sectionPath returns the path of the section of a workflow.
func sectionPath(workflow string) string { return diag.Key("workflows", workflow) }

// within reports whether a path is element or below it.
func within(path, element string) bool {
	rest, ok := strings.CutPrefix(path, element)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// problems returns the problems of the file, by its path.
func (s *sections) problems() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == "" {
		return nil
	}
	return map[string]string{s.file: s.problem}
}

// Problems returns the problems of files, by path.
func (c *catalog) Problems() map[string]string {
	all := c.Dir.Problems()
	maps.Copy(all, c.sections.problems())
	return all
}

// sharedProblems returns the mistakes that belong to no single workflow: sections and triggers
// that refer to unknown workflows, and directories to watch that do not exist.
func (c *catalog) sharedProblems() (diags host.Diagnostics) {
	known := c.known()
	list, _ := c.sections.read() // which logs mistakes
	for name, section := range list {
		if !slices.Contains(known, name) {
			diags.Errorf(codeValue, section.Pos, diag.Suggest(name, known), "no workflow of the directory has the name %q", name)
		}
	}
	for _, t := range c.triggers(host.TriggerPoll, host.TriggerStream) {
		if on := t.Values.OnFailure; on != nil && on.Workflow != "" && !slices.Contains(known, on.Workflow) {
			diags.Errorf(codeValue, on.Pos, diag.Suggest(on.Workflow, known), "on_failure: no workflow of the directory has the name %q", on.Workflow)
		}
	}
	for _, t := range c.triggers(host.TriggerOnRun, host.TriggerWatch) {
		if t.Kind == host.TriggerOnRun && !slices.Contains(known, t.OnRun.Workflow) {
			diags.Errorf(codeValue, t.Pos, diag.Suggest(t.OnRun.Workflow, known), "on_run: no workflow of the directory has the name %q", t.OnRun.Workflow)
		}
		if t.Kind != host.TriggerWatch {
			continue
		}
		if info, err := os.Stat(t.dir); err != nil || !info.IsDir() {
			diags.Errorf(codeValue, t.Pos, "make it", "watch: there is no directory %s", t.dir)
		}
	}
	diags.Sort()
	return diags
}

// known returns the names of the workflows, including invalid ones. A file that
// cannot be read counts as a workflow named like the file.
func (c *catalog) known() []string {
	known := c.names()
	for file := range c.Dir.Problems() {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		c.mu.Lock()
		if loaded := c.loadedNames[file]; loaded != "" {
			name = loaded
		}
		c.mu.Unlock()
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return known
}

// warnSharedProblems logs new mistakes that belong to no single workflow, and returns the
// number of all of them.
func (s *server) warnSharedProblems() int {
	diags := s.catalog.sharedProblems()
	logged := map[string]bool{}
	for _, d := range diags {
		text := d.Error()
		if logged[text] = true; !s.sharedProblems[text] {
			s.svc.Log.Warn(text)
		}
	}
	s.sharedProblems = logged
	return len(diags)
}

// countProblems counts the files with mistakes, and the mistakes that belong to no single workflow.
func (s *server) countProblems() (files, shared int) {
	for _, problem := range s.catalog.Problems() {
		if !strings.HasSuffix(problem, fmt.Sprint(errSection)) { // counted as a problem of serve.yaml
			files++
		}
	}
	return files, s.warnSharedProblems()
}
