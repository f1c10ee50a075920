package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// nested puts a query into itself, level by level: # is the level below.
func nested(levels int, first, each, last string) string {
	query := "WITH t0 AS (" + first + ")"
	for n := range levels {
		query += ", t" + strconv.Itoa(n+1) + " AS (" + strings.ReplaceAll(each, "#", "t"+strconv.Itoa(n)) + ")"
	}
	return query + strings.ReplaceAll(last, "#", "t"+strconv.Itoa(levels))
}

const endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "

// bombs are queries that take more than there is. They end with a typed error
// or with a bounded answer.
var bombs = []struct {
	query   string
	dialect store.Dialect
	// deaf marks queries that DuckDB does not stop in time: the process ends.
	deaf bool
}{
	{query: endless + "SELECT count(*) FROM t"},
	{query: endless + "SELECT n FROM t"},
	{query: endless + "SELECT n FROM t LIMIT 5"},
	{query: endless + "SELECT n FROM t ORDER BY n DESC"},
	{query: "WITH RECURSIVE t(x) AS (SELECT 'aaaaaaaaaaaaaaaa' UNION ALL SELECT x || x FROM t) SELECT max(length(x)) FROM t"},
	{query: "WITH RECURSIVE t(x) AS (SELECT 'aaaaaaaaaaaaaaaa' UNION ALL SELECT replace(x, 'a', 'aaaaaaaa') FROM t) SELECT count(*) FROM t"},
	{query: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT a.n + 1 FROM t a, t b) SELECT count(*) FROM t"},
	{query: "SELECT count(*) FROM orders" + crossed(30)},
	{query: "SELECT * FROM orders" + crossed(30) + " ORDER BY 1, 2, 3"},
	{query: "SELECT DISTINCT o1.id + o2.id * 10 + o3.id * 100 + o4.id FROM orders" + crossed(20)},
	{query: nested(25, "SELECT 'aaaaaaaaaaaaaaaa' AS x", "SELECT x || x || x || x AS x FROM #", " SELECT length(x) FROM #")},
	{query: nested(25, "SELECT 1 AS x", "SELECT a.x FROM # a, # b", " SELECT count(*) FROM #")},
	{query: nested(22, "SELECT 1 AS x", "SELECT a.x FROM # a JOIN # b USING (x)", " SELECT count(*) FROM #")},
	{query: nested(22, "SELECT id AS x FROM orders", "SELECT a.x FROM # a, # b WHERE a.x = b.x", " SELECT count(*) FROM #")},
	{query: nested(22, "SELECT 1 AS x", "SELECT x FROM # WHERE x IN (SELECT x FROM #)", " SELECT count(*) FROM #")},
	{query: strings.Repeat("SELECT *, * FROM (", 22) + "SELECT id FROM orders" + strings.Repeat(")", 22)},
	{query: "SELECT count(*) FROM orders" + strings.Repeat(" JOIN orders USING (id)", 60)},
	{query: strings.Repeat("SELECT COLUMNS(*), COLUMNS(*) FROM (", 22) + "SELECT id FROM orders" + strings.Repeat(")", 22), dialect: store.DuckDB},
	{query: nested(40, "SELECT 1 AS x", "SELECT x + x AS x FROM #", " SELECT x FROM #")},
	{query: nested(20, "SELECT id AS x FROM orders", "SELECT x FROM # UNION ALL SELECT x FROM #", " SELECT count(*) FROM #")},
	{query: "SELECT id FROM orders WHERE customer LIKE '" + strings.Repeat("%a", 20_000) + "'"},
	{query: "SELECT id FROM orders WHERE id IN (" + strings.Repeat("1, ", 30_000) + "1)"},
	{query: "SELECT " + strings.Repeat("id + ", 15_000) + "1 FROM orders"},
	{query: "SELECT " + strings.Repeat("id, ", 20_000) + "1 FROM orders"},
	{query: "SELECT " + strings.Repeat("upper(", 3000) + "'a'" + strings.Repeat(")", 3000)},
	{query: "SELECT * FROM orders" + joined(60)},
	{query: "SELECT printf('%.1000000000c', 'a')", dialect: store.SQLite},
	{query: "SELECT printf('%1000000000d', 1)", deaf: true},
	{query: "SELECT instr(printf('%.900000c', 'a'), printf('%.400000c', 'a') || 'b')", dialect: store.SQLite},
	{query: "SELECT length(replace(printf('%.900000c', 'a'), printf('%.400000c', 'a') || 'b', ''))", dialect: store.SQLite},
	{query: "SELECT length(replace(printf('%.900000c', 'a'), 'a', printf('%.900000c', 'b')))", dialect: store.SQLite},
	{query: "SELECT trim(printf('%.900000c', 'a'), printf('%.400000c', 'b') || 'a')", dialect: store.SQLite},
	{query: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT length(json_group_array(printf('%.500000c', n))) FROM t", dialect: store.SQLite},
	{query: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT length(group_concat(printf('%.500000c', n))) FROM t", dialect: store.SQLite},
	{query: "SELECT x'' || hex(hex(hex(hex(hex(hex(printf('%.90000c', 'a')))))))", dialect: store.SQLite},
	{query: "SELECT count(*) FROM json_each(replace(printf('[%.450000c1]', 'a'), 'a', '1,')) a, json_each(replace(printf('[%.450000c1]', 'a'), 'a', '1,')) b", dialect: store.SQLite},
	{query: "SELECT repeat('a', 4000000000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT repeat(repeat(repeat('a', 1000), 1000), 1000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT max(length(repeat('" + strings.Repeat("x", 50_000) + "' || range, 1000))) FROM range(100000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT max(length(lpad(lpad(range::VARCHAR, 1000, 'a') || '', 1000000000, 'b'))) FROM range(10000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT count(*) FROM range(1000000000000)", dialect: store.DuckDB},
	{query: "SELECT range FROM range(1000000000000)", dialect: store.DuckDB},
	{query: "SELECT list(range) FROM range(10000000000)", dialect: store.DuckDB},
	{query: "SELECT string_agg(repeat('x', 1000), '') FROM range(10000000000)", dialect: store.DuckDB},
	{query: "SELECT histogram(range) FROM range(10000000000)", dialect: store.DuckDB},
	{query: "SELECT approx_quantile(range, 0.5), median(range), mode(range) FROM range(10000000000)", dialect: store.DuckDB},
	{query: "SELECT range(1000000000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT len(generate_series(0, 1000000000))", dialect: store.DuckDB, deaf: true},
	{query: "SELECT [x FOR x IN range(1000000000)]", dialect: store.DuckDB, deaf: true},
	{query: "SELECT unnest(range(0, 1000000000))", dialect: store.DuckDB, deaf: true},
	{query: "SELECT list_transform(range(1000), lambda x: list_transform(range(1000), lambda y: list_transform(range(1000), lambda z: x + y + z)))", dialect: store.DuckDB, deaf: true},
	{query: "SELECT list_reduce([[1, 2], [3, 4]]::INTEGER[][], lambda a, b: list_concat(list_concat(a, a), list_concat(b, b)))", dialect: store.DuckDB},
	{query: "SELECT list_reduce([[x] FOR x IN range(100)], lambda a, b: list_concat(a, a))", dialect: store.DuckDB, deaf: true},
	{query: "SELECT list_resize([1], 4000000000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT bitstring('1', 2000000000)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT * FROM orders" + strings.Repeat(" PIVOT (max(id) FOR customer IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'))", 12), dialect: store.DuckDB},
	{query: "PIVOT orders ON customer IN (" + strings.Repeat("'a', ", 400) + "'a'), placed IN (" + strings.Repeat("'a', ", 400) + "'a') USING max(id)", dialect: store.DuckDB},
	{query: "SELECT * FROM range(10000000000) a(x) ORDER BY hash(x)", dialect: store.DuckDB},
	{query: "SELECT x, count(*) FROM range(10000000000) a(x) GROUP BY x", dialect: store.DuckDB},
	{query: "SELECT sum(x) OVER (ORDER BY hash(x)) FROM range(10000000000) a(x)", dialect: store.DuckDB},
	{query: "SELECT count(*) FROM range(10000000000) a(x) JOIN range(10000000000) b(x) USING (x)", dialect: store.DuckDB},
	{query: "SELECT regexp_matches(repeat('a', 1000), '(a*)*(a*)*(a*)*(a*)*b')", dialect: store.DuckDB},
	{query: "SELECT regexp_matches('a', '((a{1,100}){1,100}){1,100}')", dialect: store.DuckDB},
	{query: "SELECT levenshtein(repeat('a', 1000) || id, repeat('b', 1000)) FROM orders, range(100000000)", dialect: store.DuckDB},
	{query: "SELECT 1::DECIMAL(38, 0) * 99999999999999999999999999999999999999", dialect: store.DuckDB},
	{query: "SELECT factorial(1000000000)", dialect: store.DuckDB},
	{query: "SELECT 10::HUGEINT ** 100000", dialect: store.DuckDB},
	{query: "SELECT bin(1), to_days(1000000000000), DATE '2000-01-01' + INTERVAL 1000000000 YEAR", dialect: store.DuckDB},
	{query: "SELECT generate_series FROM generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL 1 MICROSECOND)", dialect: store.DuckDB},
	{query: "SELECT format('{:1000000000}', 1)", dialect: store.DuckDB, deaf: true},
	{query: "SELECT from_json('" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "', '" + strings.Repeat("[", 500) + `"JSON"` + strings.Repeat("]", 500) + "')", dialect: store.DuckDB, deaf: true},
	{query: "SELECT " + strings.Repeat("[", 3000) + "1" + strings.Repeat("]", 3000), dialect: store.DuckDB},
	{query: "SELECT '1'::INTEGER" + strings.Repeat("[]", 1000), dialect: store.DuckDB},
	{query: "SELECT '1'::" + strings.Repeat("STRUCT(a ", 500) + "INTEGER" + strings.Repeat(")", 500), dialect: store.DuckDB},
	{query: "SELECT json_extract(detail, '$" + strings.Repeat("[*]", 20_000) + "') FROM orders"},
	{query: "SELECT id FROM orders GROUP BY CUBE (" + strings.Repeat("id, ", 40) + "id)", dialect: store.DuckDB},
	{query: "SELECT id FROM orders GROUP BY GROUPING SETS (CUBE (id, customer, amount, placed, detail), CUBE (id, customer, amount, placed, detail), CUBE (id, customer, amount, placed, detail), CUBE (id, customer, amount, placed, detail))", dialect: store.DuckDB},
	{query: "SELECT array_agg(repeat('x', 1000)) OVER () FROM range(100000000)", dialect: store.DuckDB},
	{query: "SELECT max(x) FROM (SELECT string_agg(a.x, '') OVER (ROWS UNBOUNDED PRECEDING) AS x FROM range(1000000) a(x))", dialect: store.DuckDB},
}

// crossed are n more orders to be multiplied, joined are n to be joined.
func crossed(n int) (more string) {
	for i := range n {
		more += ", orders o" + strconv.Itoa(i)
	}
	return more
}

func joined(n int) (more string) {
	for i := range n {
		more += " JOIN orders j" + strconv.Itoa(i) + " ON j" + strconv.Itoa(i) + ".id < orders.id + " + strconv.Itoa(i)
	}
	return more
}

func TestSelectStaysWithinItsLimits(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	const atOnce = 5
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			e := stockedWith(t, engine.Options{Dir: t.TempDir(), Driver: driver, Warmup: true, Limits: engine.Limits{MemoryBytes: 64 << 20}})
			var queries []string
			for _, bomb := range bombs {
				deaf := bomb.deaf && driver.Dialect() == store.DuckDB
				if !deaf && (bomb.dialect == "" || bomb.dialect == driver.Dialect()) {
					queries = append(queries, bomb.query)
				}
			}
			for batch := range slices.Chunk(queries, atOnce) {
				var group sync.WaitGroup
				for _, query := range batch {
					group.Go(func() { explode(t, e, query) })
				}
				group.Wait()
				checkUnharmed(t, e, strings.Join(batch, "\n"))
			}
		})
	}
}

