//go:build !js

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/objects"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// bucket is an object storage behind a proxy with CORS rules.
type bucket struct {
	*objtest.Server
	kind   string
	module string // of the driver, sync or opendal
	proxy  *httptest.Server
	// requests is the number of those that were not for CORS.
	requests atomic.Int64
}

func startBucket(t *testing.T, kind string) *bucket {
	t.Helper()
	b := &bucket{kind: kind, module: "sync"}
	if b.Server = objtest.S3(t); kind == "azure" {
		b.Server = objtest.Azure(t)
	}
	target := &url.URL{Scheme: "http", Host: b.Listen()}
	forward := &httputil.ReverseProxy{
		// A server may close a connection after a body that it refused.
		Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) { // the host is signed
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Access-Control-Allow-Origin", "*")
			r.Header.Set("Access-Control-Expose-Headers", "ETag")
			return nil
		},
	}
	b.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions {
			b.requests.Add(1)
			forward.ServeHTTP(w, r)
			return
		}
		for name, value := range map[string]string{"Origin": "*", "Methods": "GET, PUT, DELETE", "Headers": r.Header.Get("Access-Control-Request-Headers")} {
			w.Header().Set("Access-Control-Allow-"+name, value)
		}
	}))
	t.Cleanup(b.proxy.Close)
	return b
}

// driver is the JavaScript of the module's Objects for it at an address.
func (b *bucket) driver(module, at string) string {
	s := b.Settings
	if b.kind == "azure" {
		return fmt.Sprintf(`%s.azure({ account: %q, endpoint: '%s/%s', credentials: () => ({ accountKey: globalThis.wrong ?? %q }) })`, module, s.Account, at, s.Account, s.AccountKey)
	}
	return fmt.Sprintf(`%s.s3({ endpoint: '%s', region: %q, credentials: () => ({ accessKeyId: %q, secretAccessKey: globalThis.wrong ?? %q }) })`, module, at, s.Region, s.AccessKeyID, s.SecretAccessKey)
}

// devices defines open(database, settings of memory.sync, address of the storage),
// which returns a tea that synchronises.
func (b *bucket) devices(p *page) {
	p.t.Helper()
	p.script(fmt.Sprintf(`
		for (const module of ['sync', 'opendal']) globalThis[module] = await import('/tea/' + module + '.js');
		globalThis.at = %q;
		globalThis.open = async (database, more = {}, uri = %q, options = {}) => {
			const tea = await openTea({
				config: { settings: { ltm: { backend: 'wasm', storage: { uri } , ...options }, memory: { options: { database }, sync: more } } },
				objects: (request) => globalThis.offline ? Promise.reject(new sync.StorageError('connection_error', 'offline', 'the device is offline')) : driver()(request),
			});
			return {
				tea,
				sync: (params) => tea.action('memory.sync', params),
				store: (key, value) => tea.action('ltm.store', { key, value }),
				drop: (key) => tea.action('ltm.delete', { key }),
				async values(prefix = '') {
					const all = {};
					for (const e of (await tea.action('ltm.list', { prefix, limit: 1000 })).entries) all[e.key] = (await tea.action('ltm.retrieve', { key: e.key })).value;
					return stringify(Object.fromEntries(Object.entries(all).sort()));
				},
			};
		};
		globalThis.driver = () => %s;
		return ''`, b.proxy.URL, b.Address+"/device", strings.ReplaceAll(b.driver(b.module, "AT"), "'AT", "globalThis.at + '")))
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func eachBucket(t *testing.T, test func(t *testing.T, b *bucket, p *page)) {
	t.Helper()
	for _, kind := range []string{"s3", "azure"} {
		for _, module := range []string{"sync", "opendal"} {
			t.Run(kind+" "+module, func(t *testing.T) {
				t.Parallel()
				if module == "opendal" {
					needOpenDAL(t)
				}
				p := newPage(t)
				b := startBucket(t, kind)
				b.module = module
				b.devices(p)
				test(t, b, p)
			})
		}
	}
}

// TestTwoBrowsersSynchronise changes records on two devices in every way, under
// every policy.
func TestTwoBrowsersSynchronise(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, _ *bucket, p *page) {
		got := p.script(`
			const a = await open('a'), b = await open('b'), failed = [];
			const check = (what, got, want) => { if (got !== want) failed.push([what, got, want]); };
			const long = 'x'.repeat(3000);
			// What a record is on both sides before, and then on each side. 0 = absent.
			const cases = [[0, 1, 0], [0, 0, 1], [0, 1, 1], [0, 1, 2], [1, 2, 1], [1, 1, 2], [1, 2, 2], [1, 2, 3], [1, 0, 1], [1, 1, 0], [1, 0, 2], [1, 2, 0], [1, 0, 0]];
			for (const policy of ['last_write', 'remote', 'local']) {
				const change = async (d, i, from, to) => {
					const key = policy + i;
					if (to === 0 && from !== 0) await d.drop(key);
					else if (to !== from) await d.store(key, i % 2 ? to : long + to);
				};
				for (const [i, c] of cases.entries()) await change(a, i, 0, c[0]);
				await a.sync();
				await b.sync();
				let conflicts = 0;
				const expected = {};
				for (const [i, c] of cases.entries()) await change(a, i, c[0], c[1]);
				for (const [i, [before, mine, theirs]] of cases.entries()) {
					await change(b, i, before, theirs); // the later one
					const conflict = mine !== theirs && mine !== before && theirs !== before;
					if (conflict) conflicts++;
					const winner = theirs === before || conflict && policy === 'local' ? mine : theirs;
					if (winner) expected[policy + i] = i % 2 ? winner : long + winner;
				}
				await b.sync();
				const r = await a.sync({ conflicts: policy });
				check(policy + ' conflicts', r.conflicts, conflicts);
				check(policy + ' resolved', r.resolved.length, conflicts);
				check(policy + ' refused', r.refused.length, 0);
				check(policy + ' conflicts of b', (await b.sync()).conflicts, 0);
				const want = stringify(Object.fromEntries(Object.entries(expected).sort()));
				check(policy + ' a', await a.values(policy), want);
				check(policy + ' b', await b.values(policy), want);
				for (const d of [a, b]) {
					const again = await d.sync();
					check(policy + ' again', again.pulled + again.pushed + again.deleted_locally + again.deleted_remotely + again.conflicts, 0);
				}
			}
			return failed`)
		want(t, "failed checks", got, "[]")
	})
}

