package subproc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// generation is one process of a plugin and the instances configured in it.
type generation struct {
	number     int // counts the generations of a plugin from 1
	executable *executable
	process    *process
	retired    bool // guarded by the supervisor's lock

	mu        sync.Mutex
	instances map[string]*configured
	states    map[string]string // files with the states of instances to open, by id
	turn      *turn             // of the calls that begin now; nil if none may begin
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
	g.nextTurn()
	return g
}

// configure opens the instance in this process unless it is open. Concurrent callers
// share one attempt; after a failure the next call retries.
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
	p := g.process
	ctx, cancel := context.WithTimeout(context.Background(), p.times.configure)
	defer cancel()
	c.err = g.fault(ctx, "configure", p.wire.Import(ctx, id, settings, g.state(id)))
	if c.err != nil && over(ctx) && p.killBecause(verdict{reason: "it did not answer Configure within " + p.times.configure.String() + ", and was killed"}) {
		c.err = faultError(p.name, tea.Timeout, "plugin %s did not accept its settings within %s (Configure) and was killed", p.name, p.times.configure)
	}
	if c.err != nil {
		g.mu.Lock()
		delete(g.instances, id)
		g.mu.Unlock()
	}
	close(c.done)
}

// state returns the file with the state of an instance; "" if there is none.
func (g *generation) state(id string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[id]
}

// inherit sets the files with the states of instances, which are needed until the
// instances are open.
func (g *generation) inherit(states map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states = states
}

// export closes the instances and writes their states, if any, to files in a directory.
// After an error some instances are still open.
func (g *generation) export(ctx context.Context, dir string) (states map[string]string, err error) {
	states = map[string]string{}
	for id := range g.opened() {
		path := filepath.Join(dir, id)
		if err := g.fault(ctx, "release", g.process.wire.Export(ctx, id, path)); err != nil {
			return states, tea.Errorf(tea.AsError(err).Type, "export its state: %s", reason(err))
		}
		g.mu.Lock()
		delete(g.instances, id)
		g.mu.Unlock()
		if _, err := os.Stat(path); err == nil {
			states[id] = path
		}
	}
	return states, nil
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

// release closes the instance if the process is running and has it.
func (g *generation) release(ctx context.Context, id string) error {
	g.mu.Lock()
	_, ok := g.instances[id]
	delete(g.instances, id)
	g.mu.Unlock()
	if !ok || g.process.dead() {
		return nil
	}
	return g.fault(ctx, "release", g.process.wire.Release(ctx, id))
}

// fault returns the error of an action if its plugin is broken or does not end a call;
// it returns other errors unchanged.
func (g *generation) fault(ctx context.Context, doing string, err error) error {
	var (
		broken *wire.BrokenError
		late   *wire.LateError
	)
	p := g.process
	switch {
	case errors.As(err, &late):
		return p.timeoutError(ctx, doing, late)
	case !errors.As(err, &broken):
		return actionFault(err)
	}
	switch {
	case p.stopping.Load():
		return tea.Errorf(tea.Canceled, "plugin %s was stopped during %s", p.name, doing)
	case broken.Gone || p.dead():
		return p.crashed(doing)
	}
	kind := tea.InternalError
	var e *tea.Error
	if errors.As(err, &e) { // a message that is too large
		kind = e.Type
	}
	return faultError(p.name, kind, "plugin %s: %w", p.name, broken)
}
