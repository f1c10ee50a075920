//go:build !js

package main_test

import (
	"encoding/json"
	"testing"
)

// BenchmarkBrowser measures in Chromium: the start with an empty storage, and
// warm runs, as the engine times them (ms) and as the page waits for them
// (page-ms).
func BenchmarkBrowser(b *testing.B) {
	p := newPage(b)
	measure := func(b *testing.B, body string) {
		b.Helper()
		var m map[string]float64
		text := p.script(body)
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			b.Fatalf("%s: %v", text, err)
		}
		for unit, value := range m {
			b.ReportMetric(value, unit)
		}
		b.ReportMetric(0, "ns/op")
	}
	b.Run("Ready", func(b *testing.B) {
		measure(b, `
			let best = Infinity;
			for (let i = 0; i < 5; i++) {
				const started = performance.now();
				const tea = await openTea({ storage: 'bench' + i });
				best = Math.min(best, performance.now() - started);
				await tea.close();
			}
			return { ms: best };`)
	})
	for name, flow := range map[string]string{
		"Chain3":  `nodes: [{name: a}, {name: b}, {name: c}]`,
		"LuaNode": `nodes: [{name: a, run: 'return {n = state.n + 1}'}]`,
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, `
				const tea = await openTea();
				const options = { durability: 'off', input: { n: 1 } };
				const run = () => tea.run("`+flow+`", options);
				for (let i = 0; i < 200; i++) await run();
				let engine = Infinity, page = Infinity;
				for (let round = 0; round < 5; round++) {
					const started = performance.now();
					let sum = 0;
					for (let i = 0; i < 200; i++) sum += (await run()).elapsedMs;
					engine = Math.min(engine, sum / 200);
					page = Math.min(page, (performance.now() - started) / 200);
				}
				await tea.close();
				return { ms: engine, 'page-ms': page };`)
		})
	}
}