// A week of changes without a network, a reload in it, and both devices at once.
func TestSynchronisationAfterAWeekOffline(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, b *bucket, p *page) {
		got := p.script(`
			const a = await open('a'), b = await open('b');
			for (let i = 0; i < 20; i++) await a.store('both' + i, 'old');
			await a.sync();
			await b.sync();
			globalThis.offline = true;
			for (let day = 0; day < 7; day++) {
				for (let i = 0; i < 10; i++) await a.store('a' + day + '/' + i, { day, text: 'word'.repeat(i) });
				for (let i = 0; i < 10; i++) await b.store('b' + day + '/' + i, day);
				await a.drop('both' + day);
				await b.store('both' + (day + 10), 'new');
			}
			const refused = await a.sync().catch((e) => e.type + ' ' + e.details.reason);
			await a.tea.close();
			await b.tea.close();
			return refused`)
		want(t, "offline", got, `"connection_error offline"`)
		if err := chromedp.Do(p.ctx, chromedp.Reload()); err != nil {
			t.Fatal(err)
		}
		p.evaluate(`new Promise((done) => { const wait = () => globalThis.loaded ? done('') : setTimeout(wait, 5); wait(); })`)
		b.devices(p)
		got = p.script(`
			const a = await open('a'), b = await open('b');
			const [x, y] = await Promise.all([a.sync(), b.sync()]); // the head's ETag of one is stale
			await a.sync();
			await b.sync();
			return [await a.values() === await b.values(), Object.keys(JSON.parse(await a.values())).length, x.pushed + y.pushed, (await a.tea.action('ltm.search', { query: 'wordword', limit: 3 })).results.length]`)
		want(t, "equal, entries, pushed, found", got, "[true,153,147,3]")
	})
}

// A device with an embedded memory uses the same objects.
func TestABrowserAndAnotherDeviceSynchronise(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, b *bucket, p *page) {
		p.script(`
			globalThis.a = await open('a');
			await a.store('page', { from: 'a page' });
			await a.tea.action('vector.store', { ids: ['v'], texts: ['t'], embeddings: [[1, 0]] });
			return (await a.sync()).pushed`)
		d := openDevice(t, b)
		if got, err := d.Call("memory.sync", nil); err != nil || got["pulled"] != int64(2) {
			t.Fatalf("the device has %v, %v", got, err)
		}
		for key, value := range map[string]any{"page": "changed", "device": strings.Repeat("large ", 1000)} {
			if _, err := d.Call("ltm.store", map[string]any{"key": key, "value": value}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Call("memory.sync", nil); err != nil {
			t.Fatal(err)
		}
		got := p.script(`
			await a.sync();
			const all = JSON.parse(await a.values());
			return [all.page, all.device.length, (await a.tea.action('vector.query', { embedding: [1, 0] })).results.length]`)
		want(t, "the page has", got, `["changed",6000,1]`)
	})
}

