package engine_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// canary is in what a query from outside must not see.
const canary = "canary-7f3a"

// stock are the tables of these tests: orders and notes (a view over
// hidden_notes) are open to queries, the others are not.
var stock = []string{
	`CREATE TABLE orders (id INTEGER, customer VARCHAR, amount DOUBLE, placed VARCHAR, detail VARCHAR)`,
	`INSERT INTO orders VALUES (1, 'ann', 10.5, '2026-01-05', '{"color": "red", "sizes": [1, 2]}'), (2, 'bob', 20, '2026-01-06', '{"color": "blue"}'),
		(3, 'ann', 30, '2026-02-01', '{}'), (4, NULL, NULL, NULL, NULL)`,
	`CREATE TABLE hidden_notes (id INTEGER, body VARCHAR, private VARCHAR)`,
	`INSERT INTO hidden_notes VALUES (1, 'hello', '` + canary + `'), (2, 'world', '` + canary + `')`,
	`CREATE VIEW notes AS SELECT id, upper(body) AS body FROM hidden_notes`,
	`CREATE TABLE secret (x VARCHAR)`,
	`INSERT INTO secret VALUES ('` + canary + `')`,
	`CREATE TABLE vault (id INTEGER, body VARCHAR, open BOOLEAN, hidden VARCHAR)`,
	`INSERT INTO vault VALUES (1, '{"n": 12345678901234567890}', true, NULL), (2, '[1, "a"]', false, NULL), (3, '{"x": "` + canary + `"}', true, '` + canary + `')`,
}

func stocked(t testing.TB, driver engine.Driver, dir string) *engine.Engine {
	t.Helper()
	return stockedWith(t, engine.Options{Dir: dir, Driver: driver, Warmup: true})
}

