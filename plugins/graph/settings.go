package graph

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// The top-level keys of a workflow's settings that the bundle reads. Some
// workflows have backend and path at the top level.
const (
	settingsKey    = "graph"
	backendKey     = "graph_backend"
	backendTypeKey = "graph_backend_type"
	pathKey        = "graph_path"
	fileKey        = "file"
)

// Settings are what a workflow sets under settings.graph.
type Settings struct {
	Backend            backendName `json:"backend,omitempty" enum:"memory,cozo,cypher,kuzu,bighorn" doc:"database of the graph; default that of the graph in path, for a new graph the first of cozo and memory that this build has; kuzu and bighorn mean cypher"`
	Path               string      `json:"path,omitempty" format:"path" doc:"folder of the graph; default tea/graph in the user's data directory"`
	LockTimeoutSeconds float64     `json:"lock_timeout,omitempty" minimum:"0" default:"5" doc:"seconds to wait for another process that uses the folder; 0 = do not wait"`
	History            int         `json:"history,omitempty" minimum:"-1" default:"100" doc:"former values that an entity keeps of its properties; -1 = none"`
	MemoryMB           int64       `json:"memory_mb,omitempty" minimum:"1" doc:"size of the database's buffers; default depends on the backend"`
	Threads            int         `json:"threads,omitempty" minimum:"1" doc:"number of threads of a query; default depends on the backend"`
	Library            string      `json:"library,omitempty" format:"path" doc:"file of the native library of the backend cypher; default next to the plugin, then the user's cache"`
}

// FileSettings are those under settings.file that the bundle reads. They are
// shared with the host's file actions.
type FileSettings struct {
	Root     string `json:"root,omitempty" format:"path" default:"." doc:"the directory that graph.export, import, backup and restore are confined to; default the workflow file's"`
	MaxBytes int64  `json:"max_bytes,omitempty" default:"16777216" minimum:"1" doc:"the maximum size of a file of the file actions"`
}

// backendName is the name of a backend.
type backendName string

// aliases are names that mean another backend.
var aliases = map[backendName]backendName{"kuzu": "cypher", "bighorn": "cypher"}

func backendSchema() *schema.Schema { return schema.Of[Settings]().Member("backend") }

func pathSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Format: "path", Description: "same as settings.graph.path, which is preferred"}
}

// readSettings reads all keys. They are comparable.
func readSettings(from tea.Settings) (s settings, err error) {
	var backend, backendType backendName
	var path string
	for key, into := range map[string]any{settingsKey: &s.Settings, fileKey: &s.File, backendKey: &backend, backendTypeKey: &backendType, pathKey: &path} {
		if err := from.Decode(key, into); err != nil {
			return settings{}, err
		}
	}
	for _, name := range []backendName{backend, backendType} {
		if name != "" && !slices.Contains(backendSchema().Enum, any(string(name))) {
			return settings{}, tea.Errorf(tea.ValidationError, "settings.%s: unknown backend %q; use memory, cozo or cypher", backendKey, name)
		}
	}
	s.Backend = cmp.Or(s.Backend, backend, backendType)
	s.Backend = cmp.Or(aliases[s.Backend], s.Backend)
	s.Path = cmp.Or(s.Path, path)
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

// settings are all that the bundle reads, with an absolute path.
type settings struct {
	Settings
	File FileSettings
}
