package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/shortterm"
)

func shortTermActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.store", "Stores a value until the plugin ends.", (*Memory).Store, tea.Idempotent()),
		tea.NewMethod("memory.retrieve", "Returns the value that memory.store stored under a key.", (*Memory).Retrieve, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.delete", "Removes the value that memory.store stored under a key.", (*Memory).Delete, tea.Idempotent()),
	}
}

// shortTermOf returns the short-term memory of a folder. It belongs to the
// process and outlives instances. The caller holds f.mu.
func (f *folders) shortTermOf(dir string) *shortterm.Memory {
	kept := f.shortTerm[dir]
	if kept == nil {
		kept = shortterm.New(shortterm.Options{Clock: clock.New()})
		f.shortTerm[dir] = kept
	}
	return kept
}

// exported is the header of a folder's exported short-term memory.
type exported struct {
	Folder string `json:"folder"`
}

// Export writes the short-term memory of all folders for the next version of the
// plugin. Only the first call of the process writes.
func (m *Memory) Export(_ context.Context, w io.Writer) error {
	f := m.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exported {
		return nil
	}
	for dir, kept := range f.shortTerm {
		if err := json.NewEncoder(w).Encode(exported{dir}); err != nil {
			return err
		}
		if err := kept.Export(w); err != nil {
			return err
		}
	}
	f.exported = true
	return nil
}

// Import reads what Export has written.
func (m *Memory) Import(_ context.Context, r io.Reader) error {
	f := m.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	dec := json.NewDecoder(r)
	for {
		var from exported
		if err := dec.Decode(&from); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("import the short-term memory: %w", err)
		}
		if err := f.shortTermOf(from.Folder).Import(dec); err != nil {
			return err
		}
	}
}

// StoreParams are the parameters of memory.store.
type StoreParams struct {
	Key       string          `json:"key" minLength:"1"`
	Value     json.RawMessage `json:"value" doc:"any JSON"`
	TTL       float64         `json:"ttl,omitempty" minimum:"0" doc:"seconds until the value expires; 0 = when space is needed"`
	Namespace string          `json:"namespace,omitempty" default:"default" doc:"namespace of the key"`
}

// StoreResult is the result of memory.store.
type StoreResult struct {
	Success   bool   `json:"success"`
	Stored    bool   `json:"stored" doc:"always true"`
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
}

// Store is the action memory.store.
func (m *Memory) Store(_ context.Context, _ *tea.Request, p StoreParams) (*StoreResult, error) {
	ttl, err := seconds("ttl", p.TTL)
	if err == nil {
		err = checkName("key", p.Key)
	}
	if err != nil {
		return nil, err
	}
	if err := m.folder.shortterm.Put(p.Namespace, p.Key, orNull(p.Value), ttl); err != nil {
		return nil, err
	}
	return &StoreResult{Success: true, Stored: true, Key: p.Key, Namespace: p.Namespace}, nil
}

// RetrieveParams are the parameters of memory.retrieve.
type RetrieveParams struct {
	Key       string          `json:"key" minLength:"1"`
	Default   json.RawMessage `json:"default,omitempty" doc:"value to return if there is none; default null"`
	Namespace string          `json:"namespace,omitempty" default:"default"`
}

// RetrieveResult is the result of memory.retrieve.
type RetrieveResult struct {
	Success bool            `json:"success"`
	Value   json.RawMessage `json:"value"`
	Found   bool            `json:"found"`
	Key     string          `json:"key"`
}

// Retrieve is the action memory.retrieve.
func (m *Memory) Retrieve(_ context.Context, _ *tea.Request, p RetrieveParams) (*RetrieveResult, error) {
	value, found := m.folder.shortterm.Get(p.Namespace, p.Key)
	if !found {
		value = orNull(p.Default)
	}
	return &RetrieveResult{Success: true, Value: value, Found: found, Key: p.Key}, nil
}

// DeleteParams are the parameters of memory.delete.
type DeleteParams struct {
	Key       string `json:"key" minLength:"1"`
	Namespace string `json:"namespace,omitempty" default:"default"`
}

// DeleteResult is the result of memory.delete.
type DeleteResult struct {
	Success bool   `json:"success"`
	Deleted bool   `json:"deleted" doc:"false if there was no value"`
	Key     string `json:"key"`
}

// Delete is the action memory.delete.
func (m *Memory) Delete(_ context.Context, _ *tea.Request, p DeleteParams) (*DeleteResult, error) {
	return &DeleteResult{Success: true, Deleted: m.folder.shortterm.Delete(p.Namespace, p.Key), Key: p.Key}, nil
}
