package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Invoker calls the actions of one bundle, configured for one workflow.
type Invoker interface {
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
	Close() error
}

// Opener makes an invoker for a workflow's settings, when it is needed first.
type Opener func(ctx context.Context, settings map[string]any) (Invoker, error)

// Catalog knows every action of one loaded workflow. Add, Alias, Replace and
// OnMissing must not be called concurrently with each other; everything else
// is safe for concurrent use.
type Catalog struct {
	// Patience is how long a plugin may be silent during a call that has no
	// deadline; 0 is DefaultPatience. It is set before the first call.
	Patience time.Duration

	missing  func(ctx context.Context, bundle string) bool
	settings map[string]any

	mu      sync.RWMutex
	entries map[string]*Entry
	sources []*source
}

// Entry is one action with where it comes from.
type Entry struct {
	tea.ActionInfo
	// Bundle and Version name the bundle, or the file of a Lua module.
	Bundle, Version string
	// Kind is "host", "linked", "plugin" or "lua".
	Kind string

	source *source
	// check is of the parameters; nil for bundles inside this process, which
	// check by themselves.
	check *tea.ParamCheck
}

// source is a bundle that is opened at its first call.
type source struct {
	name     string
	open     Opener
	settings map[string]any

	mu      sync.Mutex
	invoker Invoker
	closed  bool
}

// New makes an empty catalog, whose bundles are opened for these settings.
func New(settings map[string]any) *Catalog {
	return &Catalog{entries: map[string]*Entry{}, settings: settings}
}

// OnMissing sets a function that may add what the catalog lacks, an action of
// the named bundle or the bundle itself. It reports whether to look again.
func (c *Catalog) OnMissing(add func(ctx context.Context, bundle string) bool) { c.missing = add }

func (c *Catalog) addMissing(ctx context.Context, bundle string) bool {
	return c.missing != nil && c.missing(ctx, bundle)
}

// Add adds the actions of a manifest. An action that is there already is an error.
func (c *Catalog) Add(kind string, m tea.Manifest, open Opener) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	src := &source{name: m.Name, open: open, settings: c.settings}
	for _, info := range m.Actions {
		if have, twice := c.entries[info.Name]; twice {
			return fmt.Errorf("the action %s is in %s and in %s", info.Name, have.Bundle, m.Name)
		}
		e := &Entry{ActionInfo: info, Bundle: m.Name, Version: m.Version, Kind: kind, source: src}
		if kind == "plugin" || kind == "lua" {
			e.check = tea.NewParamCheck(info.Params)
		}
		c.entries[info.Name] = e
	}
	c.sources = append(c.sources, src)
	return nil
}

// Alias makes the actions of a bundle reachable under another namespace.
func (c *Catalog) Alias(namespace, bundle string) error {
	found := false
	for _, e := range c.Entries() {
		if e.Bundle != bundle {
			continue
		}
		found = true
		_, verb, _ := strings.Cut(e.Name, ".")
		name := namespace + "." + verb
		if have := c.Entry(name); have != nil && have.source != e.source {
			return fmt.Errorf("the action %s is in %s and in %s", name, have.Bundle, bundle)
		}
		c.set(name, &e)
	}
	if !found {
		return fmt.Errorf("there is no bundle %q", bundle)
	}
	return nil
}

func (c *Catalog) set(name string, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[name] = e
}

// find looks a name up as workflows spell it: ns.verb or actions.ns_verb.
func (c *Catalog) find(ctx context.Context, name string) *Entry {
	for {
		if e := c.spelled(name); e != nil {
			return e
		}
		bundle, _, _ := strings.Cut(name, ".")
		if flat, ok := strings.CutPrefix(name, "actions."); ok {
			bundle, _, _ = strings.Cut(flat, "_")
		}
		if !c.addMissing(ctx, bundle) {
			return nil
		}
	}
}

func (c *Catalog) spelled(name string) *Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.entries[name]; e != nil {
		return e
	}
	flat, ok := strings.CutPrefix(name, "actions.")
	if !ok {
		return nil
	}
	for i, r := range flat {
		if r == '_' {
			if e := c.entries[flat[:i]+"."+flat[i+1:]]; e != nil {
				return e
			}
		}
	}
	return nil
}

