//go:build !js

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
)

// needOpenDAL skips a test of a package without OpenDAL.
func needOpenDAL(t *testing.T) {
	t.Helper()
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "opendal.wasm")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("OpenDAL is missing; run scripts/opendal build")
		}
		t.Skip("OpenDAL is missing; run scripts/opendal build")
	}
}

// The drivers of both modules answer equally, and each continues with the versions
// of the other. OpenDAL makes one request of HTTP for each of the page's.
func TestOpenDALAnswersAsTheOtherDrivers(t *testing.T) {
	t.Parallel()
	needOpenDAL(t)
	for _, kind := range []string{"s3", "azure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := startBucket(t, kind)
			got := newPage(t).script(fmt.Sprintf(`
				const sync = await import('/tea/sync.js'), opendal = await import('/tea/opendal.js');
				const drivers = [%s, %s], url = %q, failed = [];
				// both makes the request of each driver i, and the status of both is one of those wanted.
				const both = async (what, request, ...want) => {
					const all = [];
					for (const i of [0, 1]) all.push(await drivers[i]({ url, immutable: false, ...request(i) }));
					if (all[0].status !== all[1].status || !want.includes(all[0].status)) failed.push([what, ...all.map((a) => a.status)]);
					return all;
				};
				const bodies = [new Uint8Array(), new TextEncoder().encode('a text'), Uint8Array.from({ length: 1 << 20 }, (_, i) => i %% 251)];
				for (const [n, base] of ['a.json', 'deep/er/b.json', "sp ace/plus+and&=%%41!*()'ü日.json"].entries()) {
					const body = bodies[n], mine = (i) => i + base, other = (i) => mine(1 - i);
					const text = new Uint8Array([n]); // a server that refuses a long body may not read it
					await both('get none ' + n, (i) => ({ method: 'GET', name: mine(i) }), 404);
					await both('delete none ' + n, (i) => ({ method: 'DELETE', name: mine(i) }), 204, 404);
					const made = await both('create ' + n, (i) => ({ method: 'PUT', name: mine(i), ifNoneMatch: '*', body }), 200, 201);
					await both('create again ' + n, (i) => ({ method: 'PUT', name: other(i), ifNoneMatch: '*', body: text }), 409, 412);
					const read = await both('get ' + n, (i) => ({ method: 'GET', name: other(i) }), 200);
					for (const i of [0, 1]) {
						if (read[i].version !== made[1 - i].version) failed.push(['version ' + n, i, read[i].version, made[1 - i].version]);
						if (read[i].body.length !== body.length || !read[i].body.every((b, j) => b === body[j])) failed.push(['body ' + n, i]);
					}
					await both('get the same ' + n, (i) => ({ method: 'GET', name: other(i), ifNoneMatch: read[i].version }), 304);
					const changed = await both('replace ' + n, (i) => ({ method: 'PUT', name: other(i), ifMatch: read[i].version, body: text }), 200, 201);
					await both('replace an old version ' + n, (i) => ({ method: 'PUT', name: mine(i), ifMatch: made[i].version, body: text }), 412);
					await both('get another ' + n, (i) => ({ method: 'GET', name: mine(i), ifNoneMatch: made[i].version }), 200);
					await both('get one version ' + n, (i) => ({ method: 'GET', name: mine(i), ifMatch: changed[1 - i].version }), 200);
					await both('delete ' + n, (i) => ({ method: 'DELETE', name: other(i) }), 202, 204);
					await both('get deleted ' + n, (i) => ({ method: 'GET', name: mine(i) }), 404);
				}
				const many = Array.from({ length: 20 }, (_, i) => ({ url, method: 'PUT', name: 'many' + i, immutable: false, body: new Uint8Array([i]) }));
				await Promise.all(many.map(drivers[1]));
				const read = await Promise.all(many.map((r) => drivers[1]({ ...r, method: 'GET', body: undefined })));
				if (!read.every((a, i) => a.body.length === 1 && a.body[0] === i)) failed.push('at the same time');
				return failed`, b.driver("sync", b.proxy.URL), b.driver("opendal", b.proxy.URL), b.Address+"/answers"))
			want(t, "differences", got, "[]")
			if n := b.requests.Load(); n != 2*3*12+2*20 {
				t.Errorf("there were %d requests, want %d", n, 2*3*12+2*20)
			}
		})
	}
}

