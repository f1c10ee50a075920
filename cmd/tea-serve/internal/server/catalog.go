package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/cmd/internal/flowdir"
	"github.com/the-edge-agent/tea/host"
)

// catalog holds the workflows of the directory. It is safe for concurrent use.
type catalog struct {
	*flowdir.Dir
	s        *server
	sections *sections

	// loaded is the source of the workflow that Load returned last, for Offer.
	loaded *host.Source

	mu        sync.Mutex
	workflows map[string]*version
	// loadedNames are the names of the last loaded workflows, by file.
	loadedNames map[string]string
}

// version is a loaded version of a workflow.
type version struct {
	*host.Workflow
	file    string
	mask    host.Mask
	serving *host.Serving
	// triggers are the checked triggers of the version.
	triggers []*trigger
	uses     sync.WaitGroup
	// source is kept for the runs that begin with the version.
	source *host.Source
	kept   func() error
}

func newCatalog(s *server, dir string) (*catalog, error) {
	c := &catalog{s: s, workflows: map[string]*version{}, loadedNames: map[string]string{}}
	var err error
	if c.Dir, err = flowdir.New(dir, "workflow", c, s.svc.Log, serveFile); err != nil {
		return nil, err
	}
	c.sections = &sections{file: filepath.Join(c.Path(), serveFile), report: func(text string) { s.svc.Log.Error(text) }}
	return c, nil
}

// loadTries is how often a workflow is loaded if its files change meanwhile.
const loadTries = 3

// Load implements [flowdir.Server]. It loads a workflow file and checks its triggers.
func (c *catalog) Load(file string) (wf *host.Workflow, err error) {
	for n := 1; ; n++ {
		if wf, err = c.s.svc.Load(file); err != nil {
			return nil, err
		}
		if c.loaded, err = wf.Source(); err == nil {
			break
		}
		err = errors.Join(err, wf.Close())
		if n == loadTries || !errors.Is(err, host.ErrWorkflowRewritten) {
			return nil, err
		}
	}
	c.mu.Lock()
	c.loadedNames[file] = wf.Name()
	c.mu.Unlock()
	serving, err := c.sections.of(wf)
	if err == nil {
		var triggers []*trigger
		if triggers, err = c.s.triggersOf(wf, serving); err == nil {
			err = c.hookTaken(file, triggers)
		}
	}
	if err != nil {
		return nil, errors.Join(err, wf.Close())
	}
	return wf, nil
}

// Offer implements [flowdir.Server]. It serves a workflow.
func (c *catalog) Offer(file string, wf *host.Workflow, _ string) (string, error) {
	name := wf.Name()
	if strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("the name %q contains a slash, which is not allowed in the path of a request; rename the workflow", name)
	}
	serving, err := c.sections.of(wf)
	if err != nil {
		return "", err
	}
	triggers, err := c.s.triggersOf(wf, serving)
	if err != nil {
		return "", err
	}
	mask, err := c.s.svc.Mask(wf)
	if err != nil {
		return "", err
	}
	v := &version{Workflow: wf, file: file, mask: mask, serving: serving, triggers: triggers, source: c.loaded}
	if _, err := c.s.questionsOf(v); errors.Is(err, errNoTarget) { // other mistakes in the settings fail the runs
		return "", err
	}
	v.kept = storeOnce(v.source, c.s.svc.Runs)
	for _, t := range triggers {
		t.v = v
	}
	c.mu.Lock()
	old := c.workflows[name]
	if old != nil && old.file != file {
		c.mu.Unlock()
		return "", fmt.Errorf("workflow name %q is already used by %s; rename one of them", name, old.file)
	}
	c.workflows[name] = v
	c.mu.Unlock()
	c.retire(old)
	c.s.changed(name)
	return name, nil
}

// Actions implements [flowdir.Server].
func (c *catalog) Actions() string { return c.s.svc.Actions() }

// hookTaken returns an error if another workflow has a webhook with the path of
// one of the triggers.
func (c *catalog) hookTaken(file string, triggers []*trigger) error {
	var diags host.Diagnostics
	for _, other := range c.triggers(host.TriggerWebhook) {
		for _, t := range triggers {
			if t.Kind == host.TriggerWebhook && other.v.file != file && t.Webhook.HookPath() == other.Webhook.HookPath() {
				diags.Errorf(codeConflict, t.Pos, "use another path", "webhook: the workflow %s has the path %q too (%s)", other.workflow, t.Webhook.HookPath(), other.v.file)
			}
		}
	}
	return diags.Err()
}

// storeOnce returns a function that stores the source of a workflow once.
func storeOnce(source *host.Source, dir string) func() error {
	var mu sync.Mutex
	kept := false
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if kept {
			return nil
		}
		err := source.Keep(dir)
		kept = err == nil
		return err
	}
}

// Withdraw implements [flowdir.Server].
func (c *catalog) Withdraw(name string) {
	c.mu.Lock()
	old := c.workflows[name]
	delete(c.workflows, name)
	c.mu.Unlock()
	c.retire(old)
	c.s.changed(name)
}

// retire closes a version when its last run has ended.
func (c *catalog) retire(v *version) {
	if v == nil {
		return
	}
	c.s.background.Go(func() {
		v.uses.Wait()
		c.s.closeWorkflow(v.Workflow)
	})
}

// use returns the served version of a workflow, or nil. The caller calls
// v.uses.Done afterwards.
func (c *catalog) use(name string) *version {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.workflows[name]
	if v != nil {
		v.uses.Add(1)
	}
	return v
}

func (c *catalog) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.workflows))
	for name := range c.workflows {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// close closes all workflows once their runs have ended.
func (c *catalog) close() {
	c.mu.Lock()
	all := c.workflows
	c.workflows = map[string]*version{}
	c.mu.Unlock()
	for _, v := range all { // runs that use one may ask for another
		v.uses.Wait()
		c.s.closeWorkflow(v.Workflow)
	}
}

func (s *server) closeWorkflow(wf *host.Workflow) {
	if err := wf.Close(); err != nil {
		s.svc.Log.Warn("close workflow "+wf.Name(), "error", err)
	}
}