// TestABombThatCannotBeStoppedEndsItsProcessOnly runs each in a process, as the
// plugin does: its caller gets a typed error, the process ends, and the next one
// finds everything that was acknowledged.
func TestABombThatCannotBeStoppedEndsItsProcessOnly(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	for _, driver := range drivers(t) {
		if driver.Dialect() != store.DuckDB {
			continue
		}
		dir := t.TempDir()
		if err := stocked(t, driver, dir).Close(); err != nil {
			t.Fatal(err)
		}
		started, overran := 0, 0
		for _, bomb := range bombs {
			if !bomb.deaf {
				continue
			}
			started++
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBombProcess$")
			command.Env = append(os.Environ(), "TEA_BOMB="+bomb.query, "TEA_BOMB_DIR="+dir)
			out, err := command.Output()
			code := command.ProcessState.ExitCode()
			kind, _, _ := strings.Cut(string(out), ": ")
			if code != overrun && code != 0 || kind != string(tea.Timeout) && kind != string(tea.ResourceExhausted) {
				t.Errorf("%.200s\nended with %d (%v) and said %.300s", bomb.query, code, err, out)
			}
			if code == overrun {
				overran++
			}
		}
		if overran == 0 {
			t.Error("DuckDB has stopped all of them")
		}
		e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		checkUnharmed(t, e, "all of them")
		table, err := e.Select(t.Context(), "SELECT count(*) FROM kept", store.Sandbox{Tables: []string{"kept"}, Timeout: time.Minute})
		if err != nil || rowsOf(t, table) != fmt.Sprintf("[[%d]]", started) {
			t.Errorf("%d writes were acknowledged, there are %v (%v)", started, table.Rows, err)
		}
	}
}

