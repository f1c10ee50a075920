package graph

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/objstore"
)

// The top-level keys of a workflow's settings that the bundle reads. Some
// workflows have backend and path at the top level.
const (
	settingsKey    = "graph"
	backendKey     = "graph_backend"
	backendTypeKey = "graph_backend_type"
	pathKey        = "graph_path"
	storageKey     = "graph_storage"
	fileKey        = "file"
)

// Settings are the settings under settings.graph.
type Settings struct {
	Backend            backendName `json:"backend,omitempty" enum:"memory,cozo,cypher,kuzu,bighorn" doc:"database of the graph; default: the one that the graph in path uses; memory, which every build has, for a new graph; kuzu and bighorn mean cypher"`
	Path               string      `json:"path,omitempty" format:"path" doc:"folder of the graph; default tea/graph in the user's data directory"`
	LockTimeoutSeconds float64     `json:"lock_timeout,omitempty" minimum:"0" default:"5" doc:"seconds to wait for another process that uses the folder; 0 = do not wait"`
	History            int         `json:"history,omitempty" minimum:"-1" default:"100" doc:"former values that an entity keeps of its properties; -1 = none"`
	MemoryMB           int64       `json:"memory_mb,omitempty" minimum:"1" maximum:"1048576" doc:"size of the database's buffers; default depends on the backend"`
	Threads            int         `json:"threads,omitempty" minimum:"1" maximum:"64" doc:"number of threads of a query, at most 64; default depends on the backend"`
	// Storage and StorageOptions are for exports and imports.
	Storage        string            `json:"storage,omitempty" doc:"address of object storage, such as s3://bucket/graph/, that exports and imports of addresses are confined to, or of a web server to import from; the graph itself is in path"`
	StorageOptions objstore.Settings `json:"storage_options,omitempty" doc:"how the object storage is reached, with credentials; default: the environment's"`
}

// FileSettings are the settings under settings.file that the bundle reads. The host's
// file actions read them, too.
type FileSettings struct {
	Root     string `json:"root,omitempty" format:"path" default:"." doc:"the directory that graph.export, import, backup and restore are confined to; default the workflow file's, under tea serve the workflow's data directory"`
	MaxBytes int64  `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the maximum size of a file of the file actions"`
	Fallback string `json:"fallback,omitempty" format:"path" doc:"a directory that graph.import and restore read from, if the root has no such file"`
	// Read and Write are only for the file actions.
	Read  []string `json:"read,omitempty" doc:"further directories of the file actions"`
	Write []string `json:"write,omitempty" doc:"further directories of the file actions"`
}

// backendName is the name of a backend.
type backendName string

// aliases maps alternative names to backends.
var aliases = map[backendName]backendName{"kuzu": "cypher", "bighorn": "cypher"}

// canonical returns the name of the backend with this name or alias.
func (n backendName) canonical() backendName { return cmp.Or(aliases[n], n) }

// setting is a setting and its value.
type setting[V comparable] struct {
	name  string
	value V
}

// oneOf returns the value of settings with the same meaning. Different values are an
// error.
func oneOf[V comparable](given []setting[V]) (V, error) {
	var none, first setting[V]
	for _, s := range given {
		switch {
		case s.value == none.value:
		case first.value == none.value:
			first = s
		case first.value != s.value:
			return none.value, tea.Errorf(tea.ValidationError, "settings.%s is %v and settings.%s is %v, which mean the same setting; remove one of them", first.name, first.value, s.name, s.value)
		}
	}
	return first.value, nil
}

// faultOfPath returns why a text cannot be the folder of a graph; "" if it can.
func faultOfPath(path string) string {
	scheme, _, isAddress := strings.Cut(path, "://")
	switch {
	case isAddress:
		return fmt.Sprintf("%s is an address, and a graph is in a folder of this device; set settings.graph.storage to export to and import from %s://", path, scheme)
	case strings.HasPrefix(path, "~"), strings.Contains(filepath.ToSlash(path)+"/", "/~/"):
		return fmt.Sprintf("%s: ~ is not expanded; write ${HOME} instead", path)
	}
	return ""
}

func backendSchema() *schema.Schema { return schema.Of[Settings]().Member("backend") }

func pathSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Format: "path", Description: "same as settings.graph.path, which is preferred"}
}

func storageSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Description: "same as settings.graph.storage, which is preferred"}
}

// readSettings reads all keys. They are comparable.
func readSettings(from tea.Settings) (s settings, err error) {
	var backend, backendType backendName
	var path, storage string
	for key, into := range map[string]any{settingsKey: &s.Settings, fileKey: &s.File, backendKey: &backend, backendTypeKey: &backendType, pathKey: &path, storageKey: &storage} {
		if err := from.Decode(key, into); err != nil {
			return settings{}, err
		}
	}
	for _, name := range []backendName{backend, backendType} {
		if name != "" && !slices.Contains(backendSchema().Enum, any(string(name))) {
			return settings{}, tea.Errorf(tea.ValidationError, "settings.%s: unknown backend %q; use memory, cozo or cypher", backendKey, name)
		}
	}
	if s.Backend, err = oneOf([]setting[backendName]{{"graph.backend", s.Backend.canonical()}, {backendKey, backend.canonical()}, {backendTypeKey, backendType.canonical()}}); err != nil {
		return settings{}, err
	}
	if s.Path, err = oneOf([]setting[string]{{"graph.path", s.Path}, {pathKey, path}}); err != nil {
		return settings{}, err
	}
	if s.Storage, err = oneOf([]setting[string]{{"graph.storage", s.Storage}, {storageKey, storage}}); err != nil {
		return settings{}, err
	}
	if fault := faultOfPath(s.Path); fault != "" {
		return settings{}, tea.Errorf(tea.ValidationError, "settings.graph.path: %s", fault)
	}
	if s.Path == "" {
		data := os.Getenv("XDG_DATA_HOME")
		if data == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return settings{}, tea.Errorf(tea.ValidationError, "settings.graph.path is not set, and there is no home directory for a default: %w", err)
			}
			data = filepath.Join(home, ".local", "share")
		}
		s.Path = filepath.Join(data, "tea", "graph")
	}
	if s.Path, err = filepath.Abs(s.Path); err != nil {
		return settings{}, tea.Errorf(tea.ValidationError, "settings.graph.path: %w", err)
	}
	return s, nil
}

// settings are all settings of the bundle, with an absolute path.
type settings struct {
	Settings
	File FileSettings
}

// ofDatabase returns the settings that all users of a folder share.
func (s settings) ofDatabase() Settings {
	shared := s.Settings
	shared.Storage, shared.StorageOptions = "", objstore.Settings{}
	return shared
}
