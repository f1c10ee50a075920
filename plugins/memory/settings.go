package memory

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
)

// The top-level keys of a workflow's settings that the bundle reads.
const (
	memoryKey = "memory"
	ltmKey    = "ltm"
	vectorKey = "vector"
	// blobBackendKey names the kind of settings.memory.blobs.
	blobBackendKey = "blob_backend"
)

// engineKeys are aliases of settings.memory.engine. Other programs configure a
// store for each of these; a memory of tea has one engine for all.
var engineKeys = []string{"ltm_backend", "metadata_backend", "query_backend", "vector_backend"}

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
	aliases := []alias{{"settings.ltm.backend", s.LTM.Backend}}
	for _, key := range engineKeys {
		var name string
		if err := from.Decode(key, &name); err != nil {
			return settings{}, err
		}
		aliases = append(aliases, alias{"settings." + key, name})
	}
	if err := s.resolve(aliases); err != nil {
		return settings{}, err
	}
	var kind string
	if err := from.Decode(blobBackendKey, &kind); err != nil {
		return settings{}, err
	}
	return s, s.checkBlobs(kind)
}

// alias is a setting that means settings.memory.engine, and its value.
type alias struct{ setting, engine string }

// checkBlobs returns an error if settings.memory.blobs is not of the kind in
// settings.blob_backend.
func (s *settings) checkBlobs(kind string) error {
	actual := "local"
	if scheme, _, ok := strings.Cut(s.Blobs, "://"); ok {
		actual = cmp.Or(cloudBlobs[scheme], scheme)
	}
	if kind != "" && kind != actual {
		return tea.Errorf(tea.ValidationError, "settings.%s is %s, but settings.memory.blobs is %s storage; set settings.memory.blobs to the address of the other, and remove settings.%s", blobBackendKey, kind, actual, blobBackendKey)
	}
	return nil
}

// resolve replaces the aliases of settings.
func (s *settings) resolve(aliases []alias) error {
	s.Engine = engineName(s.Engine)
	from := "settings.memory.engine"
	for _, a := range aliases {
		engine := engineName(a.engine)
		if engine != "" && s.Engine != "" && s.Engine != engine {
			return tea.Errorf(tea.ValidationError, "%s is %s and %s is %s; set one of them, since the memory has one engine for all that it stores", a.setting, engine, from, s.Engine)
		}
		if s.Engine == "" {
			s.Engine, from = engine, a.setting
		}
	}
	s.Engine = cmp.Or(s.Engine, defaultEngine)
	s.LTM.Backend = ""
	s.Blobs = cmp.Or(s.Blobs, s.LTM.Storage.URI)
	s.LTM.InlineBytes = cmp.Or(s.LTM.InlineBytes, s.LTM.InlineThreshold)
	s.LTM.InlineThreshold = 0
	if err := s.resolveSync(); err != nil {
		return err
	}
	// If the URL were ignored, the data would be on this device.
	for name, ignored := range map[string]bool{
		"settings.memory.url": s.URL != "" && s.Engine == "", "settings.memory.sync.url": s.Sync.URL != "" && s.Sync.Engine == "",
	} {
		if ignored {
			return tea.Errorf(tea.ValidationError, "%s needs %s, the kind of memory at the address, such as postgres", name, strings.TrimSuffix(name, "url")+"engine")
		}
	}
	return nil
}

// resolveSync replaces enable_sync and offline_fallback. With a remote database, they configure an embedded database
// that synchronises with it.
func (s *settings) resolveSync() error {
	if err := s.resolvePlatform(); err != nil {
		return err
	}
	enable, fallback := s.LTM.EnableSync || s.LTM.Storage.EnableSync, s.LTM.OfflineFallback || s.LTM.Storage.OfflineFallback
	s.LTM.EnableSync, s.LTM.OfflineFallback, s.LTM.Storage = false, false, LTMStorage{}
	switch set := s.Sync.URL != "" || s.Sync.Path != ""; {
	case !embeddedEngine(s.Engine) && (enable || fallback):
		if set {
			return tea.Errorf(tea.ValidationError, "settings.memory.engine %s with enable_sync or offline_fallback is the memory to synchronise with; remove settings.memory.sync.url and path", s.Engine)
		}
		s.Sync.Engine, s.Sync.URL, s.Sync.Token, s.Sync.Options, s.Sync.Blobs, s.Sync.BlobOptions = s.Engine, s.URL, s.Token, s.Options, s.Blobs, s.BlobOptions
		s.Engine, s.URL, s.Token, s.Options = "", "", "", ""
		s.Sync.Background = true
	case enable:
		s.Sync.Background = true
	}
	if !s.Sync.Background {
		return nil
	}
	if s.Sync.IntervalSeconds == 0 { // settings.memory.sync is absent
		s.Sync.DelaySeconds, s.Sync.IntervalSeconds = syncDelay, syncInterval
	}
	switch {
	case s.Sync.URL == "" && s.Sync.Path == "":
		return tea.Errorf(tea.ValidationError, "synchronising in the background needs settings.memory.sync with the url or path of the other memory")
	case !inPage && !embeddedEngine(s.Engine):
		return tea.Errorf(tea.ValidationError, "settings.memory.sync.background needs an embedded memory, with settings.memory.engine duckdb or sqlite; %s is already shared", s.Engine)
	case s.Sync.Conflicts == string(syncing.Merge):
		return tea.Errorf(tea.ValidationError, "settings.memory.sync.conflicts: merge calls an action, which only a call of memory.sync can do; set another policy, or background: false")
	}
	return nil
}

