//go:build !js

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

// What a page passes by mistake is a TeaError, and nothing hangs.
func TestWrongUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	p.script(`globalThis.tea = await openTea({ storage: 'test', actions: {
		'app.cycle': { run() { const a = {}; a.a = a; return a; } },
		'app.odd': { run() { throw { type: 'rate_limited', message: 5, details: 'x' }; } },
		'app.map': { run: () => new Map() },
		'app.never': { run: () => new Promise(() => {}) },
	} }); return ''`)
	const flow = `'nodes: [{name: a}]'`
	for body, want := range map[string]string{
		`openTea({ actions: { 'bad name': { run() {} } } })`: `"validation_error"`,
		`openTea({ actions: { 'x.y': {} } })`:                `"validation_error"`,
		`openTea({ storag: 'x' })`:                           `"validation_error"`,
		`openTea({ storage: 5 })`:                            `"validation_error"`,
		`openTea({ config: { x: new Map() } })`:              `"validation_error"`,
		`(async () => tea.run(` + flow + `, { inputs: {} }))().catch((e) => e.message.slice(0, 44))`: `"run has no option inputs; it has name, input"`,
		`tea.run(` + flow + `, { durability: 5 })`:                                                   `"validation_error"`,
		`tea.run(` + flow + `, { interruptBefore: 'a' })`:                                            `"validation_error"`,
		`tea.run(` + flow + `, { input: { m: new Map() } })`:                                         `"validation_error"`,
		`tea.run(` + flow + `, { input: { m: new Uint8Array(2) } })`:                                 `"validation_error"`,
		`tea.run(` + flow + `, { input: { m: fetch('/') } })`:                                        `"validation_error"`,
		`tea.run(` + flow + `, { input: { m: () => 1 } })`:                                           `"validation_error"`,
		`tea.run(` + flow + `, { input: { m: new Date(NaN) } })`:                                     `"validation_error"`,
		`tea.run(` + flow + `, null)`:                                                                `"validation_error"`,
		`tea.action(5)`:                                                                              `"validation_error"`,
		`tea.action('json.parse', { text: '1' }, { secret: {} })`:                                    `"validation_error"`,
		`tea.action('app.map')`:                                                                      `"internal_error"`,
		`openTea({ actions: { 'json.parse': { run() {} } } })`:                                       `"validation_error"`,
		`openTea({ config: { settings: { lua: { timeout: 1 } } } })`:                                 `"validation_error"`,
		`(async () => { const log = []; await openTea({ config: { settings: { memry: {} } }, onLog: (l) => log.push(parse(l)) }); return log.map((l) => [l.level, l.msg.includes('TEA1605')]) })()`: `[["WARN",true]]`,
		`(async () => { const log = []; const tea = await openTea({ onLog: (l) => log.push(parse(l).level) }); await tea.run("settings: {memry: {}}\nnodes: [{name: a}]"); return log })()`:         `["WARN"]`,
		`openTea({ env: { A: 5 } })`:                                `"validation_error"`,
		`openTea({ wasm: '/missing.wasm' })`:                        `"internal_error"`,
		`tea.run()`:                                                 `"validation_error"`,
		`tea.run({})`:                                               `"validation_error"`,
		`tea.run(` + flow + `, { input: { a: NaN } })`:              `"validation_error"`,
		`tea.run(` + flow + `, { input: [1] })`:                     `"validation_error"`,
		`tea.run(` + flow + `, { name: '' }).then((r) => r.status)`: `"done"`,
		`tea.run(` + flow + `, { signal: AbortSignal.abort() })`:    `"canceled"`,
		`(() => { const r = tea.run("nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}}]"); r.cancel(); return r; })()`: `"canceled"`,
		`tea.run(` + flow + `, { input: { n: 2 ** 60, d: new Date(0), u: undefined } }).then((r) => r.state)`:                   `{"d":"1970-01-01T00:00:00.000Z","n":1152921504606846976}`,
		`tea.resume()`:                     `"validation_error"`,
		`tea.resume('../x')`:               `"not_found"`,
		`tea.inspect(` + flow + `, 'png')`: `"validation_error"`,
		`tea.action('app.cycle')`:          `"internal_error"`,
		`tea.action('app.odd').catch((e) => [e.type, e.message])`: `["rate_limited","rate_limited: 5"]`,
		`tea.files.write('n', 5)`:                                 `"validation_error"`,
		`tea.files.write('n', null)`:                              `"validation_error"`,
		`tea.files.write(undefined, 'x')`:                         `"validation_error"`,
		`tea.files.write('b', new Uint16Array([513]).buffer).then(() => tea.files.read('b')).then((b) => [...b])`: `[1,2]`,
		`tea.files.write('../x.txt', 'a')`:                                    `"permission_denied"`,
		`tea.files.write('a/.. /../../x.txt', 'a')`:                           `"permission_denied"`,
		`tea.files.write('/runs/x', 'a')`:                                     `"permission_denied"`,
		`tea.files.read('/work/../runs')`:                                     `"permission_denied"`,
		`tea.files.list('/')`:                                                 `"permission_denied"`,
		`tea.files.list('/workshop')`:                                         `"permission_denied"`,
		`tea.files.write('a\0.txt', 'a')`:                                     `"permission_denied"`,
		`tea.files.write('a\u2215b', 'a')`:                                    `"permission_denied"`,
		`tea.files.write('a\ud800', 'a')`:                                     `"permission_denied"`,
		`tea.files.list('a\\b').catch((e) => e.message)`:                      `"path \"a\\\\b\" contains the character \"\\\\\", which is not allowed"`,
		`tea.files.write('', 'a')`:                                            `"validation_error"`,
		`tea.files.remove('.')`:                                               `"permission_denied"`,
		`tea.files.remove('/work/./')`:                                        `"permission_denied"`,
		`tea.files.write('/work/c', 'a').then(() => tea.files.readText('c'))`: `"a"`,
		`tea.run({ file: '../runs/x.yaml' })`:                                 `"permission_denied"`,
		`tea.run(` + flow + `, { name: '../../x.yaml' })`:                     `"permission_denied"`,
		`tea.files.read('none.txt').catch((e) => e.message)`:                  `"/work/none.txt: does not exist"`,
	} {
		if got := p.script(`return await (async () => ` + body + `)().catch((e) => { if (!(e instanceof TeaError)) throw e; return e.type; })`); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	p.expect(`["canceled","canceled","canceled","canceled","canceled"]`, `
		const type = (promise) => promise.then(() => 'done', (e) => e.type);
		const run = tea.run('nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}}]');
		const all = [tea.action('app.never'), run, (async () => { for await (const e of run); })()].map(type);
		await tea.actions();
		await Promise.all([tea.close(), tea.close()]);
		return Promise.all([...all, type(tea.run(`+flow+`)), type(tea.files.read('b'))])`)
}

