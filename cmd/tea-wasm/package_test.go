//go:build !js

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The packed package is installed into an empty project with strict types.
func TestPackage(t *testing.T) {
	t.Parallel()
	where, err := exec.Command("../../scripts/typescript", "path").Output()
	if err != nil {
		t.Fatal(err)
	}
	tsc := filepath.Join(strings.TrimSpace(string(where)), "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("TypeScript is missing; run scripts/typescript install")
		}
		t.Skip("TypeScript is missing; run scripts/typescript install")
	}
	files, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	for name, text := range map[string]string{
		"package.json":  `{"name": "empty", "private": true, "type": "module"}`,
		"tsconfig.json": `{"compilerOptions": {"strict": true, "noEmit": true, "module": "nodenext", "target": "es2022", "lib": ["es2022", "dom", "dom.asynciterable"], "types": [], "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true}, "files": ["app.ts"]}`,
		"app.ts": `import { openTea, TeaError, parse, stringify, type Event, type Result, type Tea } from '@tea/browser';
import { inlineWorker } from '@tea/browser/inline.js';
import { azure, presigned, s3, StorageError, type Objects } from '@tea/browser/sync';
import { openDuckDB, type DuckDB } from '@tea/browser/duckdb';
import * as opendal from '@tea/browser/opendal';

export async function main(text: string): Promise<string> {
	const tea: Tea = await openTea({ storage: 'app', worker: inlineWorker, actions: { 'app.add': { params: { type: 'object' }, run: ({ a }) => ({ sum: Number(a) + 1 }) } } });
	try {
		const run = tea.run(text, { input: { n: 9007199254740993n, list: [1, 'a', null] }, durability: 'sync', signal: AbortSignal.timeout(1000) });
		for await (const event of run) show(event);
		const result: Result = await run;
		const first = result.pending?.[0];
		if (result.status === 'waiting' && first) await tea.resume(result.runId, { answers: { [first.id]: 'yes' } });
		const found = await tea.validate({ file: 'flow.yaml' });
		return stringify(parse('{}')) + found.map((d) => d.code + d.line).join() + (await tea.files.readText('a.txt'));
	} catch (e) {
		if (e instanceof TeaError && e.type === 'not_found') return e.result?.runId ?? e.message;
		throw e;
	} finally {
		await tea.close();
	}
}

export const drivers: Objects[] = [
	s3({ region: 'eu-central-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } }),
	azure({ account: 'a', credentials: async () => ({ sasToken: 's' }) }),
	opendal.s3({ region: 'eu-central-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } }),
	opendal.azure({ account: 'a', credentials: async () => ({ sasToken: 's' }) }),
	presigned(async ({ method, key }) => ({ url: '/sign?' + method + key, headers: { a: 'b' } })),
	async ({ method, ifMatch }) => {
		if (method === 'PUT' && !ifMatch) throw new StorageError('connection_error', 'offline', 'no network');
		return { status: 404, version: null };
	},
];

export const preload: Promise<boolean> = opendal.load().then(() => true, (e) => e instanceof opendal.StorageError && e.type !== 'dependency_missing');

export async function total(tea: Tea): Promise<number> {
	const db: DuckDB = await openDuckDB({ tea, assets: '/duckdb', fullText: 'english' });
	const [row] = await db.query<{ n: number }>('SELECT count(*) AS n FROM entries WHERE key = ?', ['k']);
	const file: Uint8Array = await db.toParquet();
	await db.register('a.parquet', file);
	return (row?.n ?? 0) + (await db.refresh());
}

function show(event: Event): void {
	const seq: number = event.seq;
	console.log(seq, event.event, event.node ?? '');
}

// @ts-expect-error: there is no such status
export const wrong: Result['status'] = 'finished';
`,
		"check.js": `import { parse, stringify } from '@tea/browser';
import { s3 } from '@tea/browser/sync';
import { openDuckDB } from '@tea/browser/duckdb';
import * as opendal from '@tea/browser/opendal';
if (typeof s3 !== 'function') throw new Error('sync');
const missing = await openDuckDB({ tea: null, assets: 'http://localhost/' }).catch((e) => e.type);
if (missing !== 'dependency_missing') throw new Error(missing);
const offered = await opendal.load().catch((e) => e.type); // node does not fetch files
if (offered !== 'dependency_missing') throw new Error(offered);
const text = '{"a":[9007199254740993,-1,1.5,"\\"1234567890123456789",true,null,{}],"__proto__":{"b":12345678901234567890}}';
if (stringify(parse(text)) !== text) throw new Error(stringify(parse(text)));
for (const broken of ['{"a":12345678901234567890', '[1234567890123456789,]']) {
	try { parse(broken); } catch { continue; }
	throw new Error(broken + ' was parsed');
}
`,
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(dir, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run(files, "npm", "pack", "--silent", "--pack-destination", project)
	archives, err := filepath.Glob(filepath.Join(project, "tea-browser-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("npm pack wrote %v: %v", archives, err)
	}
	run(project, "npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", archives[0])
	run(project, tsc)
	for file, want := range map[string]string{"LICENSE": "MIT", "THIRD-PARTY.txt": "github.com/yuin/gopher-lua v"} {
		text, err := os.ReadFile(filepath.Join(project, "node_modules", "@tea", "browser", file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s of the package does not contain %q: %v", file, want, err)
		}
	}
	run(project, "node", "check.js")
}