// LTMSettings are what a workflow sets under settings.ltm.
type LTMSettings struct {
	Language    string `json:"language,omitempty" enum:"arabic,danish,dutch,english,finnish,french,german,hungarian,irish,italian,none,norwegian,porter,portuguese,romanian,russian,simple,spanish,swedish,tamil,turkish" doc:"language of the stored texts, for word stems and stop words; default english, none = neither"`
	InlineBytes int    `json:"inline_bytes,omitempty" minimum:"1" doc:"size in bytes from which a value is stored in a separate file; default 1024"`

	InlineThreshold int        `json:"inline_threshold,omitempty" minimum:"1" doc:"alias of inline_bytes"`
	Backend         string     `json:"backend,omitempty" doc:"alias of settings.memory.engine"`
	EnableSync      bool       `json:"enable_sync,omitempty" doc:"alias of settings.memory.sync.background; with an engine that is not embedded, as offline_fallback"`
	OfflineFallback bool       `json:"offline_fallback,omitempty" doc:"with an engine that is not embedded: use an embedded memory in path, which works without a network and is synchronised with that engine in the background"`
	Storage         LTMStorage `json:"storage,omitzero" doc:"aliases of other settings"`
}

// LTMStorage are other forms of settings.
type LTMStorage struct {
	URI             string `json:"uri,omitempty" doc:"alias of settings.memory.blobs"`
	EnableSync      bool   `json:"enable_sync,omitempty" doc:"alias of settings.ltm.enable_sync"`
	OfflineFallback bool   `json:"offline_fallback,omitempty" doc:"alias of settings.ltm.offline_fallback"`
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
	Engine             string  `json:"engine,omitempty" doc:"database: duckdb and sqlite are embedded, others need url; default: the engine of the memory in path; for a new memory, duckdb if this build has it, otherwise sqlite"`
	Path               string  `json:"path,omitempty" format:"path" doc:"folder of the memory; default tea/memory in the user's data directory"`
	URL                string  `json:"url,omitempty" secret:"true" doc:"address of a database that is not embedded, such as postgres://user@host/database"`
	Token              string  `json:"token,omitempty" secret:"true" doc:"password or token for url"`
	Options            object  `json:"options,omitempty" secret:"true" doc:"further settings of a database that is not embedded"`
	TimeoutSeconds     float64 `json:"timeout,omitempty" minimum:"0.1" maximum:"3600" default:"30" doc:"seconds after which a statement or request to a database that is not embedded fails"`
	Blobs              string  `json:"blobs,omitempty" format:"path" doc:"storage for large contents and for memory.cloud_store: a folder, s3://bucket/prefix, gs://bucket/prefix or azblob://container/prefix"`
	BlobOptions        object  `json:"blob_options,omitempty" secret:"true" doc:"further settings of blobs"`
	LockTimeoutSeconds float64 `json:"lock_timeout,omitempty" minimum:"0" default:"5" doc:"seconds to wait for another process that uses the folder; 0 = do not wait"`
	ReadOnly           bool    `json:"read_only,omitempty" doc:"only read the memory, which must exist; several processes can do so at the same time. A folder that cannot be written is only read in any case"`
	Warmup             bool    `json:"warmup,omitempty" doc:"open the database at the start, not at the first action"`
	Connections        int     `json:"connections,omitempty" minimum:"1" maximum:"64" doc:"number of connections for reading, or to a database that is not embedded; default 5"`
	Threads            int     `json:"threads,omitempty" minimum:"1" doc:"number of threads of the database; default the number of processors, at most 4"`
	MemoryMB           int64   `json:"memory_mb,omitempty" minimum:"16" doc:"size of the database's buffers; default an eighth of the available memory, from 64 to 1024"`
	SpillDir           string  `json:"spill_dir,omitempty" format:"path" doc:"folder for data that does not fit into memory; default spill in path"`
	Archives           string  `json:"archives,omitempty" format:"path" doc:"folder of the archives of memory.export, memory.import, memory.backup and memory.restore, which fail without it"`
	Sync               Sync    `json:"sync,omitzero" doc:"the memory that memory.sync synchronises this one with"`
	ShortTerm          Bounds  `json:"short_term,omitzero" doc:"limits of memory.store"`
	SessionTTL         float64 `json:"session_ttl,omitempty" minimum:"0" doc:"seconds after which a session of session.create without a ttl is archived; default 0 = never"`
	ProjectID          string  `json:"project_id,omitempty" maxLength:"256" doc:"project_id of the files of memory.cloud_store that have none"`
	EmbeddingModel     string  `json:"embedding_model,omitempty" doc:"model for embedding.create where an action names none"`
	Vocabulary         string  `json:"vocabulary,omitempty" format:"path" doc:"the file o200k_base.tiktoken, by which text.chunk, context.assemble and memory.summarize count tokens; default cl100k_base"`
	MaxFileTokens      int     `json:"max_file_tokens,omitempty" minimum:"1" doc:"largest number of tokens of a text of memory.cloud_store; default no limit"`
	MaxFileLines       int     `json:"max_file_lines,omitempty" minimum:"1" doc:"largest number of lines of a text of memory.cloud_store; default no limit"`
}

