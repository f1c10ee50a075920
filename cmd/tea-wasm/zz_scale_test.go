//go:build !js

package main_test

import (
	"fmt"
	"testing"
)

func TestZZScale(t *testing.T) {
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	for _, d := range []string{"sync"} {
		fmt.Println(d, p.script(`
		const { inlineWorker } = await import('/tea/inline.js');
		let tx = 0, puts = 0, bytes = 0, waited = 0, last = [];
		const { transaction } = IDBDatabase.prototype, { put } = IDBObjectStore.prototype;
		IDBDatabase.prototype.transaction = function (...a) { const r = transaction.apply(this, a); if (a[1] === 'readwrite') { tx++; const s = performance.now(); r.addEventListener('complete', () => waited += performance.now() - s); } return r; };
		IDBObjectStore.prototype.put = function (v, ...a) { puts++; bytes += v?.byteLength ?? JSON.stringify(v).length; return put.call(this, v, ...a); };
		const tea = await openTea({ storage: 'test`+d+`', worker: inlineWorker });
		const id = "nodes: [{name: a}]";
		const out = [];
		for (let i = 0; i < 20; i++) await tea.run(id, { input: { i } });
		const count = (n) => { const r = [tx / n, puts / n, bytes / n, waited / n].map((x) => +x.toFixed(1)); tx = puts = bytes = waited = 0; return r; };
		for (const n of [1, 10, 100, 300]) {
			count(1);
			let t0 = performance.now();
			for (let i = 0; i < n; i++) await tea.run(id, { input: { i }, durability: '`+d+`' });
			const one = performance.now() - t0, c1 = count(n);
			t0 = performance.now();
			await Promise.all(Array.from({ length: n }, (_, i) => tea.run(id, { input: { i }, durability: '`+d+`' })));
			out.push([n, +(one / n).toFixed(2), c1, +((performance.now() - t0) / n).toFixed(2), count(n)]);
		}
		await tea.close();
		return out`))
	}
}
