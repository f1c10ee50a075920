package remotesqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"
)

// version is the version of the tables. Older tables are migrated, newer ones are refused.
const version = 3

// The names of the rows of tea_settings.
const (
	settingVersion  = "version"
	settingLanguage = "language"
	settingFullText = "fulltext"
	// settingIdentity identifies the contents; see [store.Replica].
	settingIdentity = "identity"
	// settingUntracked exists within a transaction whose deletions leave no tombstones.
	settingUntracked = "untracked"
)

var tables = []string{
	"CREATE TABLE IF NOT EXISTS tea_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
	"CREATE TABLE IF NOT EXISTS tea_ops (id TEXT PRIMARY KEY, done INTEGER NOT NULL, result TEXT, at INTEGER NOT NULL DEFAULT (unixepoch()))",
	"CREATE INDEX IF NOT EXISTS tea_ops_at ON tea_ops (at)",
	// Parameters of a transaction, sent before it to servers that need it.
	"CREATE TABLE IF NOT EXISTS tea_args (id TEXT NOT NULL, n INTEGER NOT NULL, value TEXT NOT NULL, at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (id, n))",
	"CREATE TABLE IF NOT EXISTS tea_seq (name TEXT PRIMARY KEY, n INTEGER NOT NULL)",
	"INSERT OR IGNORE INTO tea_seq VALUES ('ltm', 0), ('documents', 0), ('vectors', 0)",
	`CREATE TABLE IF NOT EXISTS ltm (id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL,
		value TEXT, metadata TEXT, content_hash TEXT NOT NULL, size INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
		expires_at INTEGER, UNIQUE (namespace, key))`,
	"CREATE INDEX IF NOT EXISTS ltm_seq ON ltm (seq)",
	"CREATE INDEX IF NOT EXISTS ltm_hash ON ltm (content_hash)",
	"CREATE INDEX IF NOT EXISTS ltm_expires ON ltm (expires_at) WHERE expires_at IS NOT NULL",
	"CREATE TABLE IF NOT EXISTS ltm_parts (hash TEXT NOT NULL, part INTEGER NOT NULL, data TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (hash, part))",
	"CREATE TABLE IF NOT EXISTS documents (kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (kind, id))",
	"CREATE INDEX IF NOT EXISTS documents_seq ON documents (kind, seq)",
	"CREATE TABLE IF NOT EXISTS vector_collections (name TEXT PRIMARY KEY, dimension INTEGER NOT NULL, born INTEGER NOT NULL)",
	`CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,
		text TEXT NOT NULL, embedding TEXT NOT NULL, metadata TEXT, UNIQUE (collection, name))`,
	"CREATE INDEX IF NOT EXISTS vectors_seq ON vectors (collection, seq)",
	"CREATE TABLE IF NOT EXISTS vectors_gone (seq INTEGER PRIMARY KEY, collection TEXT NOT NULL, id INTEGER NOT NULL)",
	"CREATE TABLE IF NOT EXISTS blobs (name TEXT PRIMARY KEY, content TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL)",
	"CREATE TABLE IF NOT EXISTS blob_parts (content TEXT NOT NULL, part INTEGER NOT NULL, data TEXT NOT NULL, expires_at INTEGER, PRIMARY KEY (content, part))",
	"CREATE INDEX IF NOT EXISTS blob_parts_expires ON blob_parts (expires_at) WHERE expires_at IS NOT NULL",
}

// replicaTables are the tables of version 2. Triggers record deletions, so deletions of devices with an older version
// of the plugin are recorded too.
var replicaTables = []string{
	"CREATE TABLE IF NOT EXISTS tea_deleted (feed TEXT NOT NULL, seq INTEGER NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL, deleted_at INTEGER NOT NULL, PRIMARY KEY (feed, seq)) WITHOUT ROWID",
	"CREATE INDEX IF NOT EXISTS tea_deleted_name ON tea_deleted (feed, space, key)",
	"CREATE TABLE IF NOT EXISTS tea_forgotten (feed TEXT PRIMARY KEY, seq INTEGER NOT NULL)",
	"CREATE INDEX IF NOT EXISTS documents_feed ON documents (seq)",
	"CREATE INDEX IF NOT EXISTS vectors_feed ON vectors (seq)",
	notesDeletions("ltm", "namespace", "key"),
	notesDeletions("documents", "kind", "id"),
	notesDeletions("vectors", "collection", "name"),
	"INSERT OR IGNORE INTO tea_settings VALUES ('" + settingIdentity + "', lower(hex(randomblob(16))))",
}

// serverNow is the server's time in microseconds.
const serverNow = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"

