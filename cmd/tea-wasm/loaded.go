//go:build js

package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/host"
)

// maxLoaded bounds the workflows that stay loaded, and maxLoadedText the size of each
// key.
const (
	maxLoaded     = 16
	maxLoadedText = 64 << 10
)

// loaded keeps workflows between their runs: loading takes longer than most runs. The
// key of a workflow is its content. The most recently used one is last.
type loaded struct {
	mu   sync.Mutex
	idle []loadedWorkflow
}

type loadedWorkflow struct {
	key string
	wf  *host.Workflow
}

// take removes the workflow from l and returns it, or returns the result of load.
func (l *loaded) take(key string, load func() (*host.Workflow, error)) (wf *host.Workflow, wasLoaded bool, err error) {
	l.mu.Lock()
	at := slices.IndexFunc(l.idle, func(w loadedWorkflow) bool { return w.key == key })
	if at >= 0 {
		wf = l.idle[at].wf
		l.idle = slices.Delete(l.idle, at, at+1)
	}
	l.mu.Unlock()
	if wf != nil {
		return wf, true, nil
	}
	wf, err = load()
	return wf, false, err
}

// put keeps a workflow after its run. Its bundles are closed.
func (l *loaded) put(key string, wf *host.Workflow) {
	current, err := wf.Release()
	if !current || err != nil || len(key) > maxLoadedText {
		_ = wf.Close() // nothing that can fail is open
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, loadedWorkflow{key, wf})
	if len(l.idle) > maxLoaded {
		_ = l.idle[0].wf.Close() // nothing is open
		l.idle = slices.Delete(l.idle, 0, 1)
	}
}

// callKey is the key of a call of an action.
func callKey(action string, params map[string]any) string {
	return fmt.Sprintf("%q", slices.Insert(slices.Sorted(maps.Keys(params)), 0, action))
}

// textKey is the key of a workflow with this text.
func textKey(path, text string) string { return path + "\x00" + text }