func stockedWith(t testing.TB, options engine.Options) *engine.Engine {
	t.Helper()
	options.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	e, err := engine.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for _, q := range stock {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func outside(args ...any) store.Sandbox {
	return store.Sandbox{Tables: []string{"orders", "notes"}, Views: []store.View{vault}, MaxRows: 100, MaxBytes: 1 << 20, Timeout: 10 * time.Second, Args: args}
}

// answers are queries that an analyst writes. A query for one dialect has its
// name; the others work in both.
var answers = []struct {
	query   string
	args    []any
	dialect store.Dialect
	want    string // rows as JSON
}{
	{query: "SELECT 1", want: "[[1]]"},
	{query: "SELECT list_reduce([1, 2, 3], lambda a, b: a * 10 + b), list_aggregate([1, 2], 'sum'), list_aggr(['a'], 'max')", want: `[[123,3,"a"]]`, dialect: store.DuckDB},
	{query: "SELECT generate_subscripts([4, 5], 1) AS n", want: "[[1],[2]]", dialect: store.DuckDB},
	{query: "PIVOT (SELECT customer, amount FROM orders) ON customer IN ('ann', 'bob') USING sum(amount)", want: "[[40.5,20]]", dialect: store.DuckDB},
	{query: "SELECT * FROM (SELECT id, customer, amount FROM orders) PIVOT (count(*) AS n, max(amount) AS m FOR customer IN ('ann' AS a)) ORDER BY id LIMIT 1", want: "[[1,1,10.5]]", dialect: store.DuckDB},
	{query: "UNPIVOT (SELECT id, customer, placed FROM orders WHERE id < 3) ON customer, placed INTO NAME what VALUE text", want: `[[1,"customer","ann"],[1,"placed","2026-01-05"],[2,"customer","bob"],[2,"placed","2026-01-06"]]`, dialect: store.DuckDB},
	{query: "SELECT count(*) FROM (UNPIVOT vault ON COLUMNS(* EXCLUDE (id, open)))", want: "[[2]]", dialect: store.DuckDB},
	{query: "WITH p AS (PIVOT orders ON customer IN ('ann') USING count(*) GROUP BY detail) SELECT sum(ann) FROM p", want: "[[2]]", dialect: store.DuckDB},
	{query: "select id, customer from orders order by id limit 2;", want: `[[1,"ann"],[2,"bob"]]`},
	{query: "SELECT id FROM orders ORDER BY id DESC", want: "[[4],[3],[2],[1]]"},
	{query: "/* all */ SELECT count(*) FROM orders -- done", want: "[[4]]"},
	{query: "SELECT count(*) FROM orders; -- done; really\n /* ; */ ;", want: "[[4]]"},
	{query: "VALUES (1, 'a;b'), (2, 'c--d')", want: `[[1,"a;b"],[2,"c--d"]]`},
	{query: "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders WHERE customer IS NOT NULL GROUP BY customer HAVING count(*) > 0 ORDER BY total DESC", want: `[["ann",2,40.5],["bob",1,20]]`},
	{query: "SELECT o.id, n.body FROM orders o JOIN notes n USING (id) LEFT JOIN orders p USING (id) ORDER BY 1", want: `[[1,"HELLO"],[2,"WORLD"]]`},
	{query: "SELECT notes.body FROM main.notes AS notes WHERE \"id\" = 1", want: `[["HELLO"]]`},
	{query: `SELECT "ORDERS".ID FROM "Orders" WHERE id = 1`, want: "[[1]]"},
	{query: "WITH big AS (SELECT * FROM orders WHERE amount > 15), n AS (SELECT count(*) AS n FROM big) SELECT n FROM n", want: "[[2]]"},
	{query: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t", want: "[[15]]"},
	{query: "WITH secret AS (SELECT 'mine' AS x) SELECT x FROM secret", want: `[["mine"]]`},
	{query: "WITH orders AS (SELECT 7 AS id) SELECT id FROM orders", want: "[[7]]"},
	{query: "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount DESC) AS r, lag(id) OVER (ORDER BY id) FROM orders WHERE id < 4 ORDER BY id", want: "[[1,2,null],[2,1,1],[3,1,2]]"},
	{query: "SELECT sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders WHERE id < 4 ORDER BY id", want: "[[10.5],[30.5],[50]]"},
	{query: "SELECT CASE WHEN amount >= 20 THEN 'large' WHEN amount IS NULL THEN 'none' ELSE 'small' END FROM orders ORDER BY id", want: `[["small"],["large"],["large"],["none"]]`},
	{query: "SELECT detail ->> '$.color' AS color FROM orders WHERE json_valid(detail) ORDER BY id", want: `[["red"],["blue"],[null]]`},
	{query: "SELECT id FROM orders WHERE customer IN (SELECT customer FROM orders WHERE amount > 25) AND EXISTS (SELECT 1 FROM notes) ORDER BY id", want: "[[1],[3]]"},
	{query: "SELECT id FROM orders WHERE amount > ? AND customer = ? ORDER BY id", args: []any{int64(15), "ann"}, want: "[[3]]"},
	{query: "SELECT customer FROM orders WHERE id = 1 UNION SELECT body FROM notes WHERE id = 1 ORDER BY 1", want: `[["HELLO"],["ann"]]`},
	{query: "SELECT id FROM orders EXCEPT SELECT id FROM notes ORDER BY id", want: "[[3],[4]]"},
	{query: "SELECT coalesce(customer, 'nobody'), nullif(id, 4), round(amount, 0), lower('A') || upper('b'), substr('hello', 2, 2), replace('a-b', '-', '') FROM orders WHERE id = 4", want: `[["nobody",null,null,"aB","el","ab"]]`},
	{query: "SELECT id FROM orders WHERE customer LIKE 'a%' AND amount BETWEEN 1 AND 11", want: "[[1]]"},
	{query: "SELECT count(*) FILTER (WHERE amount > 15), count(DISTINCT customer) FROM orders", want: "[[2,2]]"},
	{query: "SELECT (SELECT max(amount) FROM orders), (SELECT body FROM notes WHERE notes.id = orders.id) FROM orders WHERE id = 2", want: `[[30,"WORLD"]]`},
	{query: "WITH t AS (SELECT 1 AS x UNION SELECT 2) SELECT count(*) FROM t", want: "[[2]]"},
	{query: "WITH secret AS (SELECT 1 AS x UNION SELECT 2) SELECT count(*) FROM secret", want: "[[2]]"},
	{query: "SELECT count(*) FROM notes", want: "[[2]]"},
	{query: "SELECT count(*) FROM vault", want: "[[2]]"},
	{query: "SELECT * FROM vault ORDER BY id", want: `[[1,{"n":12345678901234567890},true],[2,[1,"a"],false]]`},
	{query: "SELECT v.id FROM vault v WHERE EXISTS (SELECT 1 FROM vault w WHERE w.id > v.id) AND open", want: "[[1]]"},
	{query: "WITH vault AS (SELECT 5 AS id) SELECT id FROM vault", want: "[[5]]"},
	{query: "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM notes WHERE id > 5) AND EXISTS (SELECT NULL FROM notes)", want: "[[1]]"},
	{query: "SELECT count(*) FROM orders WHERE id = $1 OR customer = $2 OR id = $1", args: []any{int64(4), "bob"}, want: "[[2]]"},
	{query: "SELECT id FROM orders WHERE customer = $who AND id > $least", args: []any{sql.Named("who", "ann"), sql.Named("least", int64(1))}, want: "[[3]]"},
	{query: "SELECT x FROM (VALUES (3), (1), (2)) AS v(x) ORDER BY x", dialect: store.DuckDB, want: "[[1],[2],[3]]"},
	{query: "SELECT column1 FROM (VALUES (3), (1)) ORDER BY 1", dialect: store.SQLite, want: "[[1],[3]]"},
	{query: "SELECT customer, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, ntile(2) OVER w, first_value(id) OVER w FROM orders WHERE id < 4 WINDOW w AS (ORDER BY customer) ORDER BY id", want: `[["ann",1,1,0,1,1],["bob",3,2,1,2,1],["ann",1,1,0,1,1]]`},
	{query: "SELECT avg(amount), min(amount), max(amount), sum(DISTINCT id) FROM orders", want: "[[20.166666666666668,10.5,30,10]]"},
	{query: "SELECT customer, CASE count(*) WHEN 1 THEN 'once' ELSE 'often' END FROM orders GROUP BY customer HAVING customer IS NOT NULL ORDER BY customer", want: `[["ann","often"],["bob","once"]]`},
	{query: "SELECT id FROM (SELECT id FROM orders UNION ALL SELECT id FROM notes) AS u GROUP BY id HAVING count(*) = 2 ORDER BY id LIMIT 10 OFFSET 1", want: "[[2]]"},
	{query: "SELECT a.id, b.id FROM orders a FULL JOIN notes b ON a.id = b.id + 3 ORDER BY a.id, b.id", want: "[[null,2],[1,null],[2,null],[3,null],[4,1]]", dialect: store.SQLite},
	{query: "SELECT trim('  a '), trim('xxaxx', 'x'), ltrim('xa', 'x'), rtrim('ax', 'x'), instr('hello', 'lo'), length('héllo'), upper('a'), abs(-2), 7 % 4, CAST('12' AS INTEGER) + 1", want: `[["a","a","a","a",4,5,"A",2,3,13]]`},
	{query: "SELECT replace('banana', 'an', '[]'), replace('x', '', 'y'), instr('a', 'b'), instr(NULL, 'a'), trim(NULL, 'a'), replace('a', 'a', NULL)", want: `[["b[][]a","x",0,null,null,null]]`},
	{query: "SELECT replace(12.5, '.', ','), instr(1e300, 'e'), trim(100, '0'), instr(x'0102', x'02'), replace(100.0, '0', 'o'), trim('äöä', 'ä'), instr('äb', 'b')", dialect: store.SQLite, want: `[["12,5",4,"1",2,"1oo.o","ö",2]]`},
	{query: "SELECT json_extract(detail, '$.color'), json_array_length(detail, '$.sizes'), json_type(detail, '$.sizes') FROM orders WHERE id = 1", dialect: store.SQLite, want: `[["red",2,"array"]]`},
	{query: "SELECT json_extract_string(detail, '$.color'), json_array_length(detail, '$.sizes'), detail -> '$.sizes[0]' FROM orders WHERE id = 1", dialect: store.DuckDB, want: `[["red",2,1]]`},
	{query: "SELECT o.id, s.unnest FROM orders o, unnest(from_json(o.detail -> '$.sizes', '[\"INTEGER\"]')) s WHERE o.id = 1 ORDER BY 2", dialect: store.DuckDB, want: "[[1,1],[1,2]]"},
	{query: "SELECT e.key, e.value FROM orders, json_each(detail) e WHERE orders.id = 1 ORDER BY 1", dialect: store.DuckDB, want: `[["color","red"],["sizes",[1,2]]]`},
	{query: "SELECT date(placed, '+1 month'), julianday('2026-01-02') - julianday('2026-01-01'), strftime('%s', '1970-01-02') FROM orders WHERE id = 1", dialect: store.SQLite, want: `[["2026-02-05",1,"86400"]]`},
	{query: "SELECT customer, list(id ORDER BY id) AS ids, max(amount) FILTER (WHERE id < 3), arg_max(id, amount), first(id ORDER BY id), median(amount), count_if(id > 1) FROM orders WHERE customer IS NOT NULL GROUP BY customer ORDER BY ALL", dialect: store.DuckDB, want: `[["ann",[1,3],10.5,3,1,20.25,1],["bob",[2],20,2,2,20,1]]`},
	{query: "SELECT customer, count(*) FROM orders GROUP BY GROUPING SETS ((customer), ()) ORDER BY 2 DESC, 1 NULLS LAST", dialect: store.DuckDB, want: `[[null,4],["ann",2],["bob",1],[null,1]]`},
	{query: "SELECT [1, 2, 3][2], {'a': {'b': 5}}.a.b, MAP {'x': 1}['x'], list_filter([1, 2, 3], lambda x: x > 1), [3, 1, 2].list_sort(), list_sum([1, 2]), ('a-b').split('-')", dialect: store.DuckDB, want: `[[2,5,1,[2,3],[1,2,3],3,["a","b"]]]`},
	{query: "SELECT regexp_extract('ab12', '[0-9]+'), regexp_replace('a1b2', '[0-9]', '#', 'g'), split_part('a,b', ',', 2), repeat('ab', 3), format('{}-{}', 1, 'x'), printf('%05.1f', 2.25), lpad('7', 3, '0')", dialect: store.DuckDB, want: `[["12","a#b#","b","ababab","1-x","002.2","007"]]`},
	{query: "SELECT id || ' ' || coalesce(customer, '-') || ' ' || coalesce(amount, 0) || ' ' || coalesce(placed, '-') || ' ' || coalesce(detail, '-') || ' ' || id || ' ' || id FROM orders WHERE id = 3", want: `[["3 ann 30.0 2026-02-01 {} 3 3"]]`},
	{query: "SELECT TRY_CAST('x' AS INTEGER), '2026-01-01'::DATE + INTERVAL 1 MONTH, epoch(TIMESTAMP '1970-01-02'), DATE '2026-03-01' - DATE '2026-02-01', dayname(DATE '2026-03-01'), strptime('01.02.2026', '%d.%m.%Y')", dialect: store.DuckDB, want: `[[null,"2026-02-01T00:00:00Z",86400,28,"Sunday","2026-02-01T00:00:00Z"]]`},
	{query: "SELECT [DATE '2020-01-01', NULL], {'n': 'nan'::DOUBLE, 'i': '-inf'::DOUBLE, 't': 'NaN inf', 'd': 1.50::DECIMAL(5, 2), 'h': 170141183460469231731687303715884105727::HUGEINT}, [TIMESTAMP '2020-01-01 01:02:03'], ['nan'::FLOAT]", dialect: store.DuckDB, want: `[[["2020-01-01",null],{"d":1.5,"h":170141183460469231731687303715884105727,"i":null,"n":null,"t":"NaN inf"},["2020-01-01 01:02:03"],[null]]]`},
	{query: "SELECT 0.30::DECIMAL(38,2), 12345678901234567890.12::DECIMAL(38,2), -0.1234567890123456789::DECIMAL(38,19), 9007199254740993.5::DECIMAL(20,1)", dialect: store.DuckDB, want: `[[0.3,"12345678901234567890.12","-0.1234567890123456789","9007199254740993.5"]]`},
	{query: "SELECT {'a': 1, 'b': [1.5, NULL]}::VARIANT, 'x'::VARIANT, NULL::VARIANT, 'POINT (1 2)'::GEOMETRY", dialect: store.DuckDB, want: `[[{"a":1,"b":[1.5,null]},"x",null,"POINT (1 2)"]]`},
	{query: "SELECT DATE 'infinity', TIMESTAMP '-infinity', TIMESTAMPTZ 'infinity', TIME '24:00:00', INTERVAL '1 month 2 days', '101'::BIT, 18446744073709551615::UBIGINT, -5::HUGEINT, TIMESTAMP_NS '2026-01-01 00:00:00.123456789'", dialect: store.DuckDB, want: `[["infinity","-infinity","infinity","24:00:00","1 month 2 days","101",18446744073709551615,-5,"2026-01-01T00:00:00.123456789Z"]]`},
	{query: "SELECT UNION_VALUE(k := 1), [[1], []], MAP {1: 'a'}, ROW(1, 'x'), [1.5, NULL]::FLOAT[2]", dialect: store.DuckDB, want: `[[{"k":1},[[1],[]],{"1":"a"},{"":"x"},[1.5,null]]]`},
	{query: "SELECT COLUMNS('^(id|amount)$') FROM orders WHERE id = 2", dialect: store.DuckDB, want: "[[2,20]]"},
	{query: "SELECT id FROM orders ANTI JOIN notes USING (id) ORDER BY id", dialect: store.DuckDB, want: "[[3],[4]]"},
	{query: "SELECT DISTINCT ON (customer) customer, id FROM orders WHERE customer IS NOT NULL ORDER BY customer, id DESC", dialect: store.DuckDB, want: `[["ann",3],["bob",2]]`},
	{query: "SELECT typeof(1), typeof(1.5), typeof('a'), typeof(NULL), 1e308 * 10, 9223372036854775807", dialect: store.SQLite, want: `[["integer","real","text","null",null,9223372036854775807]]`},
	{query: "SELECT 9007199254740993 AS big, 1.5, 'x', NULL, true", dialect: store.DuckDB, want: `[[9007199254740993,1.5,"x",null,true]]`},
	{query: "SELECT 9007199254740993, 1.5, 'x', NULL, x'ff00'", dialect: store.SQLite, want: `[[9007199254740993,1.5,"x",null,"/wA="]]`},
	{query: "SELECT strftime('%Y-%m', placed) AS month, sum(amount) FROM orders WHERE placed IS NOT NULL GROUP BY month ORDER BY month", dialect: store.SQLite, want: `[["2026-01",30.5],["2026-02",30]]`},
	{query: "SELECT json_extract(detail, '$.sizes'), group_concat(value, '+') FROM orders, json_each(detail, '$.sizes') WHERE orders.id = 1", dialect: store.SQLite, want: `[["[1,2]","1+2"]]`},
	{query: "SELECT strftime(CAST(placed AS DATE), '%Y-%m') AS month, sum(amount) FROM orders WHERE placed IS NOT NULL GROUP BY ALL ORDER BY month", dialect: store.DuckDB, want: `[["2026-01",30.5],["2026-02",30]]`},
	{query: "SELECT date_trunc('month', placed::DATE)::DATE, date_trunc('month', placed::DATE), date_diff('day', DATE '2026-01-01', placed::DATE), extract(year FROM placed::DATE) FROM orders WHERE id = 3", dialect: store.DuckDB, want: `[["2026-02-01","2026-02-01T00:00:00Z",31,2026]]`},
	{query: "SELECT TIMESTAMP '2026-01-02 03:04:05.5', TIMESTAMPTZ '2026-01-02 03:04:05+02', DATE '2026-01-02', TIME '03:04:05', INTERVAL 90 MINUTE", dialect: store.DuckDB, want: `[["2026-01-02T03:04:05.5Z","2026-01-02T01:04:05Z","2026-01-02","03:04:05","01:30:00"]]`},
	{query: "SELECT 170141183460469231731687303715884105727, 12.50::DECIMAL(10,2), 5::UTINYINT, 'a'::BLOB, '12345678-1234-1234-1234-123456789012'::UUID, 'nan'::DOUBLE, 'inf'::FLOAT, 0.1::FLOAT", dialect: store.DuckDB, want: `[[170141183460469231731687303715884105727,12.5,5,"YQ==","12345678-1234-1234-1234-123456789012",null,null,0.1]]`},
	{query: "SELECT [1, 2], {'a': 1, 'b': [DATE '2026-01-02']}, MAP {'k': 9007199254740993}, detail::JSON -> '$.sizes' FROM orders WHERE id = 1", dialect: store.DuckDB, want: `[[[1,2],{"a":1,"b":["2026-01-02"]},{"k":9007199254740993},[1,2]]]`},
	{query: "SELECT list(id ORDER BY id), string_agg(customer, ',' ORDER BY id), list_transform([1, 2], lambda x: x * 2), [y + 1 FOR y IN [1, 2] IF y > 1] FROM orders", dialect: store.DuckDB, want: `[[[1,2,3,4],"ann,bob,ann",[2,4],[3]]]`},
	{query: "FROM orders SELECT id QUALIFY row_number() OVER (ORDER BY id DESC) = 1", dialect: store.DuckDB, want: "[[4]]"},
	{query: "SELECT * EXCLUDE (placed, detail) REPLACE (id + 1 AS id) FROM orders WHERE id = 1", dialect: store.DuckDB, want: `[[2,"ann",10.5]]`},
	{query: "SELECT sum(range) FROM range(10) UNION ALL SELECT unnest([1, 2]) ORDER BY 1", dialect: store.DuckDB, want: "[[1],[2],[45]]"},
	{query: "SELECT array_cosine_similarity([1.0, 0]::FLOAT[2], [1.0, 0]::FLOAT[2]), lpad('7', 3, '0'), format('{:.1f}', 2.25)", dialect: store.DuckDB, want: `[[1,"007","2.2"]]`},
	{query: "SELECT id, total FROM (SELECT id, amount AS a, a * 2 AS total FROM orders) WHERE id = $1", args: []any{int64(3)}, dialect: store.DuckDB, want: "[[3,60]]"},
	{query: "SELECT count(*) FROM orders, LATERAL (SELECT orders.id + 1 AS j) l ASOF JOIN notes n ON l.j >= n.id", dialect: store.DuckDB, want: "[[4]]"},
	{query: "SELECT customer, sum(amount) FROM orders WHERE id < 4 GROUP BY ROLLUP (customer) ORDER BY customer NULLS LAST", dialect: store.DuckDB, want: `[["ann",40.5],["bob",20],[null,60.5]]`},
	{query: "SELECT id FROM orders USING SAMPLE 100% (system, 1) ORDER BY ALL LIMIT 1", dialect: store.DuckDB, want: "[[1]]"},
	{query: "SELECT generate_series::DATE FROM generate_series(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-02', INTERVAL 1 DAY)", dialect: store.DuckDB, want: `[["2026-01-01"],["2026-01-02"]]`},
}

func TestSelectRunsAnalyticalQueries(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			e := stocked(t, driver, t.TempDir())
			for _, c := range answers {
				if c.dialect != "" && c.dialect != driver.Dialect() {
					continue
				}
				table, err := e.Select(t.Context(), c.query, outside(c.args...))
				if err != nil {
					t.Errorf("%s\n%v", c.query, err)
					continue
				}
				if diff := cmp.Diff(c.want, rowsOf(t, table)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.query, diff)
				}
			}
		})
	}
}
