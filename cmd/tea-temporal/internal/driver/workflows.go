package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/the-edge-agent/tea/host"
)

// definition is a workflow as a run began with it: its files, and the environment
// variables that they name.
type definition struct {
	Source   *host.Source      `json:"source"`
	Overlays []string          `json:"overlays,omitempty"`
	Config   string            `json:"config,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
}

// newDefinition returns the definition of a workflow, and its key.
func newDefinition(wf *host.Workflow, o host.LoadOptions, env map[string]any) (*definition, string, error) {
	source, err := wf.Source()
	if err != nil {
		return nil, "", err
	}
	d := &definition{Source: source, Config: o.Config, Env: map[string]string{}}
	for _, file := range o.Overlays {
		d.Overlays = append(d.Overlays, absolute(file))
	}
	// Only the variables that the files name: others can be secret.
	for name, v := range env {
		text, _ := v.(string)
		for _, file := range source.Files {
			if strings.Contains(file, name) || strings.Contains(o.Config, name) {
				d.Env[name] = text
				break
			}
		}
	}
	key, err := d.key()
	return d, key, err
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
	return h.LoadSource(d.Source, host.LoadOptions{Overlays: d.Overlays, Config: d.Config, LookupEnv: d.lookupEnv})
}

// loaded is a workflow that a worker has loaded.
type loaded struct {
	*host.Workflow
	mask host.Mask
	env  map[string]any
}

// workflows are those that a worker has loaded, by key.
type workflows struct {
	host    *host.Host
	secrets map[string]any

	mu  sync.Mutex
	all map[string]*loaded
}

// get returns a workflow. find returns its definition if it is not loaded.
func (w *workflows) get(key string, find func() (*definition, error)) (*loaded, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.all[key]; l != nil {
		return l, nil
	}
	d, err := find()
	if err != nil {
		return nil, err
	}
	wf, err := d.load(w.host)
	if err != nil {
		return nil, err
	}
	l := &loaded{Workflow: wf, env: d.env()}
	if l.mask, err = wf.Mask(w.secrets); err != nil {
		return nil, err
	}
	if w.all == nil {
		w.all = map[string]*loaded{}
	}
	w.all[key] = l
	return l, nil
}

// close closes the workflows.
func (w *workflows) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.all {
		_ = l.Close()
	}
}

// definitionQuery is the query that returns the definition of a run.
const definitionQuery = "definition"

// fetch asks the run for its definition.
func fetch(ctx context.Context, c client.Client, run, execution string) (*definition, error) {
	v, err := c.QueryWorkflow(ctx, run, execution, definitionQuery)
	if err != nil {
		return nil, fmt.Errorf("fetch the workflow of run %s: %w", run, err)
	}
	d := new(definition)
	return d, v.Get(d)
}
