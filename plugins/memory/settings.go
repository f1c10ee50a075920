package memory

import (
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
)

// The top-level keys of a workflow's settings that the bundle reads.
const (
	memoryKey = "memory"
	ltmKey    = "ltm"
	vectorKey = "vector"
)

// settings are all that the bundle reads. They are comparable.
type settings struct {
	Settings
	LTM    LTMSettings
	Vector VectorSettings
}

func readSettings(from tea.Settings) (s settings, err error) {
	for key, into := range map[string]any{memoryKey: &s.Settings, ltmKey: &s.LTM, vectorKey: &s.Vector} {
		if err := from.Decode(key, into); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

// LTMSettings are what a workflow sets under settings.ltm.
type LTMSettings struct {
	Language    string `json:"language,omitempty" enum:"arabic,danish,dutch,english,finnish,french,german,hungarian,irish,italian,none,norwegian,porter,portuguese,romanian,russian,simple,spanish,swedish,tamil,turkish" doc:"language of the stored texts, for word stems and stop words; default english, none = neither"`
	InlineBytes int    `json:"inline_bytes,omitempty" minimum:"1" doc:"size in bytes from which a value is stored in a separate file; default 1024"`
}

// VectorSettings are what a workflow sets under settings.vector.
type VectorSettings struct {
	Exact          int `json:"exact,omitempty" doc:"size up to which a collection is searched without a graph; default 10000, -1 = always with a graph"`
	M              int `json:"m,omitempty" minimum:"4" maximum:"64" doc:"number of links of a vector in the HNSW graph; default 16"`
	EfConstruction int `json:"ef_construction,omitempty" minimum:"8" doc:"number of candidates while the graph is built; default 100"`
	EfSearch       int `json:"ef_search,omitempty" minimum:"8" doc:"number of candidates of a query; more improve recall and take longer; default 64"`
}

func (s VectorSettings) options() vector.Options {
	return vector.Options{Exact: s.Exact, M: s.M, EfConstruction: s.EfConstruction, EfSearch: s.EfSearch}
}

// warmupVariable opens the database at the start, like settings.memory.warmup.
const warmupVariable = "DUCKDB_WARMUP"

// Settings are what a workflow sets under settings.memory: where the memory is
// and what it can use.
type Settings struct {
	Engine             string  `json:"engine,omitempty" enum:"duckdb,sqlite" doc:"database; default that of the memory in path, for a new memory duckdb if this build has it, otherwise sqlite"`
	Path               string  `json:"path,omitempty" format:"path" doc:"folder of the memory; default tea/memory in the user's data directory"`
	LockTimeoutSeconds float64 `json:"lock_timeout,omitempty" minimum:"0" default:"5" doc:"seconds to wait for another process that uses the folder; 0 = do not wait"`
	ReadOnly           bool    `json:"read_only,omitempty" doc:"only read the memory, which must exist; several processes can do so at the same time. A folder that cannot be written is only read in any case"`
	Warmup             bool    `json:"warmup,omitempty" doc:"open the database at the start, not at the first action"`
	Connections        int     `json:"connections,omitempty" minimum:"1" maximum:"64" doc:"number of connections for reading; default 5"`
	Threads            int     `json:"threads,omitempty" minimum:"1" doc:"number of threads of the database; default the number of processors, at most 4"`
	MemoryMB           int64   `json:"memory_mb,omitempty" minimum:"16" doc:"size of the database's buffers; default an eighth of the available memory, from 64 to 1024"`
	SpillDir           string  `json:"spill_dir,omitempty" format:"path" doc:"folder for data that does not fit into memory; default spill in path"`
	ShortTerm          Bounds  `json:"short_term,omitzero" doc:"limits of memory.store"`
}

// Bounds limit the short-term memory.
type Bounds struct {
	MaxEntries int   `json:"max_entries,omitempty" minimum:"1" doc:"default 10000"`
	MaxBytes   int64 `json:"max_bytes,omitempty" minimum:"1024" doc:"size of all keys and values as JSON; default 64 MiB"`
}

const (
	megabyte = 1 << 20
)

// dir is the folder of the memory, absolute.
func (s Settings) dir() (string, error) {
	path := s.Path
	if path == "" {
		data := os.Getenv("XDG_DATA_HOME")
		if data == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", tea.Errorf(tea.ValidationError, "settings.memory.path is not set, and there is no home directory for a default: %w", err)
			}
			data = filepath.Join(home, ".local", "share")
		}
		path = filepath.Join(data, "tea", "memory")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.path %q: %w", s.Path, err)
	}
	return abs, nil
}

func (s Settings) limits() engine.Limits {
	return engine.Limits{Connections: s.Connections, Threads: s.Threads, MemoryBytes: s.MemoryMB * megabyte, SpillDir: s.SpillDir}
}

func (s Settings) lockTimeout() time.Duration {
	return time.Duration(s.LockTimeoutSeconds * float64(time.Second))
}

func (s Settings) warmup() bool {
	switch os.Getenv(warmupVariable) {
	case "1", "true", "yes":
		return true
	}
	return s.Warmup
}