// Bounds limit the short-term memory.
type Bounds struct {
	MaxEntries int   `json:"max_entries,omitempty" minimum:"1" doc:"default 10000"`
	MaxBytes   int64 `json:"max_bytes,omitempty" minimum:"1024" doc:"size of all keys and values as JSON; default 64 MiB"`
}

// Sync is the memory that memory.sync synchronises with, and how.
type Sync struct {
	Engine            string  `json:"engine,omitempty" doc:"as settings.memory.engine"`
	Path              string  `json:"path,omitempty" format:"path" doc:"folder of an embedded memory, for example on a removable disk"`
	URL               string  `json:"url,omitempty" secret:"true" doc:"as settings.memory.url"`
	Token             string  `json:"token,omitempty" secret:"true" doc:"as settings.memory.token"`
	Options           object  `json:"options,omitempty" secret:"true" doc:"as settings.memory.options"`
	Blobs             string  `json:"blobs,omitempty" doc:"as settings.memory.blobs: where the other memory has the contents of its files"`
	BlobOptions       object  `json:"blob_options,omitempty" secret:"true" doc:"as settings.memory.blob_options"`
	Background        bool    `json:"background,omitempty" doc:"synchronise in the background too: at the first use, after changes, and at intervals"`
	DelaySeconds      float64 `json:"delay,omitempty" minimum:"0" default:"2" doc:"seconds from a change to synchronising in the background"`
	IntervalSeconds   float64 `json:"interval,omitempty" minimum:"1" default:"300" doc:"seconds between synchronising in the background without changes"`
	Conflicts         string  `json:"conflicts,omitempty" enum:"last_write,remote,local,merge" doc:"what happens to a record that changed on both sides; default last_write"`
	Merge             string  `json:"merge,omitempty" doc:"the action that merges two records, for conflicts: merge"`
	MaxBytesPerSecond int64   `json:"max_bytes_per_second,omitempty" minimum:"1" doc:"limit of the bandwidth; default none"`
}

const (
	// syncDelay and syncInterval are the defaults of Sync, in seconds.
	syncDelay    = 2
	syncInterval = 300
)

// dir is the folder of the memory, absolute.
func (s Settings) dir() (string, error) {
	path := s.Path
	if path == "" {
		data := cmp.Or(os.Getenv("XDG_DATA_HOME"), dataFolder)
		if data == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", tea.Errorf(tea.ValidationError, "settings.memory.path is not set, and there is no home directory for a default: %w", err)
			}
			data = filepath.Join(home, ".local", "share")
		}
		path = filepath.Join(data, "tea", "memory")
	}
	if strings.Contains(path, "\x00") {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.path %q contains the character NUL, which no path can have", s.Path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", tea.Errorf(tea.ValidationError, "settings.memory.path %q: %w", s.Path, err)
	}
	return abs, nil
}

func (s Settings) lockTimeout() time.Duration {
	return time.Duration(s.LockTimeoutSeconds * float64(time.Second))
}

func (s Settings) timeout() time.Duration {
	return time.Duration(s.TimeoutSeconds * float64(time.Second))
}

func (s Settings) warmup() bool {
	switch os.Getenv(warmupVariable) {
	case "1", "true", "yes":
		return true
	}
	return s.Warmup
}
