//go:build !js

package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

func TestMemorySaysThatTheStorageIsFull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, filepath.Join(t.TempDir(), "profile")).open(t, s.URL)
	full := 1_000_000.0
	p.quota(s.URL, &full)
	got := p.script(`
		globalThis.tea = await openTea();
		await tea.action('ltm.store', { key: 'small', value: 1 });
		await tea.action('ltm.store', { key: 'large', value: Array.from({ length: 400_000 }, () => Math.random().toString(36)).join('') });
		return ''`)
	if !strings.Contains(got, `"resource_exhausted"`) {
		t.Errorf("an entry larger than the quota: %s, want resource_exhausted", got)
	}
	p.quota(s.URL, nil)
	got = p.script(`
		await tea.action('ltm.store', { key: 'after', value: 2 });
		return (await tea.action('ltm.list')).entries.map((e) => e.key)`)
	if got != `["after","small"]` {
		t.Errorf("after that there are %s, want after and small", got)
	}
}

// quota limits the storage of an origin; nil removes the limit.
func (p *page) quota(origin string, bytes *float64) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: origin, QuotaSize: bytes})
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Expired entries were kept for a day while nothing could be stored.
func TestExpiredEntriesFreeAFullStorage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, filepath.Join(t.TempDir(), "profile")).open(t, s.URL)
	full := 3_000_000.0
	p.quota(s.URL, &full)
	got := p.script(`
		const tea = await openTea();
		const value = () => Array.from({ length: 150_000 }, () => Math.random().toString(36).slice(2, 12)).join('');
		const store = (key, ttl) => tea.action('ltm.store', { key, value: value(), ttl }).then(() => 'stored', (e) => e.type);
		const seen = [await store('old', 1)];
		while ((await tea.action('ltm.list')).entries.length > 0) await new Promise((done) => setTimeout(done, 50));
		seen.push(await store('first', 3600), await store('second', 3600));
		return [...seen, (await tea.action('ltm.list')).entries.map((e) => e.key)]`)
	if want := `["stored","stored","resource_exhausted",["first"]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The folder of the memory means nothing in a page: it must not make two writers.
func TestMemoryWithAFolder(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`1`, `
		const tea = await openTea();
		await tea.action('ltm.list');
		await tea.run("settings: {memory: {path: mine}}\nnodes: [{name: a, uses: ltm.store, with: {key: k, value: 1}}]");
		return (await tea.action('ltm.retrieve', { key: 'k' })).value`)
}

// Settings that name the same database share one memory, with one writer.
func TestMemoryThatIsNamedInSeveralWays(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`[1,2,3,"validation_error"]`, `
		const tea = await openTea();
		const store = (settings, value) => tea.run("settings: " + settings + "\nnodes: [{name: a, uses: ltm.store, with: {key: k, value: " + value + "}}]");
		const seen = [];
		let n = 0;
		for (const options of ['{database: tea-memory}', '{}', '{database: ""}']) {
			await store('{memory: {options: ' + options + '}}', ++n);
			seen.push((await tea.action('ltm.retrieve', { key: 'k' })).value);
		}
		return [...seen, await store('{memory: {url: "idb://x"}}', 4).catch((e) => e.type)]`)
}

// BenchmarkMemory measures calls among 10,000 entries of 1 KB, the time until a
// page has found an entry after a reload, and the memory of WebAssembly then.
func BenchmarkMemory(b *testing.B) {
	const entries = 10_000
	s := newSite(b)
	p := startBrowser(b, filepath.Join(b.TempDir(), "profile")).open(b, s.URL)
	p.script(fmt.Sprintf(`
		globalThis.tea = await openTea();
		const words = Array.from({ length: 2000 }, (_, i) => 'word' + i.toString(36));
		for (let i = 0; i < %d; i += 500) {
			const items = Array.from({ length: 500 }, (_, n) => ({ key: 'k' + (i + n), value: { text: Array.from({ length: 120 }, (_, w) => words[((i + n) * 31 + w * w * 7) %% 2000]).join(' ') } }));
			await tea.action('ltm.store', { items });
		}
		await tea.action('ltm.search', { query: 'word1' });
		return ''`, entries))
	for b.Loop() {
		for name, call := range map[string]string{
			"retrieve": `'ltm.retrieve', { key: 'k' + (i * 37 % 10000) }`,
			"store":    `'ltm.store', { key: 'new' + i, value: { text: 'a new entry ' + i } }`,
			"search":   `'ltm.search', { query: 'word' + (i * 13 % 2000).toString(36) + ' word5 worda' }`,
		} {
			b.ReportMetric(p.number(b, `
				const times = [];
				for (let i = 0; i < 200; i++) {
					const from = performance.now();
					await tea.action(`+call+`);
					times.push(performance.now() - from);
				}
				return times.sort((a, b) => a - b)[100]`), "ms-"+name)
		}
		p.load(s.URL)
		b.ReportMetric(p.number(b, `
			const from = performance.now();
			globalThis.tea = await openTea();
			await tea.action('ltm.search', { query: 'word1' });
			return performance.now() - from`), "ms-ready")
		p.load(s.URL)
		b.ReportMetric(p.number(b, `
			const { instantiate } = WebAssembly;
			let instance;
			WebAssembly.instantiate = async (...args) => (instance = await instantiate(...args));
			const { inlineWorker } = await import('/tea/inline.js');
			globalThis.tea = await openTea({ worker: inlineWorker });
			await tea.action('ltm.search', { query: 'word1' });
			return instance.exports.mem.buffer.byteLength / 1e6`), "MB-linear")
		p.load(s.URL)
		p.script(`globalThis.tea = await openTea(); return ''`)
	}
	b.ReportMetric(0, "ns/op")
}

func (p *page) number(b *testing.B, body string) (n float64) {
	b.Helper()
	text := p.script(body)
	if _, err := fmt.Sscan(text, &n); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
	return n
}
