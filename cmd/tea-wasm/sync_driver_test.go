//go:build !js

package main_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/s3"
)

// A server signs the addresses, so the page has no credentials at all. It refuses to
// sign deletions.
func TestSynchronisationWithSignedAddresses(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"s3", "azure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			site := newSite(t)
			b := startBucket(t, kind)
			signer := b.Open(t, func(o *objstore.Settings) {
				if o.Endpoint = b.proxy.URL; kind == "azure" {
					o.Endpoint += "/" + o.Account
				}
			}, s3.Scheme(), azure.Scheme())
			site.mux.HandleFunc("/sign", func(w http.ResponseWriter, r *http.Request) {
				address, err := signer.Sign(r.Context(), r.FormValue("method"), r.FormValue("key"), time.Minute)
				if err != nil {
					http.Error(w, err.Error(), http.StatusForbidden)
					return
				}
				fmt.Fprint(w, address)
			})
			p := startBrowser(t, t.TempDir()).open(t, site.URL)
			b.devices(p)
			got := p.script(`
				globalThis.driver = () => sync.presigned(async ({ method, key }) => {
					const answer = await fetch('/sign?' + new URLSearchParams({ method, key }));
					if (!answer.ok) throw new sync.StorageError('permission_denied', 'signer', await answer.text(), false);
					return { url: await answer.text(), headers: method === 'PUT' && ` + fmt.Sprint(kind == "azure") + ` ? { 'x-ms-blob-type': 'BlockBlob' } : {} };
				});
				const a = await open('a'), b = await open('b');
				for (let i = 0; i < 5; i++) {
					await a.store('a/' + i, 'x'.repeat(i * 1000));
					await b.store('b/' + i, i);
					await Promise.all([a.sync(), b.sync()]);
				}
				await a.drop('a/1');
				await a.sync();
				const { pulled } = await b.sync();
				await a.sync();
				const same = await a.values() === await b.values();
				await a.tea.close();
				globalThis.driver = () => sync.presigned(() => { throw new Error('the signer is gone'); });
				const failed = await b.sync().catch((e) => e.type + ' ' + e.details.reason + ' ' + e.message.includes('the signer is gone'));
				return [same, Object.keys(JSON.parse(await b.values())).length, failed];`)
			want(t, "synchronised", got, `[true,9,"connection_error signing true"]`)
		})
	}
}

// Without a change of its own a page asks for those of others at intervals, and
// enable_sync and offline_fallback synchronise in the background.
func TestSynchronisationByItself(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := startBucket(t, "s3")
	b.devices(p)
	got := p.script(`
		const until = async (fn) => { while (!(await fn())) await new Promise((done) => setTimeout(done, 20)); };
		const has = (d, key) => d.tea.action('ltm.retrieve', { key }).then((r) => r.found);
		const hand = await open('by hand');
		const timer = await open('timer', { background: true, delay: 3600, interval: 1 });
		await until(async () => (await timer.tea.action('memory.inspect')).sync?.state === 'waiting');
		await hand.store('first', 1);
		await hand.sync();
		await until(() => has(timer, 'first'));
		const done = ['timer'];
		for (const option of ['enable_sync', 'offline_fallback']) {
			globalThis.offline = true;
			const d = await open(option, {}, undefined, { [option]: true });
			await d.store(option, 1); // works without a network
			await until(async () => (await d.tea.action('memory.inspect')).sync.state === 'failing');
			globalThis.offline = false;
			await d.tea.close();
			const again = await open(option, { delay: 0.05 }, undefined, { [option]: true });
			await until(() => has(again, 'first'));
			await until(async () => { await hand.sync(); return has(hand, option); });
			done.push(option);
		}
		return done;`)
	want(t, "synchronised", got, `["timer","enable_sync","offline_fallback"]`)
}

// A page takes the addresses that devices take.
func TestAddressesOfBucketsAreThoseOfDevices(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	for _, address := range []string{
		"s3://b", "s3://b/", "s3://b//", "S3://b/p", "s3://b/p/q/", "azblob://b/ü", "s3://b/a..b", "s3", "s3:/b", "s3:///p", "s3://b/a//b", "s3://b//a", "s3://b/p//",
		"s3://b/./p", "s3://b/..", "s3://b/../c/p", "s3://b/a b", "s3://b/a?b", "s3://b/a#b", "s3://b/a%2f", "s3://b/a\\b", "s3://u@b/p", "s3://b:1/p", "s3://b/a\nb", "s3://b/a:b",
	} {
		parsed, err := objstore.ParseAddress(address)
		expected := `"validation_error address"`
		if err == nil {
			expected = fmt.Sprintf("%q", parsed.Bucket+" "+parsed.Prefix+"n")
		}
		p.expect(expected, fmt.Sprintf(`
			const { locate } = await import('/tea/storage.js');
			try {
				const { bucket, key } = locate({ url: %q, name: 'n' });
				return bucket + ' ' + key;
			} catch (e) {
				return e.type + ' ' + e.reason;
			}`, address))
	}
}
