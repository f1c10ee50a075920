package plugproc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// slowStart is the time after which a plugin that has not returned its manifest
// is logged.
const slowStart = 5 * time.Second

// maxAsked is the number of plugins that are asked for their manifests at the
// same time.
const maxAsked = 4

// Set is the plugins of one host. It is safe for concurrent use.
type Set struct {
	launcher *launcher
	store    manifestStore
	ids      atomic.Int64

	learning sync.Mutex // held while plugins are asked for their manifests

	mu      sync.RWMutex
	order   []string
	plugins map[string]*loaded
	unread  []Unread
}

// Found is a plugin in a set.
type Found struct {
	Manifest tea.Manifest
	Path     string
}

// Unread is a plugin whose manifest is not known, with the reason.
type Unread struct {
	Name, Path, Reason string

	binary binary
}

// Asked is the answer of a plugin to the question for its manifest, or the
// error.
type Asked struct {
	Found
	Err error

	binary binary
}

// loaded is a plugin with its supervisor.
type loaded struct {
	Found
	binary     binary
	supervisor *supervisor
}

// add adds a plugin. It fails if the plugin cannot be used together with those
// that were found before it.
func (s *Set) add(b binary, m tea.Manifest) error {
	if m.Name != b.name {
		return fmt.Errorf("it says that its name is %q, which needs a file called %s%s", m.Name, prefix, m.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, action := range m.Actions {
		for _, name := range s.order {
			if earlier := s.plugins[name]; earlier.Manifest.Find(action.Name) != nil {
				return fmt.Errorf("not used: %s, which is found first, has the action %s too; remove one of the two", earlier.Path, action.Name)
			}
		}
	}
	p := &loaded{Found: Found{Manifest: m, Path: b.path}, binary: b}
	p.supervisor = newSupervisor(b.name, s.launcher.options.Logger, s.launch(b, m))
	s.order = append(s.order, b.name)
	s.plugins[b.name] = p
	return nil
}

// launch returns the function that starts a plugin. If its files have changed
// since the manifest was read, the process must offer the same manifest.
func (s *Set) launch(b binary, m tea.Manifest) func(context.Context) (*process, error) {
	accepted := fmt.Sprint(b.state, stateOf(b, m.Files))
	return func(ctx context.Context) (*process, error) {
		p, err := s.launcher.launch(ctx, b.name, b.path, needsOf(m))
		if err != nil {
			return nil, err
		}
		now := fmt.Sprint(stateKey(b.path), stateOf(b, m.Files))
		if now == accepted {
			return p, nil
		}
		asking, cancel := context.WithTimeout(ctx, s.launcher.options.StartTimeout)
		defer cancel()
		changed, err := p.wire.Describe(asking)
		if err == nil && sameManifest(changed, m) {
			accepted = now // the supervisor makes one start at a time
			return p, nil
		}
		p.stop(context.WithoutCancel(ctx))
		if err != nil {
			return nil, startError(b.name, tea.InternalError, "ask for its manifest: %w", err)
		}
		b.state = stateKey(b.path)
		s.store.write(b, changed)
		return nil, startError(b.name, tea.DependencyMissing,
			"%s was replaced (version %s by %s) after the workflow was checked; run it again to check it with the new one", b.path, m.Version, changed.Version)
	}
}

func sameManifest(a, b tea.Manifest) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Bundles lists the plugins whose manifests are known, in the order in which
// they were found.
func (s *Set) Bundles() []Found {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Found, 0, len(s.order))
	for _, name := range s.order {
		all = append(all, s.plugins[name].Found)
	}
	return all
}

// Unread lists the plugins whose manifests are not known.
func (s *Set) Unread() []Unread {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.unread)
}

