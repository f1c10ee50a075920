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
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Invoker calls the actions of one bundle, configured for one workflow.
type Invoker interface {
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
	Close() error
}

// Opener opens an invoker for a workflow's settings. It is called on the first
// call of one of the bundle's actions.
type Opener func(ctx context.Context, settings map[string]any) (Invoker, error)

// Catalog has every action of one loaded workflow. Add, Alias, Replace and
// OnMissing must not be called concurrently with each other; all other methods
// are safe for concurrent use. The owner must call [Catalog.Close].
type Catalog struct {
	// MaxSilence bounds the silence of a plugin during a call without a deadline; 0
	// and nil are DefaultSilence. Set it before the first call.
	MaxSilence func(plugin string) time.Duration

	missing  func(ctx context.Context, bundle string) bool
	adding   sync.Mutex // held while missing runs
	settings map[string]any

	mu      sync.RWMutex
	entries map[string]*Entry
	sources []*source
	// dynamic are the bundles with actions that depend on the settings, by name.
	dynamic map[string]dynamic
}

// dynamic is a bundle whose actions depend on the settings.
type dynamic struct {
	manifest tea.Manifest
	entry    Entry // template for actions without a description
}

// Entry is one action with its origin.
type Entry struct {
	tea.ActionInfo
	// Bundle and Version name the bundle, or the file of a Lua module.
	Bundle, Version string
	// Kind is "host", "linked", "plugin" or "lua".
	Kind string

	source *source
	// check checks the parameters; nil for bundles in this process, which check
	// their own.
	check *tea.ParamCheck
}

// source is a bundle that is opened on its first call.
type source struct {
	name     string
	open     Opener
	settings map[string]any

	mu      sync.Mutex
	invoker Invoker
	closed  bool
}

// New returns an empty catalog, which opens bundles with these settings.
func New(settings map[string]any) *Catalog {
	return &Catalog{entries: map[string]*Entry{}, settings: settings, dynamic: map[string]dynamic{}}
}

// OnMissing sets a function that can add a missing action of the named bundle,
// or the bundle itself. It reports whether to look again. It is never called
// concurrently.
func (c *Catalog) OnMissing(add func(ctx context.Context, bundle string) bool) { c.missing = add }

// orAdd returns the result of look, after adding the bundle if look finds nothing.
func (c *Catalog) orAdd(ctx context.Context, bundle string, look func() *Entry) *Entry {
	if e := look(); e != nil || c.missing == nil {
		return e
	}
	c.adding.Lock()
	defer c.adding.Unlock()
	for {
		if e := look(); e != nil || !c.missing(ctx, bundle) {
			return e
		}
	}
}

// Add adds the actions of a manifest. It fails if one of them already exists.
func (c *Catalog) Add(kind string, m tea.Manifest, open Opener) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	src := &source{name: m.Name, open: open, settings: c.settings}
	for _, info := range m.Actions {
		if have, twice := c.entries[info.Name]; twice {
			return fmt.Errorf("the action %s is in both %s and %s", info.Name, have.Bundle, m.Name)
		}
		e := &Entry{ActionInfo: info, Bundle: m.Name, Version: m.Version, Kind: kind, source: src}
		if kind == "plugin" || kind == "lua" {
			e.check = tea.NewParamCheck(info.Params)
		}
		c.entries[info.Name] = e
	}
	c.sources = append(c.sources, src)
	if m.Dynamic != nil {
		c.dynamic[m.Name] = dynamic{m, Entry{Bundle: m.Name, Version: m.Version, Kind: kind, source: src}}
	}
	return nil
}

// Alias adds another namespace for the actions of a bundle.
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
			return fmt.Errorf("the action %s is in both %s and %s", name, have.Bundle, bundle)
		}
		c.set(name, &e)
	}
	if !found {
		return fmt.Errorf("unknown bundle %q", bundle)
	}
	return nil
}

func (c *Catalog) set(name string, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[name] = e
}

// find looks up a name as workflows spell it: ns.verb or actions.ns_verb.
func (c *Catalog) find(ctx context.Context, name string) *Entry {
	return c.orAdd(ctx, bundleOf(name), func() *Entry { return c.spelled(name) })
}

// bundleOf returns the bundle that can have an action of that name.
func bundleOf(name string) string {
	if flat, ok := strings.CutPrefix(name, "actions."); ok {
		bundle, _, _ := strings.Cut(flat, "_")
		return bundle
	}
	bundle, _, _ := strings.Cut(name, ".")
	return bundle
}

// callable is find for a call, which may also use a dynamic action that is not
// described.
func (c *Catalog) callable(ctx context.Context, name string) *Entry {
	bundle := bundleOf(name)
	return c.orAdd(ctx, bundle, func() *Entry {
		if e := c.spelled(name); e != nil {
			return e
		}
		c.mu.RLock()
		defer c.mu.RUnlock()
		d, ok := c.dynamic[bundle]
		if !ok || !d.manifest.IsDynamic(name) {
			return nil
		}
		e := d.entry
		e.ActionInfo = tea.ActionInfo{Name: name}
		return &e
	})
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

// Describe returns an action by any name that a workflow can use.
func (c *Catalog) Describe(name string) (tea.ActionInfo, bool) {
	e := c.find(context.Background(), name)
	if e == nil {
		return tea.ActionInfo{}, false
	}
	return e.ActionInfo, true
}

// Entry returns an action by its canonical name, or nil.
func (c *Catalog) Entry(name string) *Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[name]
}

