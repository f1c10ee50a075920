package host

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/the-edge-agent/tea/host/internal/builtin"
	"github.com/the-edge-agent/tea/host/internal/builtin/codeactions"
	"github.com/the-edge-agent/tea/host/internal/builtin/runactions"
	"github.com/the-edge-agent/tea/host/internal/catalog"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Options configure a host. The zero value is a host with only its own actions.
// What the options refer to must not be changed afterwards.
type Options struct {
	// Bundles are linked in.
	Bundles []*tea.Bundle
	// Actions are single actions of the embedding program; see [Func].
	Actions []tea.Action
	// Plugins are bundles in separate processes; nil = none. The host closes them.
	Plugins Plugins
	// Embedded returns workflow files, overlays, subgraphs and modules that the
	// program contains; nil = none.
	Embedded Embedded
	// Logger gets the host's log; nil drops it.
	Logger *slog.Logger
	// Replace are actions that replace actions of the same name, for tests.
	Replace []tea.Action
	// CodeRunner is the command that starts the child process of code.execute,
	// which must call [RunCode]; empty = the action is not available.
	CodeRunner []string
	// Version is the program's version, used for its own bundles; "" means
	// "0.0.0".
	Version string
}

// Invoker calls the actions of one bundle that was opened for one workflow. Invoke
// must be safe for concurrent use; Close is called once, after the last call.
type Invoker = catalog.Invoker

// Plugins finds and starts bundles outside this process. Package host/subproc
// has the implementation. It must be safe for concurrent use. The host owns it and
// closes it.
type Plugins interface {
	// Manifests returns the manifests of the known bundles, without starting any.
	// The caller must not change them.
	Manifests() []tea.Manifest
	// Open starts the bundle if it does not run yet, and configures it. The caller
	// closes the invoker.
	Open(ctx context.Context, bundle string, settings tea.Settings) (Invoker, error)
	// Close stops every process.
	Close() error
}

// Learner is a [Plugins] that must start some bundles to learn their manifests.
type Learner interface {
	// Unread names the bundles whose manifests are not known.
	Unread() []string
	// Learn starts the named unread bundles, or all of them without names, to
	// read their manifests. The error names bundles that cannot be used; they are
	// no longer unread. A learner that must not start anything does nothing.
	Learn(ctx context.Context, bundles ...string) error
}

// Refuser is a [Plugins] that refuses some of the bundles it has found.
type Refuser interface {
	// Refused names the bundles, to explain why their actions are missing.
	Refused() []string
}

// Limiter is a [Plugins] whose processes can be limited.
type Limiter interface {
	// Limit adds the limits that a workflow has in settings.plugins.
	Limit(settings map[string]any)
}

// Host holds what workflows share: bundles and plugins. Create it with [New], load
// workflows with [Host.Load], and close it after them. It is safe for concurrent
// use.
type Host struct {
	o   Options
	log *slog.Logger
	// bundles are the host's own, followed by those of the options.
	bundles []*tea.Bundle
	own     int
	// warned has the plugin actions about which a warning was logged.
	warned sync.Map
	closed atomic.Bool
}

// New returns a host. It keeps the bundles and plugins of the options, which must
// not be changed afterwards; [Host.Close] closes the plugins. The error reports
// the first mistake in a bundle, or a duplicate action name.
func New(o Options) (*Host, error) {
	h := &Host{o: o, log: o.Logger}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	version := cmp.Or(o.Version, "0.0.0")
	h.bundles = append(builtin.Bundles(builtin.Options{Version: version}), runactions.Bundles(version)...)
	h.bundles = append(h.bundles, codeactions.Bundle(version, o.CodeRunner))
	added := o.Bundles
	if len(o.Actions) > 0 {
		added = append(slices.Clone(added), &tea.Bundle{Name: "program", Version: "0.0.0", Actions: o.Actions})
	}
	for _, b := range added {
		if err := b.Check(); err != nil {
			return nil, err
		}
	}
	h.own = len(h.bundles)
	h.bundles = append(h.bundles, added...)
	owners := map[string]string{}
	for _, b := range h.bundles {
		for _, a := range b.Actions {
			if owner, twice := owners[a.Name]; twice {
				return nil, fmt.Errorf("the action %s is in both %s and %s", a.Name, owner, b.Name)
			}
			owners[a.Name] = b.Name
		}
	}
	return h, nil
}

// Close stops the plugins. The caller must close the workflows first; they cannot be
// used afterwards.
func (h *Host) Close() error {
	h.closed.Store(true)
	if h.o.Plugins == nil {
		return nil
	}
	return h.o.Plugins.Close()
}

// ActionEntry describes an action and its origin.
type ActionEntry = catalog.Entry

// Actions lists the actions that are available to every workflow of this host.
func (h *Host) Actions() ([]ActionEntry, error) {
	c, _, err := h.catalog(nil, false)
	if err != nil {
		return nil, err
	}
	return c.Entries(), nil
}