// The user clears the data of the site while a page has them open. The host crashed.
func TestStorageIsClearedWhileOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	p.script(`globalThis.tea = await openTea({ storage: 'test' }); await tea.files.write('a.txt', 'x'); await tea.action('ltm.store', { key: 'k', value: 1 }); return ''`)
	_, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: s.URL, StorageTypes: "all"})
	})
	if err != nil {
		t.Fatal(err)
	}
	p.expect(`["connection_error","connection_error","internal_error",false,true,[]]`, `
		const type = (promise) => promise.then(() => 'done', (e) => e.type);
		const files = [await type(tea.files.write('b.txt', 'x')), await type(tea.files.readText('a.txt')),
			await type(tea.run("nodes: [{name: a, uses: file.read, with: {path: a.txt}}]", { durability: 'off' }))];
		const memory = [(await tea.action('ltm.retrieve', { key: 'k' })).found, (await tea.action('ltm.store', { key: 'k', value: 2 })).stored];
		await type(tea.close());
		globalThis.tea = await openTea({ storage: 'test' });
		return [...files, ...memory, await tea.files.list()]`)
}

// The page's Content Security Policy forbids workers.
func TestWorkersAreForbidden(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("/forbidden", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "worker-src 'none'")
		fmt.Fprint(w, `<!doctype html><script type="module">
			import * as tea from '/tea/index.js';
			Object.assign(globalThis, tea, { loaded: true });
		</script>`)
	})
	p := startBrowser(t, t.TempDir()).open(t, s.URL+"/forbidden")
	p.expect(`["internal_error",true]`, `return openTea().catch((e) => [e.type, e instanceof TeaError])`)
}