// notesDeletions returns the trigger that adds the tombstones of a table. The feed has the table's name.
func notesDeletions(table, space, key string) string {
	return fmt.Sprintf(`CREATE TRIGGER IF NOT EXISTS %[1]s_deleted AFTER DELETE ON %[1]s WHEN NOT EXISTS (SELECT 1 FROM tea_settings WHERE name = '%[4]s') BEGIN
		UPDATE tea_seq SET n = n + 1 WHERE name = '%[1]s';
		INSERT INTO tea_deleted SELECT '%[1]s', n, OLD.%[2]s, OLD.%[3]s, %[5]s FROM tea_seq WHERE name = '%[1]s';
	END`, table, space, key, settingUntracked, serverNow)
}

// untracked adds statements whose deletions leave no tombstones.
func (w *write) untracked(add func()) {
	w.add("INSERT OR IGNORE INTO tea_settings SELECT '" + settingUntracked + "', '1' WHERE " + pending)
	add()
	w.add("DELETE FROM tea_settings WHERE name = '" + settingUntracked + "' AND " + pending)
}

// textTable is separate because a server can lack FTS5.
const textTable = `CREATE VIRTUAL TABLE IF NOT EXISTS ltm_text USING fts5(stems, spelled, forms, content='', contentless_delete=1, tokenize="ascii tokenchars '_'")`

// data are the tables that Reset empties.
var data = []string{"ltm", "ltm_parts", "documents", "vector_collections", "vectors", "vectors_gone", "blobs", "blob_parts", "tea_deleted", "tea_forgotten", "tea_rows", "tea_tables", "tea_calls"}

// prepare reads the settings of the database at the first call, and creates missing tables.
func (d *database) prepare(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select { // not a mutex, because waiting must end with the context
	case d.prepareLock <- struct{}{}:
		defer func() { <-d.prepareLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.prepared {
		return nil
	}
	settings, err := d.readSettings(ctx)
	if isQueryError(err) { // the tables do not exist
		if d.readOnly != "" {
			return tea.Errorf(tea.NotFound, "there is no memory in the database, which is opened read-only: %s", d.readOnly)
		}
		if err = d.create(ctx); err == nil {
			settings, err = d.readSettings(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	have, _ := strconv.Atoi(settings[settingVersion])
	if have > version {
		return tea.Errorf(tea.DependencyMissing, "the database was written by a newer version (schema %d, this one supports %d); install that version of the memory plugin", have, version)
	}
	if language := settings[settingLanguage]; language != d.terms.Language() {
		return tea.Errorf(tea.ValidationError, "the entries of the database are indexed as %s, not as %s; set settings.ltm.language: %s", language, d.terms.Language(), language)
	}
	if have < version && d.readOnly == "" {
		if err := d.migrate(ctx); err != nil {
			return fmt.Errorf("bring the database to schema %d: %w", version, err)
		}
	}
	d.fullText, d.prepared = settings[settingFullText] == "1", true
	return nil
}

func (d *database) readSettings(ctx context.Context) (map[string]string, error) {
	rows, err := d.server.Query(ctx, Statement{SQL: "SELECT name, value FROM tea_settings"})
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, row := range rows {
		settings[text(row, 0)] = text(row, 1)
	}
	return settings, nil
}

// migrate upgrades the tables of older versions. Devices with these versions can continue.
func (d *database) migrate(ctx context.Context) error {
	var statements []Statement
	for _, sql := range slices.Concat(replicaTables, rowTables) {
		statements = append(statements, Statement{SQL: sql})
	}
	statements = append(statements, Statement{SQL: fmt.Sprintf("UPDATE tea_settings SET value = '%d' WHERE name = '%s' AND CAST(value AS INTEGER) < %[1]d", version, settingVersion)})
	_, err := d.server.Transaction(ctx, rand.Text(), statements...)
	return err
}

// create creates the tables. Several processes can do so concurrently.
func (d *database) create(ctx context.Context) error {
	var statements []Statement
	for _, sql := range slices.Concat(tables, replicaTables, rowTables) {
		statements = append(statements, Statement{SQL: sql})
	}
	settings := func(fullText string) Statement {
		return Statement{SQL: "INSERT OR IGNORE INTO tea_settings VALUES ('" + settingVersion + "', ?1), ('" + settingLanguage + "', ?2), ('" + settingFullText + "', ?3)", Args: []string{integer(version), d.terms.Language(), fullText}}
	}
	with := slices.Concat(statements, []Statement{{SQL: textTable}, settings("1")})
	_, err := d.server.Transaction(ctx, rand.Text(), with...)
	if isQueryError(err) {
		d.logger.Warn("the server has no full-text search", "error", err.Error())
		_, err = d.server.Transaction(ctx, rand.Text(), append(statements, settings("0"))...)
	}
	return err
}

func isQueryError(err error) bool {
	e := new(tea.Error)
	return errors.As(err, &e) && e.Type == tea.QueryError
}
