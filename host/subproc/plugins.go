package subproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// slowStart is the time after which a plugin that has not yet returned its manifest is
// logged.
const slowStart = 5 * time.Second

// maxAsked is the maximum number of plugins that are asked for their manifests
// concurrently.
const maxAsked = 4

// Plugins are the plugins of one host, for [host.Options]. The host closes them. They
// are safe for concurrent use.
type Plugins struct {
	launcher *launcher
	store    manifestStore
	ids      atomic.Int64

	// life ends with Shutdown; watches and reloads end with it.
	life context.Context
	end  context.CancelFunc

	learning sync.Mutex // held while plugins are asked for their manifests
	reloads  sync.WaitGroup

	mu      sync.RWMutex
	order   []string
	plugins map[string]*supervisor
	unread  []Unread
	// useless are the binaries without a manifest, logged the problems of other
	// binaries that were logged.
	useless, logged map[string]bool
	refused         []Problem // the actions that were reported, see offered
}

// Bundle is a discovered plugin.
type Bundle struct {
	Manifest tea.Manifest
	Path     string
}

// Unread is a plugin whose manifest is not known, with the reason.
type Unread struct {
	Name, Path, Reason string

	binary binary
}

// Asked is a plugin's manifest, or the error of reading it.
type Asked struct {
	Bundle
	Err error

	binary binary
}

// found returns the current version of a plugin, which runs or is started next.
func (s *supervisor) found() Bundle {
	e := s.version()
	return Bundle{Manifest: e.manifest, Path: e.binary.path}
}

// checkName checks that a plugin's file has the plugin's name.
func checkName(b binary, m tea.Manifest) error {
	if m.Name != b.name {
		return fmt.Errorf("it reports the name %q, which needs a file called %s%s", m.Name, prefix, m.Name)
	}
	return nil
}

// add adds a plugin. It fails if the manifest belongs to another plugin.
func (s *Plugins) add(b binary, m tea.Manifest) error {
	if err := checkName(b, m); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, b.name)
	s.plugins[b.name] = newSupervisor(s.life, newExecutable(b, m), s.launcher, s.store)
	return nil
}

// Bundles returns the plugins whose manifests are known, in the order in which they were
// found, without the actions that belong to another plugin.
func (s *Plugins) Bundles() []Bundle {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all, _ := s.offered()
	return all
}

// UnreadBundles returns the plugins whose manifests are not known.
func (s *Plugins) UnreadBundles() []Unread {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.unread)
}

// Learn starts the plugins without a known manifest, all or the named ones, and asks for
// it, once per plugin. The error has a [Problem] for each plugin that cannot be used.
// With StoredOnly it does nothing.
func (s *Plugins) Learn(ctx context.Context, names ...string) error {
	if s.launcher.options.StoredOnly {
		return nil
	}
	s.learning.Lock()
	defer s.learning.Unlock()
	var binaries []binary
	for _, u := range s.UnreadBundles() {
		if len(names) == 0 || slices.Contains(names, u.Name) {
			binaries = append(binaries, u.binary)
		}
	}
	var errs []error
	for _, asked := range s.ask(ctx, binaries) {
		if asked.Err == nil {
			s.store.keep(asked.binary, asked.Manifest)
			asked.Err = s.add(asked.binary, asked.Manifest)
		}
		if asked.Err != nil {
			errs = append(errs, Problem{Severity: diag.Error, Path: asked.Path, Message: reason(asked.Err)})
		}
		s.mu.Lock()
		if asked.Err != nil {
			s.useless[asked.binary.key()] = true
		}
		s.unread = slices.DeleteFunc(s.unread, func(u Unread) bool { return u.Path == asked.Path })
		s.mu.Unlock()
	}
	s.warnRefused()
	return errors.Join(errs...)
}

// Refresh starts all plugins, or the named ones, asks for their manifests and stores them
// in the cache, or next to the binaries for packaging. The set itself does not change.
func (s *Plugins) Refresh(ctx context.Context, beside bool, names ...string) []Asked {
	var binaries []binary
	s.mu.RLock()
	for _, name := range s.order {
		binaries = append(binaries, s.plugins[name].version().binary)
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
			s.store.keep(a.binary, a.Manifest)
		} else if err := s.store.write(a.binary, a.Manifest); err != nil {
			answers[i].Err = fmt.Errorf("store the manifest of %s: %w", a.binary.path, err)
		}
	}
	return answers
}

// ask starts plugins and asks for their manifests.
func (s *Plugins) ask(ctx context.Context, binaries []binary) []Asked {
	answers := make([]Asked, len(binaries))
	slots := make(chan struct{}, maxAsked)
	var asking sync.WaitGroup
	for i, b := range binaries {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m, err := s.launcher.describe(ctx, b)
			if err == nil {
				err = checkName(b, m)
			}
			answers[i] = Asked{Bundle: Bundle{Manifest: m, Path: b.path}, Err: err, binary: b}
		})
	}
	asking.Wait()
	return answers
}

// Limit adds settings.plugins of a workflow: the limits of processes that start
// afterwards. If several workflows set a limit, the highest applies.
func (s *Plugins) Limit(settings map[string]any) { s.launcher.limit(settings) }

// open is [Plugins.Open].
func (s *Plugins) open(bundle string, settings tea.Settings) (*instance, error) {
	s.mu.RLock()
	p, ok := s.plugins[bundle]
	s.mu.RUnlock()
	if !ok {
		return nil, tea.Errorf(tea.NotFound, "plugin %s not found", bundle)
	}
	declared := tea.Settings{}
	m := p.version().manifest
	for key := range m.Settings {
		if raw, ok := settings[key]; ok {
			declared[key] = raw
		}
	}
	id := strconv.FormatInt(s.ids.Add(1), 10)
	p.add(id)
	return &instance{id: id, settings: declared, manifest: m, supervisor: p}, nil
}

// Shutdown ends all plugins: running calls can end within ctx's deadline (5 s without
// one), then the process groups are killed. Later calls fail as canceled. No process,
// goroutine or file is left when it returns.
func (s *Plugins) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.reloads.Wait()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var stopping sync.WaitGroup
	for _, p := range s.plugins {
		stopping.Go(func() { p.stop(ctx) })
	}
	stopping.Wait()
	if err := s.launcher.close(); err != nil {
		return fmt.Errorf("remove the directory of plugin sockets: %w", err)
	}
	return nil
}
