package plugproc

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/wire"
)

// configureTimeout bounds the opening of an instance, which can connect to a
// database or a server.
const configureTimeout = 30 * time.Second

// generation is one process of a plugin and the instances configured in it.
type generation struct {
	number     int // counts the generations of a plugin from 1
	executable *executable
	process    *process
	retired    bool // guarded by the supervisor's lock

	mu        sync.Mutex
	instances map[string]*configured
	turn      *turn // of the calls that begin now; nil if none can begin
}

// configured is an instance in a process, or the reason why it could not be
// opened.
type configured struct {
	settings tea.Settings
	done     chan struct{}
	err      error
}

func newGeneration(e *executable, p *process) *generation {
	g := &generation{executable: e, process: p, instances: map[string]*configured{}}
	g.openTurn()
	return g
}

// configure opens the instance in this process unless it is open. Concurrent
// callers share one attempt; after a failed one the next call tries again.
func (g *generation) configure(ctx context.Context, id string, settings tea.Settings) error {
	g.mu.Lock()
	c, ok := g.instances[id]
	if !ok {
		c = &configured{settings: settings, done: make(chan struct{})}
		g.instances[id] = c
		go g.open(c, id, settings)
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return tea.AsError(ctx.Err())
	}
}

func (g *generation) open(c *configured, id string, settings tea.Settings) {
	ctx, cancel := context.WithTimeout(context.Background(), configureTimeout)
	defer cancel()
	c.err = g.fault("configure", g.process.wire.Configure(ctx, id, settings))
	if c.err != nil {
		g.mu.Lock()
		delete(g.instances, id)
		g.mu.Unlock()
	}
	close(c.done)
}

// opened returns the settings of the open instances by their ids.
func (g *generation) opened() map[string]tea.Settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]tea.Settings{}
	for id, c := range g.instances {
		select {
		case <-c.done:
			all[id] = c.settings
		default: // its first call configures it in the next generation
		}
	}
	return all
}

// release closes the instance if the process still runs and has it.
func (g *generation) release(ctx context.Context, id string) error {
	g.mu.Lock()
	_, ok := g.instances[id]
	delete(g.instances, id)
	g.mu.Unlock()
	if !ok || g.process.dead() {
		return nil
	}
	return g.fault("release", g.process.wire.Release(ctx, id))
}

// fault returns the error of an action whose plugin is broken; it returns other
// errors unchanged.
func (g *generation) fault(doing string, err error) error {
	var broken *wire.BrokenError
	if !errors.As(err, &broken) {
		return err
	}
	p := g.process
	switch {
	case p.stopping.Load():
		return tea.Errorf(tea.Canceled, "plugin %s was stopped during %s", p.name, doing)
	case broken.Gone || p.dead():
		return p.crashed(doing)
	}
	e := tea.Errorf(tea.InternalError, "plugin %s: %w", p.name, broken)
	e.Source = p.name
	return e
}
