package store

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Backend is a kind of database that settings.memory.engine can name, besides
// the embedded ones. A program adds it to the memory's bundle with
// memory.WithBackend.
type Backend struct {
	// Name is the value of settings.memory.engine.
	Name string
	// Env are the environment variables that it reads; others are not passed to the
	// plugin's process.
	Env []string
	// Open opens the stores of one set of settings. It does not wait for the
	// server: the first call of a store connects. Invalid settings are a
	// validation_error. The caller closes the stores.
	Open func(ctx context.Context, c Config) (*Stores, error)
	// Driver opens the database instead, for a backend that is a [Driver]: the stores are
	// built on it. As with Open, it does not wait for the server.
	Driver func(ctx context.Context, c Config) (Driver, error)
	// Acknowledged is Stores.Acknowledged of a memory that Driver opens.
	Acknowledged string
	// Identify names the database of settings, of which c has URL and Options only:
	// settings with one name are those of one database, which is not opened twice.
	// nil = it is named by both as they are written.
	Identify func(c Config) (string, error)
}

// Config is what a Backend gets from the settings and from the memory.
type Config struct {
	// Engine is settings.memory.engine, for messages.
	Engine string
	// URL is settings.memory.url, "" for none. See [ParseURL].
	URL string
	// Token is settings.memory.token: the password or token, "" for none. It
	// must not appear in errors and logs.
	Token string
	// Options are settings.memory.options; see [Config.Decode].
	Options json.RawMessage
	// Connections bounds the open connections; 0 = the backend's default.
	Connections int
	// Timeout bounds a statement or request; it is positive.
	Timeout time.Duration
	// Language is that of the stored texts, as in settings.ltm.language: the name
	// of a Snowball stemmer, or "none".
	Language string
	// InlineBytes is the size of JSON from which a value is not stored in its row;
	// it is positive.
	InlineBytes int
	// Dir is a folder of this device for files of the backend. It belongs to this
	// URL, but can be used by several processes at the same time. It need not
	// exist.
	Dir string
	// ReadOnly says why the stores are only read; "" = they are written. A write
	// then fails with a permission_denied that wraps [ErrReadOnly]; the actions
	// refuse it before they call a store.
	ReadOnly string
	// Blobs has large contents if settings.memory.blobs is set; nil = the backend
	// stores them itself. The caller closes it.
	Blobs BlobStorage
	// Now is the clock for expiry and for the times of entries.
	Now func() time.Time
	// Logger is not nil.
	Logger *slog.Logger
}

// Decode stores Options in what v points to, a struct with the tags of package
// sdk/schema. Options that do not fit are a validation_error.
func (c Config) Decode(v any) error {
	const key = "memory.options"
	settings := tea.Settings{}
	if len(c.Options) > 0 {
		settings[key] = c.Options
	}
	return settings.Decode(key, v)
}

// Stores are the open parts of a Backend. LongTerm, Metadata, Vectors, Blobs and
// Close are required.
type Stores struct {
	LongTerm LongTermMemory
	Metadata MetadataStore
	Vectors  VectorIndex
	// Blobs stores the contents of files: Config.Blobs, if that is not nil.
	Blobs BlobStorage
	// Acknowledged is where a write is durable on return: "remote" (also ""), or
	// "local" if it is on this device only until it is uploaded.
	Acknowledged string
	// Replica is what archives and memory.sync use; nil = the backend has none.
	Replica Replica
	// SQL runs the queries of memory.sql_query; nil = the backend has no SQL.
	SQL Selector
	// Tables are the tables of data.*; nil = the backend has none.
	Tables TableStore
	// Inspect returns the numbers of entries (ltm, vectors, and each kind of
	// document) and the sizes in bytes by part; nil = the backend has no such
	// numbers.
	Inspect func(ctx context.Context) (entries, bytes map[string]int64, err error)
	// Reset removes all data; nil = the backend cannot do so.
	Reset func(ctx context.Context) error
	// Close ends background work and closes the connections, after the other parts
	// were closed.
	Close func() error
}

// Capability is something that not every backend can do. What a backend lacks
// is listed on its page and in its conformance tests, and the calls that need it
// fail with the error of [Unsupported].
type Capability string

// The capabilities.
const (
	// FullText is Search of a LongTermMemory with a text.
	FullText Capability = "full-text search"
	// Transactions are atomic changes of any number of entries or documents.
	Transactions Capability = "transactions"
	// Records are archives and memory.sync, which need a [Replica].
	Records Capability = "access to its records"
	// Contents are the contents of files, without settings.memory.blobs.
	Contents Capability = "storage for the contents of files"
	// SQL is memory.sql_query, which needs a [Selector].
	SQL Capability = "SQL"
	// Tables are the actions data.*, which need a [TableStore].
	Tables Capability = "tables"
)

// Unsupported returns the error of a call that needs what a backend lacks: a
// dependency_missing that wraps [ErrUnsupported]. remedy says what to do
// instead.
func Unsupported(backend string, lacks Capability, remedy string) error {
	return tea.Errorf(tea.DependencyMissing, "the memory's engine %s %w: it has no %s; %s", backend, ErrUnsupported, lacks, remedy)
}

// BlobBackend is a kind of storage that settings.memory.blobs can name by a URL.
// A program adds it to the memory's bundle with memory.WithBlobs.
type BlobBackend struct {
	// Schemes are the schemes of its URLs, such as s3.
	Schemes []string
	// Env are the environment variables that it reads; others are not passed to the
	// plugin's process.
	Env []string
	// Open opens a storage. It does not wait for the server. A URL or options that
	// are not valid are a validation_error. The caller closes it if it is an
	// [io.Closer].
	Open func(ctx context.Context, c BlobConfig) (BlobStorage, error)
}

// BlobConfig is what a BlobBackend gets from the settings.
type BlobConfig struct {
	// URL is settings.memory.blobs. See [ParseURL].
	URL string
	// Options are settings.memory.blob_options; see [BlobConfig.Decode].
	Options json.RawMessage
	// Timeout bounds a request without its body; it is positive.
	Timeout time.Duration
	// Logger is not nil.
	Logger *slog.Logger
}

// Decode stores Options in what v points to, as [Config.Decode].
func (c BlobConfig) Decode(v any) error {
	const key = "memory.blob_options"
	settings := tea.Settings{}
	if len(c.Options) > 0 {
		settings[key] = c.Options
	}
	return settings.Decode(key, v)
}

// CloseBlobs closes a storage if it is an [io.Closer].
func CloseBlobs(b BlobStorage) error {
	if c, ok := b.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// ParseURL parses the URL of a setting. The scheme must be one of schemes. The
// errors are validation_errors and do not repeat the URL, which can contain a
// password.
func ParseURL(setting, raw string, schemes ...string) (*url.URL, error) {
	if raw == "" {
		return nil, tea.Errorf(tea.ValidationError, "settings.%s is not set; set it to a URL such as %s://...", setting, schemes[0])
	}
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, tea.Errorf(tea.ValidationError, "settings.%s is not a valid URL; percent-encode special characters in its parts", setting)
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, tea.Errorf(tea.ValidationError, "settings.%s must begin with %s://, not %q", setting, strings.Join(schemes, ":// or "), u.Scheme)
	}
	return u, nil
}

// IsLoopback reports whether a host of a URL, without its port, is this device.
// Connections to other hosts need TLS.
func IsLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// NeedsTLS returns the validation_error of a setting whose URL has no TLS
// although its host is not this device.
func NeedsTLS(setting, host, remedy string) error {
	return tea.Errorf(tea.ValidationError, "settings.%s: the connection to %s needs TLS; %s", setting, host, remedy)
}
