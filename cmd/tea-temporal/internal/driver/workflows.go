package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/singleflight"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// definition is a workflow as a run began with it: its files, and the environment
// variables that they refer to.
type definition struct {
	Source   *host.Source      `json:"source"`
	Overlays []string          `json:"overlays,omitempty"`
	Config   string            `json:"config,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	// Plugins are the manifests of the plugins in use, for workers that lack them.
	Plugins []tea.Manifest `json:"plugins,omitempty"`
	// Store is the identity of the store of large values.
	Store string `json:"store,omitempty"`
}

// newDefinition returns the definition of a workflow.
func newDefinition(wf *host.Workflow, o host.LoadOptions, env map[string]any) (*definition, error) {
	source, err := wf.Source()
	if err != nil {
		return nil, err
	}
	d := &definition{Source: source, Config: o.Config, Env: map[string]string{}}
	for _, file := range o.Overlays {
		d.Overlays = append(d.Overlays, absolute(file))
	}
	used := wordsOf(source, o.Config)
	for _, m := range wf.Plugins() {
		if used.plugin(m) {
			d.Plugins = append(d.Plugins, m)
		}
	}
	// Only the variables that the workflow reads: others may be secret.
	for _, name := range source.Env() {
		if text, ok := env[name].(string); ok {
			d.Env[name] = text
		}
	}
	return d, nil
}

// words holds the dotted words in a workflow's files. They include the actions that
// nodes, Lua code and parameters use, and "plugin NAME" for imports.
type words map[string]bool

func wordsOf(source *host.Source, config string) words {
	w := words{}
	add := func(text string) {
		previous := ""
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			word = strings.Trim(word, ".")
			w[word] = true
			if previous == "plugin" {
				w["plugin "+word] = true
			}
			previous = word
		}
	}
	for _, file := range source.Files {
		add(string(file))
	}
	add(config)
	return w
}

// plugin reports whether the words contain an action or an import of a plugin.
func (w words) plugin(m tea.Manifest) bool {
	for _, a := range m.Actions {
		if w[a.Name] || w["actions."+strings.Replace(a.Name, ".", "_", 1)] {
			return true
		}
	}
	for word := range w {
		if m.IsDynamic(word) {
			return true
		}
	}
	return w["plugin "+m.Name]
}

// key identifies the content of a definition.
func (d *definition) key() (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode the workflow: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func (d *definition) lookupEnv(name string) (string, bool) {
	text, ok := d.Env[name]
	return text, ok
}

func (d *definition) env() map[string]any {
	env := map[string]any{}
	for name, text := range d.Env {
		env[name] = text
	}
	return env
}

// load returns the workflow of the definition.
func (d *definition) load(h *host.Host) (*host.Workflow, error) {
	return h.LoadSource(d.Source, host.LoadOptions{Overlays: d.Overlays, Config: d.Config, LookupEnv: d.lookupEnv, Elsewhere: d.Plugins})
}

// checkStore refuses a store other than the run's, which does not have its values.
func (d *definition) checkStore(id string) error {
	switch {
	case d.Store == id:
		return nil
	case id == "":
		return errors.New("the run stores values in --blobs; add the --blobs with which the run was started")
	case d.Store == "":
		return errors.New("the run was started without --blobs; omit it")
	}
	return errors.New("the run does not store its values in this --blobs; use the --blobs with which the run was started")
}

// loaded is a workflow that a worker has loaded. Its users release it.
type loaded struct {
	*host.Workflow
	mask host.Mask
	env  map[string]any

	// workflows.mu guards the following fields.
	users int
	used  uint64
	// stale closes it when its last user releases it.
	stale bool
}

// maxIdle is how many unused workflows a worker keeps.
const maxIdle = 16

// workflows are the loaded workflows of a worker, by key.
type workflows struct {
	host    *host.Host
	secrets map[string]any
	// store is the identity of the store of large values.
	store string

	fetching singleflight.Group

	mu   sync.Mutex
	all  map[string]*loaded
	uses uint64
}

// get returns a workflow, which the caller releases. If it is not loaded, find returns
// its definition; find may wait for a query that this worker answers.
func (w *workflows) get(key string, find func() (*definition, error)) (*loaded, error) {
	if l := w.use(key); l != nil {
		return l, nil
	}
	d, err := find()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[key] == nil {
		l, err := w.load(d)
		if err != nil {
			return nil, err
		}
		if w.all == nil {
			w.all = map[string]*loaded{}
		}
		w.all[key] = l
	}
	return w.take(key), nil
}

// fetched is get for an activity of a run. Of concurrent activities that need the same
// workflow, only one queries the run.
func (w *workflows) fetched(ctx context.Context, c client.Client, key, run, execution string) (*loaded, error) {
	return w.get(key, func() (*definition, error) {
		d, err, _ := w.fetching.Do(key, func() (any, error) { return fetch(ctx, c, run, execution) })
		if err != nil {
			return nil, err
		}
		return d.(*definition), nil
	})
}

func (w *workflows) use(key string) *loaded {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take(key)
}

// take adds a user to a loaded workflow; nil if it is not loaded.
func (w *workflows) take(key string) *loaded {
	l := w.all[key]
	if l != nil {
		l.users++
	}
	return l
}

func (w *workflows) load(d *definition) (*loaded, error) {
	if err := d.checkStore(w.store); err != nil {
		return nil, fmt.Errorf("on the worker, %w", err)
	}
	wf, err := d.load(w.host)
	if err != nil {
		return nil, err
	}
	l := &loaded{Workflow: wf, env: d.env()}
	if l.mask, err = wf.Mask(w.secrets); err != nil {
		return nil, errors.Join(err, wf.Close())
	}
	return l, nil
}

// release ends a use, and closes the workflows that have been unused longest.
func (w *workflows) release(l *loaded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses++
	l.users, l.used = l.users-1, w.uses
	if l.stale && l.users == 0 {
		_ = l.Close() // there is no user to report it to
		return
	}
	for {
		idle, oldest := 0, ""
		for key, other := range w.all {
			if other.users > 0 {
				continue
			}
			if idle++; oldest == "" || other.used < w.all[oldest].used {
				oldest = key
			}
		}
		if idle <= maxIdle {
			return
		}
		_ = w.all[oldest].Close() // there is no user to report it to
		delete(w.all, oldest)
	}
}

// renew makes each workflow reload on its next use, because the plugins have changed.
func (w *workflows) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.all {
		if l.stale = true; l.users == 0 {
			_ = l.Close() // there is no user to report it to
		}
	}
	clear(w.all)
}

// close closes the workflows.
func (w *workflows) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.all {
		_ = l.Close()
	}
	clear(w.all)
}

// definitionQuery is the query that returns the definition of a run.
const definitionQuery = "definition"

// fetch queries the run for its definition.
func fetch(ctx context.Context, c client.Client, run, execution string) (*definition, error) {
	v, err := c.QueryWorkflow(ctx, run, execution, definitionQuery)
	if err != nil {
		return nil, fmt.Errorf("fetch the workflow of run %s: %w", run, err)
	}
	d := new(definition)
	return d, v.Get(d)
}
