package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// attacks are refused by both databases, or by the one that they are for. FILE
// is a file outside of the database's folder with the canary in it, NEW one
// that is not there.
var attacks = map[string][]struct {
	query   string
	dialect store.Dialect
}{
	"no SELECT": {
		{query: "DELETE FROM orders"},
		{query: "INSERT INTO orders VALUES (9, 'x', 1, '', '')"},
		{query: "UPDATE orders SET id = 1"},
		{query: "DROP TABLE orders"},
		{query: "ALTER TABLE orders ADD COLUMN x INTEGER"},
		{query: "CREATE TABLE x AS SELECT 1"},
		{query: "CREATE TEMP TABLE x AS SELECT 1"},
		{query: "CREATE VIEW x AS SELECT * FROM secret"},
		{query: "CREATE INDEX i ON orders (id)"},
		{query: "REPLACE INTO orders VALUES (1)"},
		{query: "TRUNCATE orders"},
		{query: "MERGE INTO orders USING notes ON orders.id = notes.id WHEN MATCHED THEN DELETE"},
		{query: "BEGIN"},
		{query: "COMMIT"},
		{query: "ROLLBACK"},
		{query: "SAVEPOINT x"},
		{query: "VACUUM"},
		{query: "VACUUM INTO 'NEW'"},
		{query: "ANALYZE"},
		{query: "REINDEX"},
		{query: "CHECKPOINT"},
		{query: "ATTACH 'FILE' AS f"},
		{query: "ATTACH DATABASE 'NEW' AS f"},
		{query: "DETACH main"},
		{query: "USE temp"},
		{query: "PRAGMA table_info(orders)"},
		{query: "PRAGMA database_list"},
		{query: "PRAGMA query_only = 0"},
		{query: "PRAGMA writable_schema = 1"},
		{query: "SET threads = 1"},
		{query: "RESET threads"},
		{query: "SET VARIABLE x = 1"},
		{query: "SET enable_external_access = true"},
		{query: "SET lock_configuration = false"},
		{query: "INSTALL httpfs"},
		{query: "LOAD httpfs"},
		{query: "LOAD 'FILE'"},
		{query: "FORCE INSTALL vss FROM community"},
		{query: "UPDATE EXTENSIONS"},
		{query: "COPY orders TO 'NEW'"},
		{query: "COPY (SELECT 1) TO 'NEW'"},
		{query: "COPY orders FROM 'FILE'"},
		{query: "COPY FROM DATABASE memory TO memory"},
		{query: "EXPORT DATABASE 'NEW'"},
		{query: "IMPORT DATABASE 'FILE'"},
		{query: "CALL duckdb_tables()"},
		{query: "CALL pragma_version()"},
		{query: "CREATE MACRO f(a) AS TABLE SELECT * FROM secret"},
		{query: "CREATE OR REPLACE FUNCTION upper(a) AS 'x'"},
		{query: "CREATE SECRET (TYPE s3)"},
		{query: "CREATE TYPE t AS ENUM ('a')"},
		{query: "CREATE SEQUENCE s"},
		{query: "CREATE VIRTUAL TABLE v USING fts5(a)"},
		{query: "CREATE TRIGGER t AFTER INSERT ON orders BEGIN SELECT 1; END"},
		{query: "PREPARE p AS SELECT 1"},
		{query: "EXECUTE p"},
		{query: "DEALLOCATE p"},
		{query: "COMMENT ON TABLE orders IS 'x'"},
		{query: "KILL 1"},
		{query: "EXPLAIN SELECT * FROM orders"},
		{query: "EXPLAIN ANALYZE SELECT 1"},
		{query: "EXPLAIN QUERY PLAN SELECT 1"},
		{query: "DESCRIBE secret"},
		{query: "DESCRIBE orders"},
		{query: "SUMMARIZE secret"},
		{query: "SHOW TABLES"},
		{query: "SHOW ALL TABLES"},
		{query: "SHOW DATABASES"},
		{query: "SHOW secret"},
		{query: "SELECT * INTO x FROM orders"},
		{query: "SELECT id FROM orders FOR UPDATE; DELETE FROM orders"},
		{query: "TABLE secret"},
		{query: "FROM secret"},
		{query: "PIVOT secret ON x"},
		{query: "PIVOT secret ON x IN ('a') USING count(*)"},
		{query: "PIVOT orders ON customer IN ('ann') USING max(getenv('HOME'))"},
		{query: "PIVOT orders ON getenv('HOME') IN ('ann') USING max(id)"},
		{query: "PIVOT orders ON customer IN (SELECT x FROM secret) USING max(id)"},
		{query: "PIVOT orders ON customer IN mood USING max(id)"},
		{query: "UNPIVOT secret ON x"},
		{query: "UNPIVOT orders ON getenv('HOME')"},
		{query: "SELECT * FROM orders PIVOT (max(id) FOR customer IN ('a')) JOIN secret ON true"},
		{query: "SELECT * FROM secret UNPIVOT (a FOR b IN (x))"},
		{query: "(DELETE FROM orders RETURNING *)"},
		{query: "SELECT * FROM (DELETE FROM orders RETURNING *)"},
		{query: "WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d"},
		{query: "WITH i AS (INSERT INTO orders VALUES (1) RETURNING id) SELECT * FROM i"},
		{query: "WITH x AS (SELECT 1) DELETE FROM orders"},
		{query: "WITH x AS (SELECT 1) INSERT INTO orders SELECT * FROM x"},
		{query: "SELECT 1 FROM (PRAGMA database_list)"},
		{query: "SELECT * FROM (SHOW TABLES)"},
		{query: "SELECT * FROM (DESCRIBE secret)"},
		{query: "FROM (SUMMARIZE secret)"},
		{query: "SELECT (ATTACH 'NEW')"},
	},
	"several statements": {
		{query: "SELECT 1; SELECT 2"},
		{query: "SELECT 1; DELETE FROM orders"},
		{query: ";SELECT 1; DROP TABLE orders;"},
		{query: "SELECT 1;;;; SELECT 2"},
		{query: "SELECT 1 --\n; DELETE FROM orders"},
		{query: "SELECT 1 /* ; */ ; DELETE FROM orders"},
		{query: "SELECT ';' ; DELETE FROM orders --'"},
		{query: "SELECT 1\r;\rDROP TABLE orders"},
		{query: "SELECT \"a;\" FROM orders; DROP TABLE orders"},
		{query: "SELECT 1) ; DELETE FROM orders; SELECT (1"},
		{query: "SELECT 1) UNION SELECT x FROM secret --"},
		{query: "SELECT 1\n) LIMIT 1; SELECT * FROM secret --"},
		{query: "SELECT 1) AS a, (SELECT * FROM secret"},
		{query: "SELECT $$;$$; SELECT * FROM secret", dialect: store.DuckDB},
		{query: "SELECT E'\\''; DELETE FROM orders --'", dialect: store.DuckDB},
		{query: "PRAGMA threads=1; SELECT 1"},
		{query: "SELECT 1; PRAGMA query_only=0"},
		{query: "SELECT 1;\u00a0DELETE FROM orders"},
	},
	"other tables": {
		{query: "SELECT * FROM secret"},
		{query: "SELECT count(*) FROM secret"},
		{query: "SELECT 1 FROM secret"},
		{query: "SELECT EXISTS (SELECT 1 FROM secret)"},
		{query: "select*from secret"},
		{query: "SELECT * FROM SECRET"},
		{query: `SELECT * FROM "secret"`},
		{query: `SELECT * FROM "SeCrEt"`},
		{query: "SELECT * FROM [secret]"},
		{query: "SELECT * FROM `secret`"},
		{query: "SELECT * FROM 'secret'"},
		{query: "SELECT * FROM main.secret"},
		{query: `SELECT * FROM "main"."secret"`},
		{query: "SELECT * FROM memory.main.secret"},
		{query: "SELECT * FROM memory.secret"},
		{query: "SELECT * FROM temp.secret"},
		{query: "SELECT * FROM hidden_notes"},
		{query: "SELECT private FROM notes"},
		{query: "SELECT n.* FROM notes n JOIN hidden_notes h USING (id)"},
		{query: "SELECT hidden_notes.private FROM notes"},
		{query: "SELECT id FROM orders UNION SELECT x FROM secret"},
		{query: "SELECT id FROM orders UNION ALL BY NAME SELECT x FROM secret"},
		{query: "SELECT id FROM orders EXCEPT SELECT x FROM secret"},
		{query: "SELECT id FROM orders INTERSECT SELECT x FROM secret"},
		{query: "SELECT * FROM orders, secret"},
		{query: "SELECT * FROM orders NATURAL JOIN secret"},
		{query: "SELECT * FROM orders LEFT JOIN secret ON true"},
		{query: "SELECT (SELECT x FROM secret)"},
		{query: "SELECT * FROM orders WHERE id IN (SELECT x FROM secret)"},
		{query: "SELECT * FROM orders WHERE customer IN secret"},
		{query: "SELECT * FROM orders ORDER BY (SELECT x FROM secret)"},
		{query: "SELECT id FROM orders GROUP BY (SELECT x FROM secret)"},
		{query: "SELECT id FROM orders LIMIT (SELECT count(*) FROM secret)"},
		{query: "SELECT CASE WHEN (SELECT x FROM secret) LIKE 'c%' THEN 1 END"},
		{query: "SELECT count(*) FILTER (WHERE EXISTS (SELECT * FROM secret)) FROM orders"},
		{query: "SELECT sum(id) OVER (ORDER BY (SELECT x FROM secret)) FROM orders"},
		{query: "VALUES ((SELECT x FROM secret))"},
		{query: "SELECT * FROM orders o, LATERAL (SELECT * FROM secret) s"},
		{query: "SELECT secret FROM secret"},
		{query: "SELECT secret.x FROM orders"},
		{query: "SELECT * FROM (secret)"},
		{query: "SELECT * FROM ((secret) CROSS JOIN orders)"},
		{query: "SELECT * FROM vault_rows"},
		{query: "SELECT * FROM main.vault"},
		{query: `SELECT * FROM main."VAULT"`},
		{query: "SELECT hidden FROM vault"},
		{query: "WITH vault AS (SELECT * FROM main.vault) SELECT * FROM vault"},
		{query: "WITH notes AS (SELECT * FROM main.vault) SELECT * FROM notes"},
		{query: "SELECT * FROM documents"},
		{query: "SELECT * FROM ltm"},
		{query: "SELECT * FROM vectors"},
		{query: "SELECT * FROM tea_schema"},
		{query: "SELECT * FROM tea_identity"},
		{query: "SELECT * FROM tea_answer"},
		{query: "SELECT rowid FROM secret"},
		{query: "SELECT * FROM secret AS orders"},
		{query: "SELECT orders.x FROM secret AS orders"},
		{query: "SELECT * FROM secret orders"},
		{query: "TABLE secret UNION SELECT 1"},
		{query: `SELECT * FROM U&"\0073ecret"`},
		{query: "SELECT * FROM ＳＥＣＲＥＴ"},
		{query: "SELECT * FROM s\u200becret"},
		{query: "SELECT * FROM ſecret"},
		{query: "SELECT/**/*/**/FROM/**/secret"},
		{query: "SELECT * FROM--\nsecret"},
		{query: "SELECT * FROM\u00a0secret"},
		{query: "SELECT * FROM\u3000secret"},
		{query: "SELECT\v*\fFROM\vsecret"},
	},
	"names of the query's own": {
		{query: "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret"},
		{query: "WITH RECURSIVE secret AS (SELECT x FROM main.secret) SELECT * FROM secret"},
		{query: "WITH a AS (SELECT * FROM secret), secret AS (SELECT 1 AS x) SELECT * FROM a", dialect: store.DuckDB},
		{query: "SELECT * FROM (WITH secret AS (SELECT 1 AS x) SELECT * FROM secret), secret"},
		{query: "SELECT * FROM secret WHERE EXISTS (WITH secret AS (SELECT 1) SELECT 1)"},
		{query: "WITH orders AS (SELECT * FROM secret) SELECT * FROM orders"},
		{query: "WITH notes AS (SELECT * FROM hidden_notes) SELECT * FROM notes"},
		{query: "WITH notes AS (SELECT private FROM hidden_notes) SELECT * FROM notes UNION SELECT body FROM main.notes"},
		{query: "WITH x AS (WITH secret AS (SELECT 1) SELECT 1) SELECT * FROM secret"},
		{query: "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t, secret) SELECT * FROM t"},
		{query: "WITH secret AS (SELECT 1 AS x) SELECT * FROM main.secret"},
		{query: "WITH main AS (SELECT 1) SELECT * FROM main.secret"},
		{query: "WITH tea_answer AS (SELECT * FROM secret) SELECT * FROM tea_answer"},
		{query: "SELECT (WITH a AS (SELECT x FROM secret) SELECT * FROM a)"},
		{query: "SELECT 1 AS secret, (SELECT max(x) FROM secret)"},
		{query: "WITH a(secret) AS (SELECT 1) SELECT * FROM secret"},
		{query: "SELECT * FROM (SELECT 1) AS secret(x), main.secret AS s2"},
		{query: "SELECT 1 UNION (WITH secret AS (SELECT 2) SELECT 3) UNION SELECT x FROM secret"},
		{query: "WITH a AS MATERIALIZED (SELECT x FROM secret) SELECT 1", dialect: store.DuckDB},
		{query: "WITH unused AS (SELECT x FROM secret) SELECT 1", dialect: store.DuckDB},
	},
	"the catalog": {
		{query: "SELECT * FROM sqlite_master"},
		{query: "SELECT * FROM sqlite_schema"},
		{query: "SELECT * FROM main.sqlite_master"},
		{query: "SELECT * FROM sqlite_temp_master"},
		{query: "SELECT * FROM temp.sqlite_schema"},
		{query: "SELECT count(*) FROM sqlite_master"},
		{query: "SELECT * FROM sqlite_sequence"},
		{query: "SELECT * FROM sqlite_stat1"},
		{query: "SELECT * FROM pragma_table_info('secret')"},
		{query: "SELECT * FROM pragma_database_list"},
		{query: "SELECT * FROM pragma_database_list()"},
		{query: "SELECT * FROM pragma_table_list"},
		{query: "SELECT count(*) FROM pragma_table_list"},
		{query: "SELECT * FROM pragma_function_list"},
		{query: "SELECT * FROM pragma_compile_options"},
		{query: "SELECT * FROM pragma_query_only(0)"},
		{query: "SELECT * FROM dbstat"},
		{query: "SELECT * FROM sqlite_dbpage"},
		{query: "SELECT * FROM sqlite_stmt"},
		{query: "SELECT * FROM bytecode('SELECT 1')"},
		{query: "SELECT * FROM tables_used('SELECT 1')"},
		{query: "SELECT * FROM fts5vocab"},
		{query: "SELECT count(*) FROM pragma_table_list WINDOW pragma_table_list AS (ORDER BY 1)"},
		{query: "SELECT * FROM information_schema.tables"},
		{query: "SELECT * FROM information_schema.columns"},
		{query: `SELECT * FROM "information_schema"."schemata"`},
		{query: "SELECT * FROM pg_catalog.pg_class"},
		{query: "SELECT * FROM pg_tables"},
		{query: "SELECT * FROM pg_class"},
		{query: "SELECT * FROM system.information_schema.tables"},
		{query: "SELECT * FROM duckdb_tables()"},
		{query: "SELECT * FROM duckdb_tables"},
		{query: "SELECT * FROM duckdb_columns()"},
		{query: "SELECT * FROM duckdb_settings()"},
		{query: "SELECT * FROM duckdb_functions()"},
		{query: "SELECT * FROM duckdb_databases()"},
		{query: "SELECT * FROM duckdb_secrets()"},
		{query: "SELECT * FROM duckdb_views()"},
		{query: "SELECT * FROM duckdb_extensions()"},
		{query: "SELECT * FROM duckdb_logs"},
		{query: "SELECT * FROM duckdb_temporary_files()"},
		{query: "SELECT * FROM duckdb_memory()"},
		{query: "SELECT * FROM duckdb_variables()"},
		{query: "SELECT * FROM pragma_show('secret')"},
		{query: "SELECT * FROM pragma_version()"},
		{query: "SELECT * FROM pragma_storage_info('secret')"},
		{query: "SELECT * FROM show_tables()"},
		{query: "SELECT * FROM sql_auto_complete('SEL')"},
		{query: "SELECT * FROM sqlite_scan('FILE', 'x')"},
		{query: "SELECT * FROM summary((SELECT 1))"},
		{query: "SELECT * FROM test_all_types()"},
		{query: "SELECT * FROM repeat_row(1, num_rows := 10)"},
		{query: "SELECT * FROM repeat(1, 1000000000)"},
		{query: "SELECT * FROM checkpoint()"},
		{query: "SELECT * FROM force_checkpoint()"},
		{query: "SELECT * FROM arrow_scan(1, 2, 3)"},
		{query: "SELECT * FROM seq_scan('secret')"},
	},
	"files": {
		{query: "SELECT * FROM read_csv('FILE')"},
		{query: "SELECT * FROM read_csv_auto('FILE')"},
		{query: "SELECT * FROM READ_CSV('FILE')"},
		{query: `SELECT * FROM "read_csv"('FILE')`},
		{query: "SELECT * FROM main.read_csv('FILE')"},
		{query: "SELECT * FROM system.main.read_text('FILE')"},
		{query: "SELECT * FROM read_text('FILE')"},
		{query: "SELECT * FROM read_blob('FILE')"},
		{query: "SELECT * FROM read_parquet('FILE')"},
		{query: "SELECT * FROM parquet_scan('FILE')"},
		{query: "SELECT * FROM parquet_metadata('FILE')"},
		{query: "SELECT * FROM parquet_schema('FILE')"},
		{query: "SELECT * FROM parquet_file_metadata('FILE')"},
		{query: "SELECT * FROM parquet_kv_metadata('FILE')"},
		{query: "SELECT * FROM parquet_bloom_probe('FILE', 'a', 1)"},
		{query: "SELECT * FROM read_json('FILE')"},
		{query: "SELECT * FROM read_json_auto('FILE')"},
		{query: "SELECT * FROM read_ndjson('FILE')"},
		{query: "SELECT * FROM read_ndjson_auto('FILE')"},
		{query: "SELECT * FROM read_json_objects('FILE')"},
		{query: "SELECT * FROM read_json_objects_auto('FILE')"},
		{query: "SELECT * FROM read_ndjson_objects('FILE')"},
		{query: "SELECT * FROM sniff_csv('FILE')"},
		{query: "SELECT * FROM glob('/*')"},
		{query: "SELECT * FROM glob('**')"},
		{query: "SELECT * FROM read_xlsx('FILE')"},
		{query: "SELECT * FROM read_avro('FILE')"},
		{query: "SELECT * FROM iceberg_scan('FILE')"},
		{query: "SELECT * FROM delta_scan('FILE')"},
		{query: "SELECT * FROM st_read('FILE')"},
		{query: "SELECT * FROM read_duckdb('FILE')"},
		{query: "SELECT * FROM 'FILE'"},
		{query: `SELECT * FROM "FILE"`},
		{query: "FROM 'FILE'"},
		{query: "SELECT * FROM 'FILE' AS orders"},
		{query: "SELECT * FROM 'https://127.0.0.1/x.parquet'"},
		{query: "SELECT * FROM 's3://bucket/x.csv'"},
		{query: "SELECT * FROM '*.parquet'"},
		{query: "SELECT * FROM '/etc/passwd'"},
		{query: "SELECT * FROM orders, 'FILE'"},
		{query: "SELECT (SELECT count(*) FROM 'FILE')"},
		{query: "SELECT * FROM main.'FILE'"},
		{query: "SELECT * FROM orders WHERE id IN (FROM 'FILE')"},
		{query: "WITH a AS (FROM 'FILE') SELECT 1"},
		{query: `WITH "x.csv" AS (SELECT 1) SELECT * FROM "FILE"`},
		{query: "SELECT * FROM orders, read_text('FILE')"},
		{query: "SELECT * FROM orders, LATERAL read_text(customer)"},
		{query: "SELECT read_text('FILE')"},
		{query: "SELECT 'FILE'.read_text()"},
		{query: "SELECT * FROM read_text((SELECT 'FILE'))"},
		{query: "SELECT customer.read_text() FROM orders"},
		{query: "SELECT readfile('FILE')"},
		{query: "SELECT writefile('NEW', 'x')"},
		{query: "SELECT edit('x')"},
		{query: "SELECT load_extension('FILE')"},
		{query: "SELECT fts3_tokenizer('x')"},
		{query: "SELECT * FROM fsdir('/')"},
		{query: "SELECT * FROM csv('FILE')"},
		{query: "SELECT * FROM zipfile('FILE')"},
		{query: "SELECT * FROM generate_series(1, 2, 3), glob('/*')"},
		{query: "SELECT write_log('x')"},
		{query: "SELECT * FROM parse_duckdb_log_message('x', 'y')"},
		{query: "SELECT file_exists('FILE')"},
	},
	"functions with a reach": {
		{query: "SELECT getenv('HOME')"},
		{query: "SELECT current_setting('threads')"},
		{query: "SELECT getvariable('x')"},
		{query: "SELECT nextval('s')"},
		{query: "SELECT currval('s')"},
		{query: "SELECT setseed(0.5)"},
		{query: "SELECT version()"},
		{query: "SELECT current_user"},
		{query: "SELECT current_database()"},
		{query: "SELECT current_schema()"},
		{query: "SELECT current_schemas(true)"},
		{query: "SELECT current_query()"},
		{query: "SELECT txid_current()"},
		{query: "SELECT current_connection_id()"},
		{query: "SELECT current_query_id()"},
		{query: "SELECT current_transaction_id()"},
		{query: "SELECT * FROM query('SELECT * FROM secret')"},
		{query: "SELECT * FROM query_table('secret')"},
		{query: "SELECT * FROM query_table(['orders', 'secret'])"},
		{query: "FROM query('FROM secret')"},
		{query: "SELECT query('SELECT 1')"},
		{query: "SELECT json_execute_serialized_sql('{}')"},
		{query: "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM secret'))"},
		{query: "PRAGMA json_execute_serialized_sql('{}')"},
		{query: "SELECT json_serialize_sql('SELECT 1')"},
		{query: "SELECT json_serialize_plan('SELECT * FROM secret')"},
		{query: "SELECT json_deserialize_sql('{}')"},
		{query: "SELECT in_search_path('memory', 'main')"},
		{query: "SELECT pg_get_viewdef(1)"},
		{query: "SELECT pg_table_is_visible(1)"},
		{query: "SELECT has_table_privilege('secret', 'SELECT')"},
		{query: "SELECT 'secret'::regclass"},
		{query: "SELECT col_description(1, 1)"},
		{query: "SELECT enum_range(NULL::mood)"},
		{query: "SELECT stats(id) FROM orders"},
		{query: "SELECT add_parquet_key('a', 'b')"},
		{query: "SELECT sleep_ms(100000)"},
		{query: "SELECT list_aggregate(['HOME'], 'getenv')"},
		{query: "SELECT list_aggregate(['threads'], 'current_setting')"},
		{query: "SELECT list_reduce(['HOME'], lambda a, b: getenv(a))"},
		{query: "SELECT error('x')"},
		{query: "SELECT constant_or_null(1, 2)"},
		{query: "SELECT vector_type(id) FROM orders"},
		{query: "SELECT which_secret('x', 'y')"},
		{query: "SELECT pg_sleep(10)"},
		{query: "SELECT sqlite_version()"},
		{query: "SELECT sqlite_source_id()"},
		{query: "SELECT sqlite_compileoption_get(1)"},
		{query: "SELECT sqlite_log(1, 'x')"},
		{query: "SELECT last_insert_rowid()"},
		{query: "SELECT changes()"},
		{query: "SELECT total_changes()"},
		{query: "SELECT randomblob(1000000000)"},
		{query: "SELECT zeroblob(1000000000)"},
		{query: "SELECT sqlite_offset(id) FROM orders"},
		{query: "SELECT fts5(1)"},
		{query: "SELECT sqlite_rename_table(1,2,3,4,5,6,7)"},
		{query: "SELECT jsonb('1')", dialect: store.SQLite},
		{query: "SELECT subtype(1)"},
		{query: "SELECT foo.upper('a')"},
		{query: "SELECT system.main.getenv('HOME')"},
		{query: "SELECT memory.main.getenv('HOME')"},
		{query: `SELECT "getenv"('HOME')`},
		{query: "SELECT GETENV('HOME')"},
		{query: "SELECT 'HOME'.getenv()"},
		{query: "SELECT list_transform(['HOME'], lambda x: getenv(x))"},
		{query: "SELECT list_transform([1], lambda x: (SELECT max(x) FROM secret))"},
		{query: "SELECT [getenv(x) FOR x IN ['HOME']]"},
		{query: "SELECT COLUMNS(lambda c: getenv(c) = '') FROM orders"},
		{query: "SELECT getenv('HOME') OVER () FROM orders"},
		{query: "SELECT sum(length(getenv('HOME'))) FILTER (WHERE getenv('x') IS NULL) FROM orders"},
		{query: "SELECT id FROM orders QUALIFY getenv('HOME') IS NOT NULL"},
		{query: "SELECT id FROM orders ORDER BY getenv('HOME')"},
		{query: "SELECT id FROM orders LIMIT length(getenv('HOME'))"},
		{query: "SELECT * EXCLUDE (id) REPLACE (getenv('HOME') AS customer) FROM orders"},
		{query: "SELECT {'a': getenv('HOME')}"},
		{query: "SELECT CAST(getenv('HOME') AS INTEGER)"},
		{query: "SELECT x'00' COLLATE mine"},
		{query: "SELECT 1 COLLATE 'secret'"},
	},
	"texts that are none": {
		{query: ""},
		{query: " \t\n"},
		{query: "--"},
		{query: "/* SELECT 1"},
		{query: ";"},
		{query: "SELECT 1\x00; DELETE FROM orders"},
		{query: "\ufeffSELECT 1"},
		{query: "SELECT '\xff'"},
		{query: "SELECT 'open"},
		{query: `SELECT "open`},
		{query: "SELECT (1"},
		{query: "SELECT 1)"},
		{query: "SELEC 1"},
		{query: "hello"},
		{query: "SELECT FROM WHERE"},
		{query: "/*! SELECT 1 */"},
		{query: "\\copy x"},
		{query: ".read FILE"},
		{query: "SELECT ?"},
		{query: "SELECT $1"},
		{query: "SELECT $name"},
		{query: "SELECT :name", dialect: store.SQLite},
		{query: "SELECT ?3"},
		{query: "SELECT nothing FROM orders"},
		{query: "SELECT nothing(1)"},
		{query: "SELECT 1 WHERE 1 = 'a' ORDER BY nothing"},
		{query: "SELECT " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000)},
		{query: "SELECT " + strings.Repeat("-", 30_001) + "1"},
		{query: "SELECT '" + strings.Repeat("x", 200_000) + "'"},
		{query: strings.Repeat("SELECT * FROM (", 5000) + "SELECT 1" + strings.Repeat(")", 5000)},
		{query: "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 3000), dialect: store.SQLite},
		{query: "SELECT " + strings.Repeat("NOT ", 20_000) + "1"},
		{query: "SELECT " + strings.Repeat("CASE WHEN 1 THEN ", 4000) + "1" + strings.Repeat(" END", 4000)},
	},
}

