//go:build !js

package main_test

import "testing"

// What the host keeps loaded between calls must not be seen: texts and files that
// change, mistakes in parameters, and settings of which one memory has one set.
func TestLoadedWorkflowsAreCurrent(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.script(`globalThis.tea = await openTea(); return 1`)
	for _, test := range []struct{ name, want, body string }{
		{"a text", `[1,2,1]`, `
			const run = async (n) => (await tea.run("nodes: [{name: a, run: 'return {n = " + n + "}'}]")).state.n;
			return [await run(1), await run(2), await run(1)]`},
		{"a file", `[1,2]`, `
			const run = async (n) => { await tea.files.write('flow.yaml', "nodes: [{name: a, run: 'return {n = " + n + "}'}]"); return (await tea.run({ file: 'flow.yaml' })).state.n; };
			return [await run(1), await run(2)]`},
		{"a subgraph", `[1,2]`, `
			const run = async (n) => { await tea.files.write('sub.yaml', "nodes: [{name: a, run: 'return {n = " + n + "}'}]"); return (await tea.run("nodes: [{name: s, subgraph: sub.yaml}]")).state.n; };
			return [await run(1), await run(2)]`},
		{"runs at the same time", `[0,1,2,3,4,5,6,7]`, `
			const flow = "nodes: [{name: a, run: 'return {n = state.n}'}]";
			return (await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => tea.run(flow, { input: { n } })))).map((r) => r.state.n)`},
		{"mistakes in parameters", `["TEA1404","TEA1404"]`, `
			const mistake = () => tea.action('ltm.retrieve', { key: 7 }).catch((e) => e.diagnostics[0].code);
			await tea.action('ltm.retrieve', { key: 'k' });
			return [await mistake(), await mistake()]`},
		{"an action that fails", `["not_found","not_found"]`, `
			const failure = () => tea.action('file.read', { path: 'none.txt' }).catch((e) => e.type);
			return [await failure(), await failure()]`},
		{"other settings of the memory", `["done",1]`, `
			await tea.action('ltm.store', { key: 'k', value: 1 });
			const { status } = await tea.run("settings: {ltm: {language: german}}\nnodes: [{name: a, uses: ltm.list}]");
			return [status, (await tea.action('ltm.retrieve', { key: 'k' })).value]`},
	} {
		if got := p.script(test.body); got != test.want {
			t.Errorf("%s: got %.1000s, want %s", test.name, got, test.want)
		}
	}
}
