package postgres

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the statements
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed schema/pgvector.sql
var pgvectorSchema string

const (
	// indexFrom is the number of items from which a collection has an index. The server
	// compares fewer with a query in about 10 ms.
	indexFrom = 10_000
	// prepareNow is the size of the table up to which the columns are added before the
	// first search, those of about 8,000 vectors of 384 numbers. For a larger one they
	// are added in the background.
	prepareNow = 16 << 20
	// maxUnit is the largest dimension of the type vector.
	maxUnit = 16_000
)

// extension is the extension vector of the server. It is safe for concurrent use.
type extension struct {
	d *database
	// indexFrom is the constant, except in tests.
	indexFrom int

	mu    sync.Mutex
	state extensionState
	// schema is that of the extension, quoted.
	schema string
	// building has the collections whose index this process has built, is building or
	// failed to build.
	building map[string]bool
	built    map[string]bool // the indexes that were seen
	closed   bool

	// The work in the background, which stop ends.
	background sync.WaitGroup
	ctx        context.Context //nolint:containedctx // that of the goroutines
	stop       context.CancelFunc
}

func newExtension(d *database) *extension {
	e := &extension{d: d, indexFrom: indexFrom, building: map[string]bool{}, built: map[string]bool{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

type extensionState int

const (
	extensionUnknown extensionState = iota
	extensionUnused                 // absent, or the columns cannot be added or are being added
	extensionReady
)

// use returns the schema of the extension, "" if searches cannot use it.
func (e *extension) use(ctx context.Context) (schema string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == extensionUnknown {
		if err := e.detect(ctx); err != nil {
			return "", err
		}
	}
	if e.state == extensionReady {
		return e.schema, nil
	}
	return "", nil
}

// found is what a database has of the extension.
type found struct {
	version, schema string // "" = it is not installed, or not for this user
	prepared        bool   // the columns exist
	bytes           int64  // the size of the table of vectors
}

// findExtension looks for the extension.
func findExtension(ctx context.Context, c conn) (f found, err error) {
	err = c.QueryRow(ctx, `SELECT e.extversion, n.nspname,
			EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'unit' AND NOT attisdropped),
			pg_table_size('vectors'::regclass)
		FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector' AND has_schema_privilege(n.oid, 'USAGE')`).
		Scan(&f.version, &f.schema, &f.prepared, &f.bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return found{}, nil
	}
	return f, err
}

// detect decides how searches use what the first connection has found, and adds the
// columns where they are missing.
func (e *extension) detect(ctx context.Context) error {
	if err := e.d.do(ctx, reading, func(context.Context, conn) error { return nil }); err != nil {
		return err
	}
	e.d.migrating.Lock()
	f := e.d.extension
	e.d.migrating.Unlock()
	e.schema = pgx.Identifier{f.schema}.Sanitize()
	switch {
	case f.version == "":
		e.state = extensionUnused
	case !supported(f.version):
		e.d.logger.Info("vectors are compared in the plugin: the extension vector is too old", "version", f.version, "needed", "0.8.0")
		e.state = extensionUnused
	case f.prepared:
		e.state = extensionReady
	case e.d.readOnly != "":
		e.state = extensionUnused
	case f.bytes <= prepareNow:
		if err := e.prepare(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.failed("vectors are compared in the plugin: the tables cannot be prepared for the extension vector", err)
			e.state = extensionUnused
			return nil
		}
		e.state = extensionReady
	default:
		e.state = extensionUnused
		e.start(func(ctx context.Context) {
			if err := e.prepare(ctx); err != nil {
				e.failed("vectors are compared in the plugin: the tables cannot be prepared for the extension vector", err)
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			e.state = extensionReady
		})
	}
	return nil
}

// supported reports whether a version has iterative scans.
func supported(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > 0 || minor >= 8)
}

// failed logs an error of work that searches do not depend on.
func (e *extension) failed(message string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	e.d.logger.Warn(message, "error", err.Error())
}

// forget makes the next search look for the extension again, if err says that
// something of it is missing.
func (e *extension) forget(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "42703", "42704", "42883", "3F000": // column, type, function, schema
		e.mu.Lock()
		defer e.mu.Unlock()
		e.state = extensionUnknown
		e.d.ready.Store(false) // the next connection looks for it again
		return true
	}
	return false
}

// start runs fn in the background until close. The caller holds the lock.
func (e *extension) start(fn func(ctx context.Context)) {
	if !e.closed {
		e.background.Go(func() { fn(e.ctx) })
	}
}

// close ends the work in the background. An index that is not finished is built
// again by the next process.
func (e *extension) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.background.Wait()
}

// connect runs fn on a connection outside of the pool, whose statements have no
// time-out.
func (e *extension) connect(ctx context.Context, fn func(c *pgx.Conn) error) error {
	config := e.d.pool.Config().ConnConfig.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }() // fn is done
	return fn(c)
}