func TestSynchronisationSaysWhyItFails(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, b *bucket, p *page) {
		unused := httptest.NewServer(http.NotFoundHandler())
		unused.Close()
		missing := strings.Replace(b.Address, "tea-test", "tea-missing", 1) + "/x"
		got := p.script(fmt.Sprintf(`
			const all = [];
			const attempt = async (d) => { await d.store('k', 1); all.push(await d.sync().then(() => 'done', (e) => e.type + ' ' + e.details?.reason)); await d.tea.close(); };
			globalThis.wrong = btoa('a wrong key');
			await attempt(await open('wrong'));
			delete globalThis.wrong;
			globalThis.at = 'http://%s';
			await attempt(await open('no cors'));
			globalThis.at = %q;
			await attempt(await open('gone'));
			globalThis.at = %q;
			await attempt(await open('no bucket', {}, %q));
			const bare = await openTea({ config: { settings: { ltm: { storage: { uri: 's3://b/p' } } } } });
			await attempt({ tea: bare, store: (key, value) => bare.action('ltm.store', { key, value }), sync: () => bare.action('memory.sync') });
			await attempt(await open('well'));
			return all`, b.Listen(), unused.URL, b.proxy.URL, missing))
		want(t, "failures", got, `["permission_denied credentials","permission_denied cors","connection_error unreachable","not_found bucket_missing","dependency_missing undefined","done"]`)
	})
}

// In the background: after a change, when the network is back, and conflicts are
// reported.
func TestSynchronisationInTheBackground(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := startBucket(t, "s3")
	b.devices(p)
	background := `{ background: true, delay: 0.05, interval: 600 }`
	got := p.script(`
		globalThis.until = async (fn) => { while (!(await fn())) await new Promise((done) => setTimeout(done, 20)); };
		globalThis.a = await open('a', ` + background + `);
		globalThis.b = await open('b');
		await a.store('k', 1);
		await until(async () => { await b.sync(); return (await b.values()) === '{"k":1}'; });
		// A run that has not ended could receive the next value before there is a conflict.
		await until(async () => (await a.tea.action('memory.inspect')).sync.state === 'waiting');
		await b.store('k', 2);
		await b.sync();
		return (await a.tea.action('memory.inspect')).sync.state`)
	if got != `"waiting"` && got != `"running"` {
		t.Errorf("the background is %s", got)
	}
	offline := func(off bool) {
		t.Helper()
		_, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
			return cdp.Call(ctx, target, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: off, DownloadThroughput: -1, UploadThroughput: -1})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	offline(true)
	p.script(`
		globalThis.offline = true;
		await a.store('k', 3);
		await until(async () => (await a.tea.action('memory.inspect')).sync.state === 'failing');
		globalThis.offline = false;
		return ''`)
	offline(false)
	got = p.script(`
		await until(async () => (await a.tea.action('memory.inspect')).sync.conflicts === 1);
		await until(async () => { await b.sync(); return (await b.values()) === '{"k":3}'; });
		return (await a.tea.action('memory.inspect')).sync.resolved`)
	want(t, "conflicts", got, `[{"feed":"ltm","key":"k","space":"","winner":"local"}]`)
}

// What the page passes to the driver is not stored anywhere.
func TestCredentialsAreNotStored(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"sync", "opendal"} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			if module == "opendal" {
				needOpenDAL(t)
			}
			s := newSite(t)
			b := startBucket(t, "s3")
			b.module = module
			profile := filepath.Join(t.TempDir(), "profile")
			chromium := startBrowser(t, profile)
			p := chromium.open(t, s.URL)
			b.devices(p)
			want(t, "pushed", p.script(`const a = await open('a'); await a.store('k', 'stored-text'); const r = await a.sync(); await a.tea.close(); return r.pushed`), "1")
			chromium.stop()
			if n := filesWith(t, profile, "stored-text"); n == 0 {
				t.Error("the entry is not in the profile, so the search finds nothing")
			}
			if n := filesWith(t, profile, objtest.SecretKey); n != 0 {
				t.Errorf("%d files of the profile have the secret key", n)
			}
		})
	}
}

// filesWith returns the number of files below a folder that have a text.
func filesWith(t *testing.T, dir, text string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// device is an embedded memory that synchronises with a bucket.
type device struct{ teatest.Instance }

func openDevice(t *testing.T, b *bucket) device {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"engine": "sqlite", "path": t.TempDir(), "sync": map[string]any{"engine": "objects", "url": b.Address + "/device", "options": b.Settings},
	})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(objects.Option())).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() }) // its memory is removed
	return device{instance}
}

func (d device) Call(action string, params map[string]any) (map[string]any, error) {
	if params == nil {
		params = map[string]any{}
	}
	resp, err := d.Invoke(context.Background(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}})
	if err != nil {
		return nil, err
	}
	v, err := resp.Result.Value()
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil //nolint:forcetypeassert // all actions return objects
}
