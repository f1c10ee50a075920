package memory

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/shortterm"
)

// processVariable is set in the environment of a plugin's process.
const processVariable = "TEA_PLUGIN_COOKIE"

func shortTermActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.store", "Stores a value until the plugin ends.", (*Memory).Store, tea.Idempotent()),
		tea.NewMethod("memory.retrieve", "Returns the value that memory.store stored under a key.", (*Memory).Retrieve, tea.Idempotent()),
		tea.NewMethod("memory.delete", "Removes the value that memory.store stored under a key.", (*Memory).Delete, tea.Idempotent()),
	}
}

// shortTermOf is the short-term memory of a folder. It belongs to the process:
// instances that come and go find it again. A plugin's process leaves it to
// the one that takes its place; a bundle that is linked into a host keeps it
// in f. The caller holds f.mu.
func (f *folders) shortTermOf(opened *folder) *shortterm.Memory {
	bounds := shortterm.Bounds{Entries: opened.settings.ShortTerm.MaxEntries, Bytes: opened.settings.ShortTerm.MaxBytes}
	if os.Getenv(processVariable) != "" && !opened.readOnly {
		return shortterm.New(shortterm.Options{
			Bounds: bounds, Clock: opened.clock,
			Handover: shortterm.NewHandover(filepath.Join(opened.dir, "handover"), opened.settings.lockTimeout(), slog.Default()),
		})
	}
	kept := f.shortTerm[opened.dir]
	if kept == nil {
		kept = shortterm.New(shortterm.Options{Bounds: bounds, Clock: opened.clock})
		f.shortTerm[opened.dir] = kept
	}
	kept.Bound(bounds)
	return kept
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
func (m *Memory) Store(ctx context.Context, _ *tea.Request, p StoreParams) (*StoreResult, error) {
	ttl, err := seconds("ttl", p.TTL)
	if err == nil {
		err = checkName("key", p.Key)
	}
	if err != nil {
		return nil, err
	}
	if err := m.folder.shortterm.Put(ctx, p.Namespace, p.Key, orNull(p.Value), ttl); err != nil {
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
func (m *Memory) Retrieve(ctx context.Context, _ *tea.Request, p RetrieveParams) (*RetrieveResult, error) {
	value, found, err := m.folder.shortterm.Get(ctx, p.Namespace, p.Key)
	if err != nil {
		return nil, err
	}
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
func (m *Memory) Delete(ctx context.Context, _ *tea.Request, p DeleteParams) (*DeleteResult, error) {
	deleted, err := m.folder.shortterm.Delete(ctx, p.Namespace, p.Key)
	if err != nil {
		return nil, err
	}
	return &DeleteResult{Success: true, Deleted: deleted, Key: p.Key}, nil
}
