//go:build !js

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// analytics serves DuckDB-WASM below /npm/, and at /analytics a page that has an
// import map for it.
func (s *site) analytics(t *testing.T) string {
	t.Helper()
	where, err := exec.Command("../../scripts/duckdb-wasm", "path").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(where)), "node_modules")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("DuckDB-WASM is missing; run scripts/duckdb-wasm install")
		}
		t.Skip("DuckDB-WASM is missing; run scripts/duckdb-wasm install")
	}
	s.mux.Handle("/npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir(dir))))
	s.mux.HandleFunc("/analytics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'")
		fmt.Fprint(w, `<!doctype html><title>analytics</title><link rel="icon" href="/tea/package.json">
		<script type="importmap">{"imports": {
			"@duckdb/duckdb-wasm": "/npm/@duckdb/duckdb-wasm/dist/duckdb-browser.mjs", "apache-arrow": "/npm/apache-arrow/Arrow.dom.mjs",
			"flatbuffers": "/npm/flatbuffers/mjs/flatbuffers.js", "tslib": "/npm/tslib/tslib.es6.mjs"
		}}</script>
		<script type="module">
			import * as tea from '/tea/index.js';
			import { openDuckDB } from '/tea/duckdb.js';
			Object.assign(globalThis, tea, { openDuckDB, assets: '/npm/@duckdb/duckdb-wasm/dist', loaded: true });
		</script>`)
	})
	return s.URL + "/analytics"
}