// Learn starts the plugins without a known manifest, all or the named ones, and
// asks for it. Each is asked once. The error has a [Problem] for each plugin
// that cannot be used. With StoredOnly it does nothing.
func (s *Set) Learn(ctx context.Context, names ...string) error {
	if s.launcher.options.StoredOnly {
		return nil
	}
	s.learning.Lock()
	defer s.learning.Unlock()
	var binaries []binary
	for _, u := range s.Unread() {
		if len(names) == 0 || slices.Contains(names, u.Name) {
			binaries = append(binaries, u.binary)
		}
	}
	var errs []error
	for _, asked := range s.ask(ctx, binaries) {
		if asked.Err == nil {
			s.store.write(asked.binary, asked.Manifest)
			asked.Err = s.add(asked.binary, asked.Manifest)
		}
		if asked.Err != nil {
			errs = append(errs, Problem{Severity: diag.Error, Path: asked.Path, Message: reason(asked.Err)})
		}
		s.mu.Lock()
		s.unread = slices.DeleteFunc(s.unread, func(u Unread) bool { return u.Path == asked.Path })
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Refresh starts all plugins, or the named ones, asks for their manifests and
// stores them in the cache, or next to the binaries for packaging. The set
// itself does not change.
func (s *Set) Refresh(ctx context.Context, beside bool, names ...string) []Asked {
	var binaries []binary
	s.mu.RLock()
	for _, name := range s.order {
		binaries = append(binaries, s.plugins[name].binary)
	}
	for _, u := range s.unread {
		binaries = append(binaries, u.binary)
	}
	s.mu.RUnlock()
	if len(names) > 0 {
		binaries = slices.DeleteFunc(binaries, func(b binary) bool { return !slices.Contains(names, b.name) })
	}
	answers := s.ask(ctx, binaries)
	for i, a := range answers {
		if a.Err != nil {
			continue
		}
		if beside {
			answers[i].Err = writeBeside(a.binary, a.Manifest)
		}
		s.store.write(a.binary, a.Manifest)
	}
	return answers
}

// ask starts plugins and asks for their manifests.
func (s *Set) ask(ctx context.Context, binaries []binary) []Asked {
	answers := make([]Asked, len(binaries))
	slots := make(chan struct{}, maxAsked)
	var asking sync.WaitGroup
	for i, b := range binaries {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m, err := s.describe(ctx, b)
			if err == nil && m.Name != b.name {
				err = fmt.Errorf("it says that its name is %q, which needs a file called %s%s", m.Name, prefix, m.Name)
			}
			answers[i] = Asked{Found: Found{Manifest: m, Path: b.path}, Err: err, binary: b}
		})
	}
	asking.Wait()
	return answers
}

// describe starts a plugin, asks for its manifest and stops it.
func (s *Set) describe(ctx context.Context, b binary) (tea.Manifest, error) {
	slow := time.AfterFunc(slowStart, func() {
		s.launcher.options.Logger.Warn("waiting for its manifest", "plugin", b.name)
	})
	defer slow.Stop()
	p, err := s.launcher.launch(ctx, b.name, b.path, needs{})
	if err != nil {
		return tea.Manifest{}, err
	}
	defer p.stop(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, s.launcher.options.StartTimeout)
	defer cancel()
	return p.wire.Describe(ctx)
}

// Open returns an instance of a plugin for a workflow's settings; settings that
// the plugin does not declare are dropped. Open starts nothing: the first call
// returns the error of settings that the plugin refuses. A plugin that does not
// exist is a not_found error.
func (s *Set) Open(_ context.Context, bundle string, settings tea.Settings) (*Instance, error) {
	s.mu.RLock()
	p, ok := s.plugins[bundle]
	s.mu.RUnlock()
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "there is no plugin %s", bundle)
	}
	declared := tea.Settings{}
	for key := range p.Manifest.Settings {
		if raw, ok := settings[key]; ok {
			declared[key] = raw
		}
	}
	return &Instance{
		id:         strconv.FormatInt(s.ids.Add(1), 10),
		settings:   declared,
		manifest:   p.Manifest,
		supervisor: p.supervisor,
	}, nil
}

// Close shuts all plugins down: running calls can end within ctx's deadline (5
// s without one), then the process groups are killed. Later calls fail as
// canceled. No process, goroutine or file is left when it returns.
func (s *Set) Close(ctx context.Context) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var stopping sync.WaitGroup
	for _, p := range s.plugins {
		stopping.Go(func() { p.supervisor.stop(ctx) })
	}
	stopping.Wait()
	if err := s.launcher.close(); err != nil {
		return fmt.Errorf("remove the directory of plugin sockets: %w", err)
	}
	return nil
}
