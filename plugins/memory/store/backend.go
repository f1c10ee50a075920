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

// Backend is a database for settings.memory.engine, in addition to the embedded
// ones. A program adds it to the memory's bundle with memory.WithBackend.
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
	// Driver, if set, is used instead of Open, for a backend that is a [Driver]:
	// the stores are built on it. Like Open, it does not wait for the server.
	Driver func(ctx context.Context, c Config) (Driver, error)
	// Acknowledged is Stores.Acknowledged for a memory that Driver opens.
	Acknowledged string
	// Identify names the database of the settings. c has only URL and Options.
	// Settings with the same name share one open database. nil = URL and Options as
	// written identify it.
	Identify func(c Config) (string, error)
}

// Config is the configuration of a Backend from the settings and the memory.
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
	// Language is the language of the stored texts, as in settings.ltm.language:
	// the name of a Snowball stemmer, or "none".
	Language string
	// InlineBytes is the size of JSON from which a value is not stored in its row;
	// it is positive.
	InlineBytes int
	// Dir is a folder of this device for files of the backend. It belongs to this
	// URL, but several processes can use it at the same time. It need not exist.
	Dir string
	// ReadOnly is the reason why the stores are read-only; "" = they are writable.
	// A write then fails with a permission_denied that wraps [ErrReadOnly]; the
	// actions refuse it before they call a store.
	ReadOnly string
	// Blobs stores large contents if settings.memory.blobs is set; nil = the
	// backend stores them itself. The caller closes it.
	Blobs BlobStorage
	// Now is the clock for expiry and for the times of entries.
	Now func() time.Time
	// Logger is not nil.
	Logger *slog.Logger
}

// Decode stores Options in the struct that v points to, which has the tags of
// package sdk/schema. Invalid options are a validation_error.
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
	// "local" if it is only on this device until it is uploaded.
	Acknowledged string
	// Replica is for archives and memory.sync; nil = the backend does not support
	// them.
	Replica Replica
	// SQL runs the queries of memory.sql_query; nil = the backend does not support
	// SQL.
	SQL Selector
	// Tables are the tables of data.*; nil = the backend has none.
	Tables TableStore
	// Inspect returns the numbers of entries (ltm, vectors, and each kind of
	// document) and the sizes in bytes by part; nil = they are unknown.
	Inspect func(ctx context.Context) (entries, bytes map[string]int64, err error)
	// Reset removes all data; nil = the backend cannot do so.
	Reset func(ctx context.Context) error
	// Close ends background work and closes the connections. It is called after the
	// other parts were closed.
	Close func() error
}

// BlobBackend is a storage that a URL in settings.memory.blobs selects. A program
// adds it to the memory's bundle with memory.WithBlobs.
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

// BlobConfig is the configuration of a BlobBackend from the settings.
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

// Decode stores Options in the struct that v points to, like [Config.Decode].
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

// IsLoopback reports whether the host of a URL, without its port, is this device.
// Connections to other hosts need TLS.
func IsLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// NeedsTLS returns the validation_error for a setting whose URL has no TLS
// although its host is not this device.
func NeedsTLS(setting, host, remedy string) error {
	return tea.Errorf(tea.ValidationError, "settings.%s: the connection to %s needs TLS; %s", setting, host, remedy)
}
