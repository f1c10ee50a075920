//go:build !js

package main_test

import (
	"path/filepath"
	"testing"
)

// A second tab could not run any workflow, since it could not write checkpoints.
func TestASecondTabRunsWorkflows(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	browser := startBrowser(t, filepath.Join(t.TempDir(), "profile"))
	first := browser.open(t, s.URL)
	first.script(`globalThis.tea = await openTea({ storage: 'test' }); await tea.files.write('a.txt', 'from the first'); return ''`)
	second := browser.open(t, s.URL)
	second.expect(`[false,"Hello, Ada","from the first"]`, `
		globalThis.tea = await openTea({ storage: 'test', onLog: () => {} });
		const { state } = await tea.run("nodes: [{name: greet, run: 'return {greeting = \"Hello, \" .. state.name}'}, {name: read, uses: file.read, with: {path: a.txt}, output: {text: '{{ result.content }}'}}]", { input: { name: 'Ada' } });
		return [tea.writable, state.greeting, state.text]`)
}

// ltm.search by vectors ended the host with a panic.
func TestSearchByVectorsInAPage(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`[["pump","valve"],["pump","valve"],"dependency_missing"]`, `
		const tea = await openTea();
		await tea.action('ltm.store', { key: 'pump', value: 'The pump leaks.', embedding: [1, 0] });
		await tea.action('ltm.store', { items: [{ key: 'valve', value: 'A valve', embedding: [0, 1] }, { key: 'none', value: 'else' }] });
		const keys = async (params) => (await tea.action('ltm.search', params)).results.map((r) => r.key);
		return [
			await keys({ mode: 'vector', embedding: [1, 0.1] }), await keys({ mode: 'hybrid', query: 'pump', embedding: [1, 0.1] }),
			await keys({ mode: 'vector', query: 'pump' }).catch((e) => e.type),
		]`)
}