// vault is a table under whose name the sandbox has a view.
var vault = store.View{
	Name:    "vault",
	Columns: []store.Column{{Name: "id"}, {Name: "body", Type: store.JSON}, {Name: "open", Type: store.Boolean}},
	Query:   "SELECT id, json(body), open FROM main.vault WHERE hidden IS NULL",
}

// canaryFile is a file with the canary, and a path where no file is.
func canaryFile(t *testing.T) (dir string, fill *strings.Replacer) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "bait.csv")
	if err := os.WriteFile(file, []byte("a\n"+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer("FILE", filepath.ToSlash(file), "NEW", filepath.ToSlash(filepath.Join(dir, "new")))
}

// checkUnharmed checks that nothing was written and that queries are answered.
func checkUnharmed(t *testing.T, e *engine.Engine, query string) {
	t.Helper()
	const all = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM secret), (SELECT count(*) FROM hidden_notes), (SELECT sum(id) FROM orders)"
	var orders, secrets, notes, sum int
	rows, err := e.Query(t.Context(), all)
	if err != nil {
		t.Fatalf("after %s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&orders, &secrets, &notes, &sum); err != nil {
			t.Fatalf("after %s: %v", query, err)
		}
	}
	if got := []int{orders, secrets, notes, sum}; !cmp.Equal(got, []int{4, 1, 2, 10}) {
		t.Fatalf("after %s: %v", query, got)
	}
	table, err := selectOnceFree(t, e, "SELECT count(*) FROM orders", outside())
	if err != nil || !cmp.Equal(table.Rows, [][]any{{int64(4)}}) {
		t.Fatalf("after %s: %v %v", query, table.Rows, err)
	}
}