// overrun is the exit code of a process with a query that cannot be stopped.
const overrun = 3

// TestBombProcess is such a process: it writes, and then runs the query.
func TestBombProcess(t *testing.T) {
	dir := os.Getenv("TEA_BOMB_DIR")
	if dir == "" {
		t.Skip("it is run by another test")
	}
	for _, driver := range drivers(t) {
		if driver.Dialect() != store.DuckDB {
			continue
		}
		answered := make(chan struct{})
		end := func(bool) {
			go func() {
				<-answered
				os.Exit(overrun)
			}()
		}
		e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver, Limits: engine.Limits{MemoryBytes: 64 << 20}, Overrun: end})
		if err != nil {
			t.Fatal(err)
		}
		err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (n INTEGER)"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "INSERT INTO kept VALUES (1)")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		bounds := outside()
		bounds.Timeout = 250 * time.Millisecond
		_, err = e.Select(t.Context(), os.Getenv("TEA_BOMB"), bounds)
		fmt.Printf("%v\n", err) // the type comes first
		close(answered)
		if !strings.Contains(fmt.Sprint(err), "did not stop it") {
			_ = e.Close() // it was stopped after all
			os.Exit(0)
		}
		select {}
	}
}

func explode(t *testing.T, e *engine.Engine, query string) {
	t.Helper()
	bounds := outside()
	bounds.Timeout = 250 * time.Millisecond
	table, err := selectOnceFree(t, e, query, bounds)
	var typed *tea.Error
	switch {
	case err == nil && len(table.Rows) > bounds.MaxRows:
		t.Errorf("%.200s\nhas %d rows", query, len(table.Rows))
	case err == nil:
	case !errors.As(err, &typed):
		t.Errorf("%.200s\nends with %v", query, err)
	case typed.Type != tea.Timeout && typed.Type != tea.ValidationError && typed.Type != tea.QueryError:
		t.Errorf("%.200s\nends with %v", query, err)
	}
}