// Describe finds an action by the name a workflow uses.
func (c *Catalog) Describe(name string) (tea.ActionInfo, bool) {
	e := c.find(context.Background(), name)
	if e == nil {
		return tea.ActionInfo{}, false
	}
	return e.ActionInfo, true
}

// Entry finds an action by its own name; nil where there is none.
func (c *Catalog) Entry(name string) *Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[name]
}

// Names lists the names of all actions, sorted.
func (c *Catalog) Names() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	names := make([]string, 0, len(c.entries))
	for name := range c.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Entries lists all actions by name; the caller owns the slice.
func (c *Catalog) Entries() []Entry {
	names := c.Names()
	entries := make([]Entry, len(names))
	for i, name := range names {
		entries[i] = *c.Entry(name)
	}
	return entries
}

// Invoke calls an action. The name it was called by becomes its own, and
// parameters that are absent get their defaults; those that do not fit the
// action's schema are a validation_error, and its bundle is not opened for them.
func (c *Catalog) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	e := c.find(ctx, req.Action)
	if e == nil {
		return nil, tea.Errorf(tea.NotFound, "unknown action %q", req.Action)
	}
	return c.invoke(ctx, e, e.source, req)
}

func (c *Catalog) invoke(ctx context.Context, e *Entry, s *source, req *tea.Request) (*tea.Response, error) {
	req.Action = e.Name
	if e.check != nil {
		params, err := e.check.Accept(e.Name, req.Params)
		if err != nil {
			return nil, err
		}
		req.Params = params
	}
	invoker, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded && e.Kind == "plugin" {
		return invokePatiently(ctx, invoker, req, cmp.Or(c.Patience, DefaultPatience))
	}
	return invoker.Invoke(ctx, req)
}

// get opens the bundle once; a failure is tried again at the next call.
func (s *source) get(ctx context.Context) (Invoker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, tea.Errorf(tea.Canceled, "%s is closed", s.name)
	}
	if s.invoker == nil {
		invoker, err := s.open(ctx, s.settings)
		if err != nil {
			return nil, err
		}
		s.invoker = invoker
	}
	return s.invoker, nil
}

// Close closes every bundle that was opened.
func (c *Catalog) Close() error {
	var all error
	for _, s := range c.sources {
		all = errors.Join(all, s.close())
	}
	return all
}

func (s *source) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.invoker == nil {
		return nil
	}
	err := s.invoker.Close()
	s.invoker = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.name, err)
	}
	return nil
}

// Replace puts an action in the place of the one with its name.
func (c *Catalog) Replace(a tea.Action) {
	b := &tea.Bundle{Name: "replaced", Version: "0.0.0", Actions: []tea.Action{a}}
	src := &source{name: b.Name, open: Linked(b), settings: c.settings}
	c.mu.Lock()
	c.sources = append(c.sources, src)
	c.mu.Unlock()
	info := a.Info()
	if have := c.Entry(a.Name); have != nil && info.Params == nil {
		info = have.ActionInfo
	}
	c.set(a.Name, &Entry{ActionInfo: info, Bundle: b.Name, Version: b.Version, Kind: "linked", source: src})
}

// Bundle returns an action of a bundle, which has its version; nil where
// there is none.
func (c *Catalog) Bundle(name string) *Entry {
	for {
		for _, n := range c.Names() {
			if e := c.Entry(n); e.Bundle == name && e.Kind != "lua" {
				return e
			}
		}
		if !c.addMissing(context.Background(), name) {
			return nil
		}
	}
}

// Bundles lists the names of the bundles.
func (c *Catalog) Bundles() []string {
	var names []string
	for _, e := range c.Entries() {
		if e.Kind != "lua" && !slices.Contains(names, e.Bundle) {
			names = append(names, e.Bundle)
		}
	}
	slices.Sort(names)
	return names
}

// HasModule tells whether a Lua module's actions are there under a namespace.
func (c *Catalog) HasModule(namespace, path string) bool {
	for _, e := range c.Entries() {
		if e.Kind == "lua" && e.Bundle == path && strings.HasPrefix(e.Name, namespace+".") {
			return true
		}
	}
	return false
}