// catalog returns the actions for one set of settings, and the state of the
// dynamic ones. With relist it ignores their stored descriptions.
func (h *Host) catalog(settings map[string]any, relist bool) (*catalog.Catalog, *dynamicActions, error) {
	c := catalog.New(settings)
	c.MaxSilence = maxSilence(settings)
	dynamic := &dynamicActions{settings: settings, relist: relist}
	for i, b := range h.bundles {
		kind, open := "host", catalog.Own
		if i >= h.own {
			kind = "linked"
		}
		if i >= h.own && i < h.own+len(h.o.Bundles) {
			open = catalog.Linked
		}
		if err := c.Add(kind, dynamic.describe(b.Manifest()), open(b)); err != nil {
			return nil, nil, err
		}
	}
	if h.o.Plugins == nil {
		return c, dynamic, nil
	}
	if limited, ok := h.o.Plugins.(Limiter); ok {
		if limits, ok := settings[pluginsKey].(map[string]any); ok {
			limited.Limit(limits)
		}
	}
	known := &knownPlugins{host: h, catalog: c, dynamic: dynamic, added: map[string]bool{}}
	if _, err := known.add(); err != nil {
		return nil, nil, err
	}
	c.OnMissing(known.find)
	return c, dynamic, nil
}

// knownPlugins adds plugins to a catalog as their manifests become known.
type knownPlugins struct {
	host    *Host
	catalog *catalog.Catalog
	dynamic *dynamicActions

	added map[string]bool
}

// add adds the known plugins that are not in the catalog, and reports whether
// there were any.
func (k *knownPlugins) add() (more bool, err error) {
	for _, m := range k.host.o.Plugins.Manifests() {
		if k.added[m.Name] {
			continue
		}
		more, k.added[m.Name] = true, true
		if err := k.host.addPlugin(k.catalog, k.dynamic.describe(m)); err != nil {
			return more, err
		}
	}
	return more, nil
}

// find adds plugins until one can have the missing action. It counts the unread
// plugins first because another workflow may have read their manifests meanwhile.
func (k *knownPlugins) find(ctx context.Context, bundle string) bool {
	for {
		unread := k.host.unread()
		more, err := k.add()
		if err != nil {
			k.host.log.Warn("plugin problem: " + err.Error())
		}
		if more || !k.host.learn(ctx, bundle, unread) {
			return more
		}
	}
}

// unread returns the names of the plugins whose manifests are not known.
func (h *Host) unread() []string {
	if l, ok := h.o.Plugins.(Learner); ok {
		return l.Unread()
	}
	return nil
}

func (h *Host) refused() []string {
	if r, ok := h.o.Plugins.(Refuser); ok {
		return r.Refused()
	}
	return nil
}

// learn reads the manifest of the bundle or, on the next call, all unread
// manifests, and reports whether fewer are unread now.
func (h *Host) learn(ctx context.Context, bundle string, unread []string) bool {
	if len(unread) == 0 {
		return false
	}
	names := unread
	if slices.Contains(unread, bundle) {
		names = []string{bundle}
	}
	if err := h.o.Plugins.(Learner).Learn(ctx, names...); err != nil {
		h.log.Warn("plugin problem: " + err.Error())
	}
	return len(h.unread()) < len(unread)
}

// addPlugin adds the actions of a plugin that do not exist yet: a conflict
// between two plugins must not stop every workflow.
func (h *Host) addPlugin(c *catalog.Catalog, m tea.Manifest) error {
	m.Actions = slices.DeleteFunc(slices.Clone(m.Actions), func(a tea.ActionInfo) bool {
		have := c.Entry(a.Name)
		if have == nil {
			return false
		}
		replaced := slices.ContainsFunc(h.o.Replace, func(r tea.Action) bool { return r.Name == a.Name })
		if _, told := h.warned.LoadOrStore(m.Name+" "+a.Name, true); !told && !replaced {
			h.log.Warn(fmt.Sprintf("plugin problem: the action %s of tea-plugin-%s is not used: there is one already, in the %s bundle %s", a.Name, m.Name, have.Kind, have.Bundle))
		}
		return true
	})
	err := c.Add("plugin", m, func(ctx context.Context, settings map[string]any) (catalog.Invoker, error) {
		selected, err := catalog.Select(m.Settings, settings)
		if err != nil {
			return nil, err
		}
		return h.o.Plugins.Open(ctx, m.Name, selected)
	})
	if err != nil {
		return fmt.Errorf("plugin %s: %w", m.Name, err)
	}
	return nil
}

// Func returns an action that calls a plain Go function. The parameters are a copy
// that belongs to fn; the result is anything that encoding/json can marshal. fn is
// called concurrently.
func Func(name, summary string, fn func(ctx context.Context, params map[string]any) (any, error)) tea.Action {
	return tea.Action{Name: name, Summary: summary, Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		v, err := req.Params.Value()
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", name, err)
		}
		params, _ := v.(map[string]any)
		result, err := fn(ctx, params)
		if err != nil {
			return nil, err
		}
		return tea.Respond(result), nil
	}}
}

// RunCode is the child process of code.execute. A program that sets
// Options.CodeRunner to one of its commands calls it there with its standard
// input and output, and exits.
func RunCode(in io.Reader, out io.Writer) error { return codeactions.Run(in, out) }

// Schema returns the JSON Schema (draft-07) of workflow files, for editors. The
// parameters of the host's actions, plugins included, are in it.
func (h *Host) Schema() ([]byte, error) {
	entries, err := h.Actions()
	if err != nil {
		return nil, err
	}
	actions := make([]tea.ActionInfo, len(entries))
	for i, e := range entries {
		actions[i] = e.ActionInfo
	}
	return spec.JSONSchema(actions)
}
