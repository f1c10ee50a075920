package postgres

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// name is the value of settings.memory.engine.
const name = "postgres"

// Option adds PostgreSQL to the memory's bundle.
func Option() memory.Option {
	return memory.WithBackend(store.Backend{Name: name, Open: Open})
}

// Options are settings.memory.options.
type Options struct {
	Schema      string `json:"schema,omitempty" default:"tea" maxLength:"63" doc:"schema of the tables; each schema is a separate memory"`
	RowSecurity bool   `json:"row_security,omitempty" doc:"other users than the owner of the tables see only the namespaces of the long-term memory that the table tea_access lists for them"`
}

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

const (
	defaultConnections = 5
	// idleTransaction is the time after which the server ends a transaction whose client no longer responds.
	idleTransaction = time.Minute
	// urlSetting is named in errors.
	urlSetting = "memory.url"
)

// Open opens the stores. It does not connect.
func Open(ctx context.Context, c store.Config) (*store.Stores, error) {
	d, err := open(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	return d.stores(c), nil
}

// open creates the pool. tracer can be nil.
func open(ctx context.Context, c store.Config, tracer pgx.QueryTracer) (*database, error) {
	var o Options
	if err := c.Decode(&o); err != nil {
		return nil, err
	}
	if !schemaName.MatchString(o.Schema) || strings.HasPrefix(o.Schema, "pg_") {
		return nil, tea.Errorf(tea.ValidationError, "settings.memory.options.schema %q is not valid: use letters, digits, _ and -, not beginning with a digit or pg_", o.Schema)
	}
	terms, err := fulltext.NewTerms(c.Language)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "settings.ltm.language: %w", err)
	}
	config, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	d := &database{schema: o.Schema, rowSecurity: o.RowSecurity, timeout: c.Timeout, readOnly: c.ReadOnly, now: c.Now, terms: terms, logger: c.Logger, retries: retries, migrating: newTurn()}
	d.pgvector = newExtension(d)
	config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{o.Schema}.Sanitize()
	config.ConnConfig.Tracer = tracer
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "settings.%s: %w", urlSetting, err)
	}
	return d, nil
}

// poolConfig reads the URL. Its errors do not contain the password.
func poolConfig(c store.Config) (*pgxpool.Config, error) {
	if _, err := store.ParseURL(urlSetting, c.URL, "postgres", "postgresql"); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "settings.%s is not a valid address of PostgreSQL: use postgres://user@host:port/database?sslmode=verify-full", urlSetting)
	}
	conn := config.ConnConfig
	if c.Token != "" {
		conn.Password = c.Token
	}
	if conn.TLSConfig == nil && !local(conn.Host) {
		return nil, store.NeedsTLS(urlSetting, conn.Host, "add sslmode=verify-full to it")
	}
	kept := conn.Fallbacks[:0]
	for _, f := range conn.Fallbacks {
		if f.TLSConfig != nil || local(f.Host) { // sslmode=prefer tries without TLS
			kept = append(kept, f)
		}
	}
	conn.Fallbacks = kept
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn.ConnectTimeout = min(c.Timeout, 10*time.Second)
	conn.RuntimeParams["application_name"] = "tea"
	conn.RuntimeParams["statement_timeout"] = millis(c.Timeout)
	conn.RuntimeParams["idle_in_transaction_session_timeout"] = millis(idleTransaction)
	if c.ReadOnly != "" {
		conn.RuntimeParams["default_transaction_read_only"] = "on"
	}
	if right := conn.ValidateConnect; right != nil {
		conn.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
			if err := right(ctx, c); err != nil {
				return wrongServerError{err}
			}
			return nil
		}
	}
	// A ping after a pause would be a second round trip. database.do replaces a lost connection.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.MaxConns = defaultConnections
	if c.Connections > 0 {
		config.MaxConns = int32(min(c.Connections, 1000)) //nolint:gosec // it is bounded
	}
	return config, nil
}

// local reports whether a host is this device: a socket or the loopback interface.
func local(host string) bool { return strings.HasPrefix(host, "/") || store.IsLoopback(host) }

func (d *database) stores(c store.Config) *store.Stores {
	c.Engine = name
	s := records.Open(d, c)
	s.SQL, s.Tables = selector{d}, tabular.NewShared(s.Metadata, rowStore{d}, tableSelector{selector{d}})
	return s
}
