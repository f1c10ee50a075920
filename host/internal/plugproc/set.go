package plugproc

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Set is the plugins of one host. It is safe for concurrent use.
type Set struct {
	launcher *launcher
	order    []string
	plugins  map[string]*loaded
	ids      atomic.Int64
}

// Found is a plugin in a set.
type Found struct {
	Manifest tea.Manifest
	Path     string
}

// loaded is a plugin with whoever runs it.
type loaded struct {
	Found
	supervisor *supervisor
}

func (s *Set) add(b binary, m tea.Manifest) {
	launch := func(ctx context.Context) (*process, error) { return s.launcher.launch(ctx, b.name, b.path) }
	s.order = append(s.order, b.name)
	s.plugins[b.name] = &loaded{
		Found:      Found{Manifest: m, Path: b.path},
		supervisor: newSupervisor(b.name, s.launcher.options.Logger, launch),
	}
}

// Bundles lists the plugins in the order in which they were found.
func (s *Set) Bundles() []Found {
	all := make([]Found, 0, len(s.order))
	for _, name := range s.order {
		all = append(all, s.plugins[name].Found)
	}
	return all
}

// Open gives an instance of a plugin for a workflow's settings; only those
// that the plugin declares are kept. Nothing is started: settings that the
// plugin refuses show at the first call. A plugin that is not there is a
// not_found error.
func (s *Set) Open(_ context.Context, bundle string, settings tea.Settings) (*Instance, error) {
	p, ok := s.plugins[bundle]
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

// Close shuts all plugins down: running calls may end within ctx's deadline
// (5 s without one), then the process groups are killed. Calls made after it
// fail as canceled. When it returns, no process, goroutine or file is left.
func (s *Set) Close(ctx context.Context) error {
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
