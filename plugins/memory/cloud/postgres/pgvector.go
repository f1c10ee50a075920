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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

var (
	//go:embed schema/pgvector.sql
	pgvectorSchema string
	//go:embed schema/pgvector_filled.sql
	pgvectorFilled string
)

const (
	// indexFrom is the number of items from which a collection is indexed. The server compares fewer items with a query
	// in about 10 ms.
	indexFrom = 10_000
	// prepareNow is the largest size of a table whose columns the first search fills, about 8,000 vectors of 384
	// numbers. Larger tables are filled in the background.
	prepareNow = 16 << 20
	// fillAtOnce is the number of rows that are filled in a transaction, during which writers wait.
	fillAtOnce = 200
	// detectInterval is when an unusable extension is looked for again.
	detectInterval = 10 * time.Minute
	// maxUnit is the maximum dimension of the type vector.
	maxUnit = 16_000
)

// attempts are the waits after failures in the background.
var attempts = backoff.Policy{Base: time.Minute, Max: time.Hour, Multiplier: 2, Jitter: 0.5}

type extension struct {
	d *database
	// indexFrom and prepareNow are the constants, except in tests.
	indexFrom  int
	prepareNow int64
	now        func() time.Time

	// detecting is held while the extension is looked for. It is locked before mu.
	detecting turn

	mu    sync.Mutex
	state extensionState
	// schema is the quoted schema of the extension.
	schema string
	// failures counts the failures to prepare the tables. again is when the extension is looked for again; zero =
	// never, or while the tables are being prepared.
	failures int
	again    time.Time
	// building has the indexes that this process is building or has failed to build.
	building map[string]*building
	built    map[string]bool // the known indexes
	closed   bool

	// The background work, which stop ends.
	background sync.WaitGroup
	ctx        context.Context //nolint:containedctx // for the goroutines
	stop       context.CancelFunc
}

// building is an index that is being built, or that is built again after failures.
type building struct {
	running  bool
	failures int
	again    time.Time
}

func newExtension(d *database) *extension {
	e := &extension{d: d, detecting: newTurn(), indexFrom: indexFrom, prepareNow: prepareNow, now: time.Now, building: map[string]*building{}, built: map[string]bool{}}
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
	if err := e.detecting.lock(ctx); err != nil {
		return "", err
	}
	defer e.detecting.unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == extensionUnused && !e.again.IsZero() && !e.now().Before(e.again) {
		e.redetect()
	}
	if e.state == extensionUnknown {
		e.mu.Unlock()
		err := e.detect(ctx)
		e.mu.Lock()
		if err != nil {
			return "", err
		}
	}
	if e.state == extensionReady {
		return e.schema, nil
	}
	return "", nil
}

// found describes the extension in a database.
type found struct {
	version, schema string // "" = not installed, or not accessible to this user
	prepared        bool   // the columns exist
	bytes           int64  // the size of the vectors table
}

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

// detect decides how searches use the extension that the first connection found, and adds missing columns. The caller
// holds detecting.
func (e *extension) detect(ctx context.Context) error {
	if err := e.d.do(ctx, reading, func(context.Context, conn) error { return nil }); err != nil {
		return err
	}
	if err := e.d.migrating.lock(ctx); err != nil {
		return err
	}
	f := e.d.extension
	e.d.migrating.unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.schema = pgx.Identifier{f.schema}.Sanitize()
	e.state, e.again = extensionUnused, e.now().Add(detectInterval)
	switch {
	case f.version == "", !f.prepared && e.d.readOnly != "":
	case !supported(f.version):
		e.d.logger.Info("vectors are compared in the plugin: the extension vector is too old", "version", f.version, "needed", "0.8.0")
	case f.prepared:
		e.state = extensionReady
	case f.bytes <= e.prepareNow:
		schema := e.schema
		e.mu.Unlock()
		err := e.prepare(ctx, schema)
		e.mu.Lock()
		if ctx.Err() != nil {
			e.state = extensionUnknown
			return ctx.Err()
		}
		e.prepared(err)
	default:
		e.again = time.Time{}
		schema := e.schema
		e.start(func(ctx context.Context) {
			err := e.prepare(ctx, schema)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.prepared(err)
		})
	}
	return nil
}

// prepared records the end of prepare. The caller holds the lock.
func (e *extension) prepared(err error) {
	if err == nil {
		e.state, e.failures = extensionReady, 0
		return
	}
	e.failures++
	e.again = e.now().Add(attempts.Wait(e.failures))
	e.failed("vectors are compared in the plugin: the tables cannot be prepared for the extension vector", err)
}

