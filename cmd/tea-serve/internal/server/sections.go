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

// serveFile is the file with the serve sections that are not in workflows.
const serveFile = "serve.yaml"

// sections are the serve sections of serve.yaml. They are safe for concurrent use.
type sections struct {
	file   string
	report func(string)

	mu sync.Mutex
	// problem is what is wrong with the file, as it was logged.
	problem string
}

// errSection reports a workflow whose section has mistakes, which were logged.
var errSection = errors.New("its section in " + serveFile + " has mistakes")

// read returns the sections by the names of workflows, and the mistakes in the
// file, which it logs if they are new. Without the file there are none.
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

// of returns the serve section of a workflow: that of its file, or that of
// serve.yaml. A mistake in the section of another workflow is not an error.
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

// within reports whether a path is that of an element or leads into it.
func within(path, element string) bool {
	rest, ok := strings.CutPrefix(path, element)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// problems returns what is wrong with the file, by its path.
func (s *sections) problems() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == "" {
		return nil
	}
	return map[string]string{s.file: s.problem}
}

// Problems returns what is wrong with files, by path.
func (c *catalog) Problems() map[string]string {
	all := c.Dir.Problems()
	maps.Copy(all, c.sections.problems())
	return all
}

// loose returns the mistakes that no workflow has alone: sections of serve.yaml
// and triggers that name a workflow that does not exist, and directories to watch
// that do not.
func (c *catalog) loose() (diags host.Diagnostics) {
	known := c.known()
	list, _ := c.sections.read() // which logs mistakes
	for name, section := range list {
		if !slices.Contains(known, name) {
			diags.Errorf(codeValue, section.Pos, diag.Suggest(name, known), "no workflow of the directory has the name %q", name)
		}
	}
	for _, t := range c.triggers(host.TriggerOnRun, host.TriggerWatch) {
		if t.Kind == host.TriggerOnRun && !slices.Contains(known, t.Value.Value) {
			diags.Errorf(codeValue, t.Pos, diag.Suggest(t.Value.Value, known), "on_run: no workflow of the directory has the name %q", t.Value.Value)
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

// known returns the names of the workflows, those with mistakes included. A file
// that cannot be read counts as a workflow with the name of the file.
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

// warnLoose logs the mistakes that no workflow has alone, unless they were
// logged, and returns their number.
func (s *server) warnLoose() int {
	diags := s.catalog.loose()
	logged := map[string]bool{}
	for _, d := range diags {
		text := d.Error()
		if logged[text] = true; !s.loose[text] {
			s.svc.Log.Warn(text)
		}
	}
	s.loose = logged
	return len(diags)
}

// faulty counts the files and loose mistakes that keep a check from passing.
func (s *server) faulty() (files, loose int) {
	for _, problem := range s.catalog.Problems() {
		if !strings.HasSuffix(problem, fmt.Sprint(errSection)) { // counted as the problem of serve.yaml
			files++
		}
	}
	return files, s.warnLoose()
}
