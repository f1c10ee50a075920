package memory

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Option adds a database, a storage or a source of events to the bundle.
type Option func(*backends)

// WithBackend adds an engine for settings.memory.engine.
func WithBackend(b store.Backend) Option {
	// The package is used only here, so that a program without such an option does not link it.
	if driver := b.Driver; driver != nil {
		b.Open = func(ctx context.Context, c store.Config) (*store.Stores, error) {
			d, err := driver(ctx, c)
			if err != nil {
				return nil, err
			}
			s := records.Open(d, c)
			s.Acknowledged = b.Acknowledged
			return s, nil
		}
	}
	return func(all *backends) { all.engines[b.Name] = b }
}

// WithBlobs adds a kind of URL for settings.memory.blobs.
func WithBlobs(b store.BlobBackend) Option {
	return func(all *backends) {
		for _, scheme := range b.Schemes {
			all.blobs[scheme] = b
		}
	}
}

// WithOnline reports when the network is back: subscribe calls wake each time,
// until stop is called. Background synchronisation then runs at once instead of
// at its next attempt.
func WithOnline(subscribe func(wake func()) (stop func())) Option {
	return func(all *backends) { all.online = subscribe }
}

// backends are the databases and storage that options add to a bundle.
type backends struct {
	engines map[string]store.Backend
	blobs   map[string]store.BlobBackend // by the scheme of the URL
	online  func(wake func()) (stop func())
}

func newBackends(options []Option) backends {
	all := backends{engines: map[string]store.Backend{}, blobs: map[string]store.BlobBackend{}}
	for _, option := range options {
		option(&all)
	}
	return all
}

// cloudBlobs are the schemes of URLs with the packages of plugins/memory/cloud.
var cloudBlobs = map[string]string{"az": "azure", "azblob": "azure", "gs": "gcs", "s3": "s3"}

// engineAliases are other names of engines.
var engineAliases = map[string]string{"blob-sqlite": "bucket", "postgresql": "postgres", "turso": "libsql"}

// engineName resolves the alias of an engine.
func engineName(name string) string {
	if alias, ok := engineAliases[name]; ok {
		return alias
	}
	return name
}

// embeddedEngine reports whether an engine is one of the embedded databases, or
// the default one.
func embeddedEngine(name string) bool {
	return name == "" || name == string(store.DuckDB) || name == string(store.SQLite)
}

// env returns the environment variables that the databases and the storage read.
func (b backends) env() (names []string) {
	for _, backend := range b.engines {
		names = append(names, backend.Env...)
	}
	for _, backend := range b.blobs {
		names = append(names, backend.Env...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// names returns all values of settings.memory.engine, including engines that this
// build does not include.
func (b backends) names() []string {
	all := slices.Collect(maps.Keys(b.engines))
	for _, e := range store.Engines() {
		all = append(all, e.Name)
	}
	all = slices.AppendSeq(all, maps.Keys(engineAliases))
	slices.Sort(all)
	return slices.Compact(all)
}

func (b backends) engine(name string) (store.Backend, error) {
	backend, ok := b.engines[name]
	switch {
	case ok:
		return backend, nil
	case !embeddedEngine(name) && slices.ContainsFunc(store.Engines(), func(e store.Engine) bool { return e.Name == name }):
		return backend, errNotIncluded("the memory's engine "+name, name)
	}
	return backend, tea.Errorf(tea.ValidationError, "settings.memory.engine must be one of %s, not %q", strings.Join(b.names(), ", "), name)
}

// storage returns the backend for the URLs with a scheme.
func (b backends) storage(scheme string) (store.BlobBackend, error) {
	backend, ok := b.blobs[scheme]
	if ok {
		return backend, nil
	}
	if option, known := cloudBlobs[scheme]; known {
		return backend, errNotIncluded("storage for "+scheme+":// URLs", option)
	}
	return backend, tea.Errorf(tea.ValidationError, "settings.memory.blobs must be a folder or a URL that begins with %s://, not %q",
		strings.Join(slices.Sorted(maps.Keys(cloudBlobs)), "://, "), scheme+"://")
}

// errNotIncluded returns the error for a part that this build does not include.
func errNotIncluded(what, option string) error {
	return tea.Errorf(tea.DependencyMissing, "this build of the memory plugin does not include %s: install tea-plugin-memory-cloud in its place (scripts/build cloud), or link it into a program with `tea build --with memory[%s]`", what, option)
}

// settings returns the schemas of the settings that the bundle reads, with the
// names of the engines.
func (b backends) settings() map[string]*schema.Schema {
	all := map[string]*schema.Schema{
		memoryKey: b.withEngines(schema.Of[Settings]()),
		ltmKey:    b.withEngines(schema.Of[LTMSettings]()),
		vectorKey: schema.Of[VectorSettings](),
		blobBackendKey: {
			Type: schema.Types{"string"}, Enum: []any{"local", "s3", "gcs", "azure"},
			Description: "kind of settings.memory.blobs, which it must match",
		},
	}
	for _, key := range engineKeys {
		all[key] = b.engineNames(&schema.Schema{Type: schema.Types{"string"}, Description: "alias of settings.memory.engine"})
	}
	return all
}

// withEngines returns a schema whose properties engine and backend, nested ones
// included, list the engines.
func (b backends) withEngines(s *schema.Schema) *schema.Schema {
	if s.Properties == nil {
		return s
	}
	s, properties := new(*s), slices.Clone(*s.Properties)
	for i, p := range properties {
		if p.Name == "engine" || p.Name == "backend" {
			properties[i].Schema = b.engineNames(p.Schema)
		} else {
			properties[i].Schema = b.withEngines(p.Schema)
		}
	}
	s.Properties = &properties
	return s
}

// engineNames returns a schema that lists the engines. The browser's engine is
// valid in each build, since a page runs the same files.
func (b backends) engineNames(s *schema.Schema) *schema.Schema {
	s = new(*s)
	for _, name := range append(b.names(), "wasm") {
		if !slices.Contains(s.Enum, any(name)) {
			s.Enum = append(s.Enum, name)
		}
	}
	return s
}

// object is a JSON object as text, so that settings are comparable.
type object string

// UnmarshalJSON keeps the text.
func (o *object) UnmarshalJSON(raw []byte) error {
	*o = object(raw)
	return nil
}

// JSONSchema describes any object.
func (object) JSONSchema() *schema.Schema { return &schema.Schema{Type: schema.Types{"object"}} }

// raw returns the text, nil for none.
func (o object) raw() json.RawMessage {
	if o == "" {
		return nil
	}
	return json.RawMessage(o)
}