// redetect makes the next connection look for the extension. The caller holds the lock.
func (e *extension) redetect() {
	e.state, e.built = extensionUnknown, map[string]bool{}
	e.d.ready.Store(false)
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

// forget makes the next search look for the extension again if err reports that a part of it is missing.
func (e *extension) forget(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "42703", "42704", "42883", "3F000": // column, type, function, schema
		e.mu.Lock()
		defer e.mu.Unlock()
		e.redetect()
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

// close ends the background work. The next process builds an unfinished index again.
func (e *extension) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.background.Wait()
}

// connect runs fn on a connection outside of the pool, without statement time-outs.
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

const isPrepared = "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'unit' AND NOT attisdropped)"

// prepare adds and fills the columns, unless another process has done so. It never blocks others for longer than one
// statement.
func (e *extension) prepare(ctx context.Context, schema string) error {
	return e.connect(ctx, func(c *pgx.Conn) error {
		// The lock ends with the connection.
		if _, err := c.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", "tea/vectors/"+e.d.schema); err != nil {
			return err
		}
		var prepared bool
		if err := c.QueryRow(ctx, isPrepared).Scan(&prepared); err != nil || prepared {
			return err
		}
		change := func(sql string) error {
			return e.d.withSchemaLock(ctx, c, func(tx pgx.Tx) error {
				// While a change of the table waits for a lock, all later statements wait too.
				_, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'; "+strings.ReplaceAll(sql, "{extension}", schema), pgx.QueryExecModeSimpleProtocol)
				return err
			})
		}
		if err := change(pgvectorSchema); err != nil {
			return err
		}
		for last, n := int64(0), fillAtOnce; n == fillAtOnce; {
			err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				// This is the lock of all writers of vectors.
				if _, err := tx.Exec(ctx, "SELECT 1 FROM tea_seq WHERE name = 'vectors' FOR UPDATE"); err != nil {
					return err
				}
				return tx.QueryRow(ctx, fillSQL, last, fillAtOnce).Scan(&n, &last)
			})
			if err != nil {
				return err
			}
		}
		return change(pgvectorFilled)
	})
}

const fillSQL = `WITH next AS (SELECT id FROM vectors WHERE id > $1 ORDER BY id LIMIT $2),
	filled AS (UPDATE vectors AS v SET unit_new = tea_unit(v.embedding), facts = tea_facts(v.metadata) FROM next WHERE v.id = next.id AND v.unit_new IS NULL)
	SELECT count(*), coalesce(max(id), 0) FROM next`

// indexName returns the name of a collection's index.
func indexName(collection string, dimension int) string {
	sum := sha256.Sum256([]byte(collection))
	return fmt.Sprintf("vectors_near_%s_%d", hex.EncodeToString(sum[:8]), dimension)
}

// index describes an index of vectors.
type index struct {
	expression, typ, class string
	// half reports whether numbers are rounded to 16 bits.
	half bool
}

// indexOf returns the index for vectors of a dimension; false if none supports it.
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

// only returns the condition for the vectors of a collection, and of its index.
func only(schema, collection string, dimension int) string {
	return fmt.Sprintf(`collection = '\x%x'::bytea AND %s.vector_dims(unit) = %d`, collection, schema, dimension)
}

func (e *extension) hasIndex(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.built[name]
}

func (e *extension) addIndex(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.built[name] = true
}

// build builds the index of a collection in the background.
func (e *extension) build(schema, collection string, dimension int) {
	of, ok := indexOf(schema, dimension)
	name := indexName(collection, dimension)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !ok || e.d.readOnly != "" {
		return
	}
	b := e.building[name]
	if b == nil {
		b = &building{}
		e.building[name] = b
	}
	if b.running || e.now().Before(b.again) {
		return
	}
	b.running = true
	e.start(func(ctx context.Context) {
		sql := fmt.Sprintf("CREATE INDEX CONCURRENTLY %s ON vectors USING hnsw (%s %s) WHERE %s", name, of.expression, of.class, only(schema, collection, dimension))
		err := e.connect(ctx, func(c *pgx.Conn) error { return createIndex(ctx, c, name, sql) })
		e.mu.Lock()
		defer e.mu.Unlock()
		if b.running = false; err == nil {
			b.failures = 0
			return
		}
		b.failures++
		b.again = e.now().Add(attempts.Wait(b.failures))
		e.failed(fmt.Sprintf("the index of collection %q cannot be built; its vectors are compared one by one", collection), err)
	})
}

// createIndex creates an index, unless it exists or another process is creating
// one.
func createIndex(ctx context.Context, c *pgx.Conn, name, sql string) error {
	// Two concurrent index builds in one database wait for each other. The lock ends with the connection.
	var locked, there, valid bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('tea/vectors', 0))").Scan(&locked); err != nil || !locked {
		return err // the next search tries again
	}
	err := c.QueryRow(ctx, "SELECT count(*) > 0, coalesce(bool_and(indisvalid), false) FROM pg_index WHERE indexrelid = to_regclass($1)", name).Scan(&there, &valid)
	if err != nil || valid {
		return err
	}
	if there { // left by an interrupted process
		if _, err := c.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name); err != nil {
			return err
		}
	}
	if _, err := c.Exec(ctx, sql); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "ANALYZE vectors")
	return err
}
