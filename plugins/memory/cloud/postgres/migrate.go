package postgres

import (
	"context"
	_ "embed" // for the statements
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	tea "github.com/the-edge-agent/tea/sdk"
)

// versions are the versions of the schema, each as its statements. Released versions must not change.
var versions = []string{version1, version2, version3, version4}

var (
	//go:embed schema/1.sql
	version1 string
	//go:embed schema/2.sql
	version2 string
	//go:embed schema/3.sql
	version3 string
	//go:embed schema/4.sql
	version4 string
	//go:embed schema/row_security.sql
	rowSecurity string
	//go:embed schema/row_security_deleted.sql
	rowSecurityDeleted string
)

// migrate creates or upgrades the tables. Concurrent processes wait for each other.
func (d *database) migrate(ctx context.Context, c *pgx.Conn) error {
	if err := d.migrating.lock(ctx); err != nil {
		return err
	}
	defer d.migrating.unlock()
	if d.ready.Load() {
		return nil
	}
	have, err := d.version(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case have > len(versions):
		return tea.Errorf(tea.DependencyMissing, "the memory in PostgreSQL was written by a newer version (schema %d, this one supports %d); install that version of the memory plugin", have, len(versions))
	case have < len(versions) && d.readOnly != "":
		return tea.Errorf(tea.NotFound, "there is no memory of this version in the schema %s of the database, and settings.memory.read_only prevents creating one", d.schema)
	case have < len(versions):
		if err := d.upgrade(ctx, c); err != nil {
			return err
		}
	}
	if d.rowSecurity {
		if err := d.createPolicies(ctx, c, "ltm", rowSecurity); err != nil {
			return err
		}
		if err := d.createPolicies(ctx, c, "tea_deleted", rowSecurityDeleted); err != nil {
			return err
		}
	}
	if d.extension, err = findExtension(ctx, c); err != nil {
		return err
	}
	d.ready.Store(true)
	return nil
}

// createPolicies creates the policies of the option row_security for a table. It fails for users other than the owner, so they
// cannot use a memory without policies.
func (d *database) createPolicies(ctx context.Context, c *pgx.Conn, table, statements string) error {
	var enabled bool
	const isEnabled = "SELECT relrowsecurity FROM pg_class WHERE oid = $1::regclass"
	if err := c.QueryRow(ctx, isEnabled, table).Scan(&enabled); err != nil || enabled {
		return err
	}
	err := d.withSchemaLock(ctx, c, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, isEnabled, table).Scan(&enabled); err != nil || enabled {
			return err
		}
		_, err := tx.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return fmt.Errorf("enable row-level security: %w", err)
	}
	return nil
}

// withSchemaLock runs fn in a transaction while no other process changes the tables'
// definitions.
func (d *database) withSchemaLock(ctx context.Context, c *pgx.Conn, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		h := fnv.New64a()
		_, _ = io.WriteString(h, "tea/memory/"+d.schema) // a hash never fails
		key := int64(h.Sum64())                          //nolint:gosec // any number will do
		// Waiting, and changing a large table, takes longer than other statements.
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", key); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (d *database) version(ctx context.Context, c conn) (n int, err error) {
	err = c.QueryRow(ctx, "SELECT version FROM tea_schema").Scan(&n)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42P01" || errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// upgrade applies the missing versions in one transaction.
func (d *database) upgrade(ctx context.Context, c *pgx.Conn) error {
	return d.withSchemaLock(ctx, c, func(tx pgx.Tx) error {
		if err := d.createSchema(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS tea_schema (version integer NOT NULL)"); err != nil {
			return err
		}
		have, err := d.version(ctx, tx)
		if err != nil {
			return err
		}
		for n := have; n < len(versions); n++ {
			if _, err := tx.Exec(ctx, versions[n], pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("bring the schema to version %d: %w", n+1, err)
			}
		}
		_, err = tx.Exec(ctx, "DELETE FROM tea_schema")
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO tea_schema VALUES ($1)", len(versions))
		}
		return err
	})
}

// createSchema creates the schema. IF NOT EXISTS would need the permission to create schemas even if the schema exists.
func (d *database) createSchema(ctx context.Context, c conn) error {
	var exists bool
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", d.schema).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := c.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{d.schema}.Sanitize())
	return err
}

// tables are the tables of the schema with the data of a memory.
const tables = "ltm, documents, vectors, vector_collections, vectors_gone, blobs, blob_parts, blobs_gone, tea_rows, tea_tables, tea_calls"

func (d *database) Reset(ctx context.Context) error {
	_, err := d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(noteSQL, id)
		b.Queue("TRUNCATE " + tables)
		b.Queue("COMMIT")
		return nil, d.transaction(ctx, c, b)
	})
	return err
}

func (d *database) Inspect(ctx context.Context) (entries, bytes map[string]int64, err error) {
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		entries, bytes = map[string]int64{}, map[string]int64{}
		rows, _ := c.Query(ctx, `SELECT true, 'ltm', count(*) FROM ltm UNION ALL SELECT true, 'vectors', count(*) FROM vectors
			UNION ALL SELECT true, kind, count(*) FROM documents GROUP BY kind UNION ALL SELECT true, 'rows', count(*) FROM tea_rows
			UNION ALL SELECT false, 'database', sum(pg_total_relation_size(relid))::bigint FROM pg_statio_user_tables WHERE schemaname = $1 AND relname NOT LIKE 'blob%'
			UNION ALL SELECT false, 'blobs', sum(pg_total_relation_size(relid))::bigint FROM pg_statio_user_tables WHERE schemaname = $1 AND relname LIKE 'blob%'`, d.schema)
		var count bool
		var name string
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&count, &name, &n}, func() error {
			if count {
				entries[name] = n
			} else {
				bytes[name] = n
			}
			return nil
		})
		return err
	})
	return entries, bytes, err
}