// prepare adds the columns, unless another process has.
func (e *extension) prepare(ctx context.Context) error {
	sql := strings.ReplaceAll(pgvectorSchema, "{extension}", e.schema)
	return e.connect(ctx, func(c *pgx.Conn) error {
		return e.d.alone(ctx, c, func(tx pgx.Tx) error {
			var prepared bool
			err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'unit' AND NOT attisdropped)").Scan(&prepared)
			if err != nil || prepared {
				return err
			}
			_, err = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
			return err
		})
	})
}

// indexName returns the name of a collection's index.
func indexName(collection string, dimension int) string {
	sum := sha256.Sum256([]byte(collection))
	return fmt.Sprintf("vectors_near_%s_%d", hex.EncodeToString(sum[:8]), dimension)
}

// index is what an index of vectors contains.
type index struct {
	expression, typ, class string
	// half reports that the numbers are rounded to 16 bits.
	half bool
}

// indexOf returns the index of vectors of a dimension, unless no index takes it.
func indexOf(schema string, dimension int) (index, bool) {
	name := "vector"
	switch {
	case dimension > 4000:
		return index{}, false
	case dimension > 2000:
		name = "halfvec"
	}
	typ := fmt.Sprintf("%s.%s(%d)", schema, name, dimension)
	return index{expression: "(unit::" + typ + ")", typ: typ, class: schema + "." + name + "_cosine_ops", half: name == "halfvec"}, true
}

// only is the condition of the vectors of a collection, and of its index.
func only(schema, collection string, dimension int) string {
	return fmt.Sprintf(`collection = '\x%x'::bytea AND %s.vector_dims(unit) = %d`, collection, schema, dimension)
}

// known reports whether an index was seen.
func (e *extension) known(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.built[name]
}

// know notes that an index exists.
func (e *extension) know(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.built[name] = true
}

// build builds the index of a collection in the background, once.
func (e *extension) build(schema, collection string, dimension int) {
	of, ok := indexOf(schema, dimension)
	name := indexName(collection, dimension)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !ok || e.d.readOnly != "" || e.building[name] {
		return
	}
	e.building[name] = true
	e.start(func(ctx context.Context) {
		sql := fmt.Sprintf("CREATE INDEX CONCURRENTLY %s ON vectors USING hnsw (%s %s) WHERE %s", name, of.expression, of.class, only(schema, collection, dimension))
		err := e.connect(ctx, func(c *pgx.Conn) error {
			// Two that are built in one database at the same time wait for each other. The
			// lock ends with the connection.
			var alone, there, valid bool
			if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('tea/vectors', 0))").Scan(&alone); err != nil {
				return err
			}
			if !alone {
				e.mu.Lock()
				defer e.mu.Unlock()
				delete(e.building, name) // the next search tries again
				return nil
			}
			err := c.QueryRow(ctx, "SELECT count(*) > 0, coalesce(bool_and(indisvalid), false) FROM pg_index WHERE indexrelid = to_regclass($1)", name).Scan(&there, &valid)
			if err != nil || valid {
				return err
			}
			if there { // an earlier process was interrupted
				if _, err := c.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name); err != nil {
					return err
				}
			}
			if _, err := c.Exec(ctx, sql); err != nil {
				return err
			}
			_, err = c.Exec(ctx, "ANALYZE vectors")
			return err
		})
		if err != nil {
			e.failed(fmt.Sprintf("the index of collection %q cannot be built; its vectors are compared one by one", collection), err)
		}
	})
}
