//go:build !js

package main_test

import (
	"fmt"
	"net/http"
	"testing"
)

// The page is reloaded while a node runs. What had finished is not run again.
func TestReloadDuringRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	const open = `
		globalThis.calls = [];
		globalThis.tea = await openTea({ storage: 'test', actions: {
			'app.first': { run() { calls.push('first'); return { n: 1 }; } },
			'app.second': { idempotent: true, run: (_, { idempotencyKey }) => new Promise((resolve) => { calls.push('second'); globalThis.finish = () => resolve({ key: idempotencyKey.length > 0 }); }) },
		} });`
	p.expect(`["first","second"]`, open+`
		tea.run("nodes:\n  - {name: a, uses: app.first, output: {first: '{{ result.n }}'}}\n  - {name: b, uses: app.second, output: {second: '{{ result.key }}'}}\n", { durability: 'sync' });
		while (!globalThis.finish) await new Promise((r) => setTimeout(r, 5));
		return calls`)
	p.load(s.URL)
	p.expect(`["stopped",true,"done",1,true,["second"]]`, open+`
		const [run] = await tea.runs();
		const resumed = tea.resume(run.id);
		while (!globalThis.finish) await new Promise((r) => setTimeout(r, 5));
		finish();
		const { status, state } = await resumed;
		return [run.status, tea.writable, status, state.first, state.second, calls]`)
}

// The host runs in a service worker, which answers the page's requests.
func TestServiceWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mux.HandleFunc("/sw.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `
			import { openTea, stringify } from '/tea/index.js';
			import { inlineWorker } from '/tea/inline.js';
			let opened;
			const answer = async () => {
				const tea = await (opened ??= openTea({ worker: inlineWorker, storage: 'test' }));
				await tea.action('ltm.store', { key: 'k', value: 9007199254740993n });
				const { state } = await tea.run("nodes: [{name: a, uses: ltm.retrieve, with: {key: k}}, {name: b, uses: file.write, with: {path: a.txt, content: 'n={{ state.value }}'}}]");
				return new Response(stringify([state.value, await tea.files.readText('a.txt')]));
			};
			addEventListener('fetch', (e) => { if (new URL(e.request.url).pathname === '/ask') e.respondWith(answer().catch((error) => new Response(String(error.stack)))); });
			addEventListener('activate', (e) => e.waitUntil(clients.claim()));`)
	})
	startBrowser(t, t.TempDir()).open(t, s.URL).expect(`["[9007199254740993,\"n=9007199254740993\"]","[9007199254740993,\"n=9007199254740993\"]"]`, `
		const controlled = new Promise((resolve) => (navigator.serviceWorker.oncontrollerchange = resolve));
		await navigator.serviceWorker.register('/sw.js', { type: 'module' });
		await controlled;
		const ask = () => fetch('/ask').then((r) => r.text());
		return [await ask(), await ask()]`)
}