// selectOnceFree waits for a query that could not be stopped: a busy machine may
// need longer for it than the engine waits.
func selectOnceFree(t *testing.T, e *engine.Engine, query string, bounds store.Sandbox) (store.Table, error) {
	t.Helper()
	for {
		table, err := e.Select(t.Context(), query, bounds)
		if typed := new(tea.Error); !errors.As(err, &typed) || typed.Type != tea.ResourceExhausted {
			return table, err
		}
	}
}

func TestSelectRefuses(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			dir, fill := canaryFile(t)
			e := stocked(t, driver, t.TempDir())
			for family, queries := range attacks {
				for _, attack := range queries {
					if attack.dialect != "" && attack.dialect != driver.Dialect() {
						continue
					}
					query := fill.Replace(attack.query)
					table, err := e.Select(t.Context(), query, outside())
					var typed *tea.Error
					switch {
					case err == nil:
						t.Errorf("%s: %.200s\nhas the answer %v", family, query, table.Rows)
					case !errors.As(err, &typed) || typed.Type != tea.ValidationError:
						t.Errorf("%s: %.200s\nends with %v", family, query, err)
					case strings.Contains(err.Error(), canary) && !strings.Contains(query, canary):
						t.Errorf("%s: %.200s\ntells %v", family, query, err)
					}
				}
				checkUnharmed(t, e, family)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("files were made: %v %v", entries, err)
			}
		})
	}
}

func TestSelectSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			e := stocked(t, driver, t.TempDir())
			for query, says := range map[string][]string{
				"SELECT *\nFROM  secret":              {"the table secret", "2:", "notes, orders, vault"},
				"SELECT getenv('A')":                  {"function", "getenv", "1:8"},
				"DROP TABLE orders":                   {"only a single SELECT"},
				"SELECT 1; SELECT 2":                  {"statement", "only a single SELECT"},
				"SELECT * FROM read_csv('x')":         {"read_csv"},
				"SELECT customr FROM orders":          {"customr", "1:8"},
				"SELECT id\nFROM orders\nWHER amount": {"3:"},
				"SELECT $1":                           {"$1", "0 were given"},
			} {
				_, err := e.Select(t.Context(), query, outside())
				if err == nil {
					t.Errorf("%s: no error", query)
					continue
				}
				for _, part := range says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %v\nsays nothing of %q", query, err, part)
					}
				}
			}
		})
	}
}

// rowsOf are the rows of an answer as JSON.
func rowsOf(t *testing.T, table store.Table) string {
	t.Helper()
	text, err := json.Marshal(table.Rows)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