// TestDuckDB queries entries with SQL, Parquet and full text. Nothing is requested
// outside of the page's origin.
func TestDuckDB(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	address := s.analytics(t)
	s.mux.HandleFunc("/half/duckdb-eh.wasm", func(http.ResponseWriter, *http.Request) {})
	log := filepath.Join(t.TempDir(), "net.json")
	b := startBrowser(t, t.TempDir(), chromedp.Flag("log-net-log", log))
	p := b.open(t, address)
	p.expect(`2500`, `
		globalThis.tea = await openTea();
		const items = (from, n, entry) => tea.action('ltm.store', { items: Array.from({ length: n }, (_, i) => entry(from + i)) });
		await items(0, 1000, (i) => ({ key: 'sale/' + i, value: { price: i / 4, city: { name: i % 2 ? 'São Paulo' : "L'Aquila" }, tags: ['a', 'b'] }, metadata: { year: 2020 + i % 5 } }));
		await items(1000, 1000, (i) => ({ key: 'note/' + i, value: 'the ' + (i % 100 ? 'kettle' : 'teapot "green", \n') + ' number ' + i, ttl: 3600 }));
		await items(2000, 500, (i) => ({ key: 'big/' + i, value: i % 2 ? 9007199254740993n : 'x\u0000'.repeat(1000) }));
		globalThis.db = await openDuckDB({ tea, assets, fullText: 'english' });
		return (await db.query('SELECT count(*) AS n FROM entries'))[0].n`)
	for _, test := range []struct{ name, body, want string }{
		{
			"sums of members", `await db.query("SELECT fields['city.name'][1] AS city, sum(fields['price'][1]::DOUBLE) AS total FROM entries WHERE metadata['year'][1] = '2021' AND key LIKE 'sale/%' GROUP BY city ORDER BY city")`,
			`[{"city":"L'Aquila","total":12525},{"city":"São Paulo","total":12400}]`,
		},
		{"parameters", `await db.query('SELECT value FROM entries WHERE key = ? AND length(value) > ?', ['note/1100', 3])`, `[{"value":"the teapot \"green\", \n number 1100"}]`},
		{
			"JSON, lists and maps", `await db.query("SELECT value, fields, [1, NULL] AS list FROM entries WHERE key = 'sale/1'")`,
			`[{"value":"{\"city\":{\"name\":\"São Paulo\"},\"price\":0.25,\"tags\":[\"a\",\"b\"]}","fields":{"city.name":"São Paulo","price":"0.25","tags.0":"a","tags.1":"b"},"list":[1,null]}]`,
		},
		{
			"integers", `await db.query("SELECT value::BIGINT AS n, sum(value::BIGINT) AS sum, -5::HUGEINT AS small, 1.25 AS d, -0.5::DECIMAL(9,1) AS e, 170141183460469231731687303715884105727::HUGEINT AS h FROM entries WHERE key = 'big/2001' GROUP BY ALL")`,
			`[{"n":9007199254740993,"sum":9007199254740993,"small":-5,"d":1.25,"e":-0.5,"h":170141183460469231731687303715884105727}]`,
		},
		{
			"words", `await db.query("SELECT key FROM (SELECT key, fts_main_entries.match_bm25(id, 'teapots') AS score FROM entries) WHERE score IS NOT NULL ORDER BY score DESC, key LIMIT 2")`,
			`[{"key":"note/1000"},{"key":"note/1100"}]`,
		},
		{"times", `await db.query("SELECT count(*) AS n, min(updated_at) > now()::TIMESTAMP - INTERVAL 1 HOUR AS recent FROM entries WHERE expires_at BETWEEN updated_at + INTERVAL 3599 SECOND AND updated_at + INTERVAL 3601 SECOND")`, `[{"n":1000,"recent":true}]`},
		{"a timestamp", `(await db.query("SELECT TIMESTAMP '2026-01-02 03:04:05' AS t"))[0].t.toISOString()`, `"2026-01-02T03:04:05.000Z"`},
		{"Parquet", `await (async () => { const file = await db.toParquet("SELECT key, fields FROM entries WHERE key LIKE 'sale/%'"); await db.register('sales.parquet', file);
			return [new TextDecoder().decode(file.slice(0, 4)), file.length > 1000, await db.query("SELECT count(*) AS n, max(fields['price'][1]::DOUBLE) AS m FROM 'sales.parquet'")]; })()`, `["PAR1",true,[{"n":1000,"m":249.75}]]`},
		{"refresh", `await (async () => { await tea.action('ltm.delete', { prefix: 'note/' }); await tea.action('ltm.store', { key: 'new', value: 'another teapot' });
			return [...await Promise.all([db.refresh(), db.refresh()]), (await db.query("SELECT key FROM entries WHERE fts_main_entries.match_bm25(id, 'teapot') IS NOT NULL")).map((r) => r.key)]; })()`, `[1501,1501,["new"]]`},
		{"a mistake", `await db.query('SELEC 1').catch((e) => e.type)`, `"query_error"`},
		{"an extension that is not there", `await db.query("SELECT to_json(1)").catch((e) => e.type)`, `"query_error"`},
		{"still works", `await db.query('SELECT 1 AS n')`, `[{"n":1}]`},
		{"other namespaces", `await (async () => { await tea.action('ltm.store', { namespace: 'u', key: 'k', value: 1 }); const d = await openDuckDB({ tea, assets, namespaces: ['u', 'none'] });
			const r = await d.query('SELECT namespace, key, value, updated_at IS NULL AS u, fields, expires_at FROM entries'); await d.close(); return r; })()`, `[{"namespace":"u","key":"k","value":"1","u":false,"fields":{},"expires_at":null}]`},
		{"missing files", `await openDuckDB({ tea, assets: '/none' }).catch((e) => e.type)`, `"not_found"`},
		{"a missing worker", `await openDuckDB({ tea, assets: '/half' }).catch((e) => e.type + e.message.includes('worker'))`, `"internal_errortrue"`},
	} {
		if got := p.script("return " + test.body); got != test.want {
			t.Errorf("%s: got %.1000s\nwant %s", test.name, got, test.want)
		}
	}
	p.script(`await db.close(); await tea.close()`)
	b.stop()
	if n := onlyOrigin(t, s.URL, log); n < 8 {
		t.Errorf("the network log has %d requests", n)
	}
}