// Names returns the names of all actions, sorted.
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

// Entries returns all actions by name; the caller owns the slice.
func (c *Catalog) Entries() []Entry {
	names := c.Names()
	entries := make([]Entry, len(names))
	for i, name := range names {
		entries[i] = *c.Entry(name)
	}
	return entries
}

// detailAction is the detail of a not_found error that holds the action's name.
const detailAction = "unknown_action"

// IsUnknownAction reports whether an error is the error of a call to an action
// that does not exist.
func IsUnknownAction(err error) bool {
	var failure *tea.Error
	return errors.As(err, &failure) && failure.Type == tea.NotFound && failure.Details[detailAction] != nil
}

// Invoke calls an action. It sets req.Action to the action's canonical name and
// fills in the defaults of absent parameters. Parameters that do not match the
// action's schema are a validation_error; the bundle is not opened for them, nor for a
// dry run of an action that is not marked with DryRun.
func (c *Catalog) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	e := c.callable(ctx, req.Action)
	if e == nil {
		err := tea.Errorf(tea.NotFound, "unknown action %q", req.Action)
		err.Details = map[string]any{detailAction: req.Action}
		return nil, err
	}
	return c.invoke(ctx, e, e.source, req)
}

func (c *Catalog) invoke(ctx context.Context, e *Entry, s *source, req *tea.Request) (*tea.Response, error) {
	req.Action = e.Name
	check := e.check
	if check == nil && req.DryRun {
		check = tea.NewParamCheck(e.Params)
	}
	if check != nil {
		params, err := check.Accept(e.Name, req.Params)
		if err != nil {
			return nil, err
		}
		req.Params = params
	}
	if req.DryRun && !e.DryRun {
		return tea.Respond(map[string]any{"dry_run": true}), nil
	}
	invoker, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded && e.Kind == "plugin" {
		return invokeWithLimit(ctx, invoker, req, c.maxSilence(e.Bundle))
	}
	return invoker.Invoke(ctx, req)
}

func (c *Catalog) maxSilence(plugin string) time.Duration {
	if c.MaxSilence == nil {
		return DefaultSilence
	}
	return cmp.Or(c.MaxSilence(plugin), DefaultSilence)
}

// get opens the bundle once; after a failure, the next call tries again.
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
func (c *Catalog) Close() error { return c.release(true) }

// Release closes every bundle that was opened. The next call opens it again.
func (c *Catalog) Release() error { return c.release(false) }

func (c *Catalog) release(forGood bool) error {
	var all error
	for _, s := range c.sources {
		all = errors.Join(all, s.release(forGood))
	}
	return all
}

func (s *source) release(forGood bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || forGood
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

// Replace replaces the action of the same name.
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

// Bundle returns an entry of a bundle, for the bundle's version, or nil.
func (c *Catalog) Bundle(name string) *Entry {
	return c.orAdd(context.Background(), name, func() *Entry {
		for _, n := range c.Names() {
			if e := c.Entry(n); e.Bundle == name && e.Kind != "lua" {
				return e
			}
		}
		return nil
	})
}

// Bundles returns the names of the bundles.
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

// HasModule reports whether a namespace holds the actions of a Lua module.
func (c *Catalog) HasModule(namespace, path string) bool {
	for _, e := range c.Entries() {
		if e.Kind == "lua" && e.Bundle == path && strings.HasPrefix(e.Name, namespace+".") {
			return true
		}
	}
	return false
}

// Linked returns the opener of a bundle in this process.
func Linked(b *tea.Bundle) Opener {
	return func(ctx context.Context, settings map[string]any) (Invoker, error) {
		selected, err := Select(b.Settings, settings)
		if err != nil {
			return nil, err
		}
		instance, err := b.NewInstance(ctx, selected)
		if err != nil {
			return nil, err
		}
		return instance, nil
	}
}

// Own returns the opener of a bundle that is part of the host's program. Its
// actions are called on the caller's goroutine.
func Own(b *tea.Bundle) Opener {
	open := Linked(b)
	return func(ctx context.Context, settings map[string]any) (Invoker, error) {
		invoker, err := open(ctx, settings)
		if err != nil {
			return nil, err
		}
		return own{invoker.(*tea.Instance)}, nil
	}
}

type own struct{ *tea.Instance }

// Invoke implements Invoker.
func (o own) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	return o.InvokeHere(ctx, req)
}

// Select returns only the settings that a bundle declares.
func Select(declared map[string]*schema.Schema, settings map[string]any) (tea.Settings, error) {
	out := tea.Settings{}
	for key := range declared {
		v, ok := settings[key]
		if !ok {
			continue
		}
		raw, err := tea.ValuePayload(v).JSON()
		if err != nil {
			return nil, fmt.Errorf("encode settings.%s: %w", key, err)
		}
		out[key] = raw
	}
	return out, nil
}