// Temporary credentials are valid for one object here.
func TestOpenDALWithASharedAccessSignature(t *testing.T) {
	t.Parallel()
	needOpenDAL(t)
	b := startBucket(t, "azure")
	signer := b.Open(t, func(o *objstore.Settings) { o.Endpoint = b.proxy.URL + "/" + o.Account }, azure.Scheme())
	p := newPage(t)
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		address, err := signer.Sign(t.Context(), method, "k", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, sas, _ := strings.Cut(address, "?")
		got := p.script(fmt.Sprintf(`
			const { azure } = await import('/tea/opendal.js');
			const driver = azure({ account: %q, endpoint: %q, credentials: { sasToken: %q } });
			const { status, body } = await driver({ url: %q, method: %q, name: 'k', immutable: false, body: %s });
			return [status, new TextDecoder().decode(body)]`, b.Settings.Account, b.proxy.URL+"/"+b.Settings.Account, "?"+sas, b.Address, method,
			map[bool]string{true: "new TextEncoder().encode('a text')", false: "undefined"}[method == http.MethodPut]))
		want(t, method, got, map[string]string{"PUT": `[201,""]`, "GET": `[200,"a text"]`}[method])
	}
}

func TestOpenDALSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	files := http.StripPrefix("/bare/", http.FileServer(http.Dir(dir)))
	s.mux.HandleFunc("/bare/", func(w http.ResponseWriter, r *http.Request) {
		if name := filepath.Base(r.URL.Path); name == "opendal.wasm" || name == "opendal-glue.js" {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	attempts := `
		const failure = (promise) => promise.then(() => 'done', (e) => [e.name, e.type, e.reason, e.retryable].join(' '));
		const request = { url: 's3://bucket', method: 'GET', name: 'k', immutable: false }, endpoint = location.origin;
		const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };`
	want(t, "without the module", p.script(attempts+`
		const { load, s3, azure } = await import('/bare/opendal.js');
		return [await failure(load()), await failure(s3({ endpoint, credentials })(request)), await failure(azure({ account: 'a', endpoint, credentials })(request))]`),
		`["StorageError dependency_missing opendal false","StorageError dependency_missing opendal false","StorageError dependency_missing opendal false"]`)
	needOpenDAL(t)
	want(t, "without settings", p.script(attempts+`
		const { load, s3, azure } = await import('/tea/opendal.js');
		await load();
		return [
			await failure(s3({ endpoint, credentials: {} })(request)),
			await failure(azure({ account: 'a', endpoint, credentials: () => null })(request)),
			await failure(s3({ endpoint, credentials: () => { throw new Error('no'); } })(request)),
			await failure(s3({ endpoint, credentials })({ ...request, url: 'nowhere' })),
			await failure(azure({ account: 'a', endpoint, credentials: { accountKey: 'not base64!' } })(request)),
			await failure(s3({ endpoint, credentials })({ ...request, method: 'POST' })),
		]`), `["StorageError permission_denied credentials false","StorageError permission_denied credentials false","StorageError connection_error signing true",`+
		`"StorageError validation_error address false","StorageError validation_error opendal false","StorageError validation_error opendal false"]`)
}

// What the servers of the other tests do not check: the token of temporary
// credentials and the address of a bucket at Amazon.
func TestOpenDALWithTemporaryCredentials(t *testing.T) {
	t.Parallel()
	needOpenDAL(t)
	s := newSite(t)
	s.mux.HandleFunc("PUT /bucket/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf("%q", r.Header.Get("X-Amz-Security-Token")))
	})
	got := startBrowser(t, t.TempDir()).open(t, s.URL).script(`
		const answers = [];
		for (const module of ['sync', 'opendal']) {
			const { s3 } = await import('/tea/' + module + '.js');
			const credentials = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'c' }, region = 'eu-central-1';
			const request = { url: 's3://bucket/p', method: 'PUT', name: 'k', immutable: false, body: new Uint8Array(3) };
			answers.push((await s3({ region, endpoint: location.origin, credentials })(request)).version);
			answers.push(await s3({ region, credentials })(request).catch((e) => e.reason + ' ' + e.message.split(' ')[0]));
		}
		return answers`)
	want(t, "answers", got, `["\"c\"","unreachable bucket.s3.eu-central-1.amazonaws.com","\"c\"","unreachable bucket.s3.eu-central-1.amazonaws.com"]`)
}
