//go:build !js

package main_test

import (
	"testing"
)

// expect compares the JSON text that a script returns.
func (p *page) expect(want, body string) {
	p.t.Helper()
	if got := p.script(body); got != want {
		p.t.Errorf("got  %.2000s\nwant %s", got, want)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`{"state":{"m":9007199254740993,"n":-12345678901234567890,"sum":41.5,"text":"9007199254740993","\"":[[],{},9007199254740993]},"status":"done","events":["run_start","node_start","node_end","run_end"]}`, `
		const tea = await openTea();
		const run = tea.run("nodes:\n  - {name: a, run: 'return {sum = state.sum + 0.5}'}\n", { input: { m: 9007199254740993n, n: -12345678901234567890n, sum: 41, text: '9007199254740993', '"': [[], {}, 9007199254740993n] } });
		const events = [];
		for await (const e of run) events.push(e.event);
		const { state, status } = await run;
		const keys = ['m', 'n', 'sum', 'text', '"'];
		return { state: Object.fromEntries(keys.map((k) => [k, state[k]])), status, events };`)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.script(`globalThis.tea = await openTea({ actions: { 'app.fail': { run: () => { throw { type: 'rate_limited', message: 'not now', retryable: true } } } } }); return 1`)
	for _, test := range []struct{ name, body, want string }{
		{"a mistake in the workflow", `await tea.run("nodes: [{name: a, uses: json.pars}]")`, `{"thrown":{"type":"validation_error","message":"/work/workflow.yaml:1:25: error TEA1401: unknown action \"json.pars\" (nodes[0].uses)\n  hint: did you mean \"json.parse\"?","codes":["TEA1401"]}}`},
		{"a node that fails", `await tea.run("nodes: [{name: a, run: 'error(\"no\")'}]")`, `"internal_error failed a"`},
		{"the page's action", `await tea.run("nodes: [{name: a, uses: app.fail}]")`, `"rate_limited failed a"`},
		{"an action that needs a process", `await tea.run("settings: {code: {enabled: true}}\nnodes: [{name: a, uses: code.execute, with: {code: 'return 1'}}]")`, `"dependency_missing failed a"`},
		{"an action", `await tea.action('json.parse', {text: '{'})`, `"validation_error  "`},
		{"a missing file", `await tea.files.readText('none.txt')`, `"not_found  "`},
		{"a run that does not exist", `await tea.resume('nothing')`, `"not_found  "`},
		{"input of the wrong type", `await tea.run("state_schema: {n: int}\nnodes: [{name: a}]", {input: {n: 'x'}})`, `"validation_error  "`},
		{"a server that does not answer", `await tea.action('http.get', {url: location.origin.replace(/:\d+/, ':1') + '/?token=secret'})`, `"connection_error  "`},
		{"a secret in an error", `await tea.run("nodes: [{name: a, run: 'error(\"my hunter2\")'}]", {secrets: {key: 'hunter2'}}).catch((e) => { throw /hunter2/.test(stringify(e) + e.message) ? new Error('leak') : e })`, `"internal_error failed a"`},
	} {
		body := "return await (async () => { " + test.body + "; })().then(() => 'no error', (e) => { if (!e.type) throw e; return e.type + ' ' + (e.result?.status ?? '') + ' ' + (e.node ?? '') })"
		if test.want[0] == '{' {
			body = test.body
		}
		if got := p.script(body); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestPageActions(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`[{"sum":9007199254740994},3,{"big":9007199254740993,"n":1}]`, `
		const tea = await openTea({ actions: {
			'app.add': { params: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] }, run: async ({ a }) => ({ sum: BigInt(a) + 1n }) },
		} });
		const { state } = await tea.run("nodes:\n  - {name: x, uses: app.add, with: {a: 9007199254740993}}\n  - {name: y, run: 'return {n = 3}'}");
		return [{ sum: state.sum }, state.n, await tea.action('json.parse', { text: '{"n":1,"big":9007199254740993}' }).then((r) => r.data)];`)
}

const asking = `const flow = "nodes:\n  - {name: count, run: 'return {n = (state.n or 0) + 1}'}\n  - {name: ask, uses: human.ask, with: {question: continue}, output: said}\n  - {name: note, uses: file.append, with: {path: notes.txt, content: '{{ state.said.answer }} {{ state.n }}'}}\n";`

// A page is reloaded while a run waits. Files and the run are still there.
func TestResumeAfterReload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := startBrowser(t, t.TempDir())
	p := b.open(t, s.URL)
	p.expect(`["waiting","continue"]`, asking+`
		globalThis.tea = await openTea({ storage: 'test' });
		const { status, pending } = await tea.run(flow);
		return [status, pending[0].question];`)
	p.load(s.URL)
	p.expect(`["waiting","done","yes 1",["run_start","node_start","node_end","node_start","interrupt","checkpoint"]]`, `
		const tea = await openTea({ storage: 'test' });
		const [run] = await tea.runs();
		const before = (await tea.events(run.id)).map((e) => e.event).slice(0, 6);
		const id = (await tea.resume(run.id, { hold: true })).pending[0].id;
		const { status } = await tea.resume(run.id, { answers: { [id]: 'yes' } });
		const text = await tea.files.readText('notes.txt');
		await tea.close();
		return [run.status, status, text, before];`)
}

// A checkpoint does not store the secret part of a configuration, nor variables.
func TestResumeWithConfigurationOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := startBrowser(t, t.TempDir()).open(t, s.URL)
	const open = `
		const options = { storage: 'test', env: { LANGUAGE: 'german' }, config: { settings: { memory: { options: { database: 'mine' } } } } };
		globalThis.tea = await openTea(options);`
	p.expect(`"waiting"`, open+`
		const flow = "settings: {ltm: {language: '${LANGUAGE}'}}\nnodes:\n  - {name: ask, uses: human.ask, with: {question: continue}}\n  - {name: store, uses: ltm.store, with: {key: k, value: Häuser}}\n";
		return (await tea.run(flow)).status;`)
	p.load(s.URL)
	p.expect(`["waiting","done",["k"]]`, open+`
		const [run] = await tea.runs();
		const held = await tea.resume(run.id, { hold: true });
		const { status } = await tea.resume(run.id, { answers: { [held.pending[0].id]: 'yes' } });
		const found = await tea.run("settings: {ltm: {language: '${LANGUAGE}'}}\nnodes: [{name: a, uses: ltm.search, with: {query: Haus}}]");
		return [held.status, status, found.state.results.map((r) => r.key)];`)
}

// Another tab reads while the first one owns the storage, and takes over.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := startBrowser(t, t.TempDir())
	first, second := b.open(t, s.URL), b.open(t, s.URL)
	first.expect(`true`, `globalThis.tea = await openTea({ storage: 'test' }); await tea.files.write('a.txt', 'first'); return tea.writable`)
	second.expect(`[false,"first","permission_denied","","permission_denied"]`, `
		globalThis.owner = new Promise((resolve) => (globalThis.took = resolve));
		globalThis.tea = await openTea({ storage: 'test', onWritable: took });
		const failure = (p) => p.then(() => '', (e) => e.type);
		return [tea.writable, await tea.files.readText('a.txt'), await failure(tea.files.write('a.txt', 'second')), await failure(tea.run('nodes: [{name: a}]').then()), await failure(tea.run('nodes: [{name: a}]', { durability: 'exit' }).then())];`)
	first.expect(`null`, `await tea.files.write('a.txt', 'last'); await tea.close()`)
	second.expect(`[true,"last","done"]`, `
		await owner;
		const text = await tea.files.readText('a.txt');
		return [tea.writable, text, (await tea.run('nodes: [{name: a}]')).status];`)
}

// A panic ends the calls in progress, and the next one has a new worker.
func TestPanic(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`["internal_error",true,"done","kept"]`, `
		let port;
		const started = [];
		globalThis.Worker = class extends Worker { constructor(...args) { super(...args); started.push(this); port = this; } };
		const tea = await openTea({ storage: 'test' });
		await tea.files.write('a.txt', 'kept');
		const waiting = tea.action('time.sleep', { seconds: 3600 });
		await tea.actions(); // the call before has arrived
		port.postMessage(['call', 'none', 'panic', '{}']);
		const e = await waiting.catch((e) => e);
		const { status } = await tea.run('nodes: [{name: a}]');
		return [e.type, e.message.includes('panic was called'), status, await tea.files.readText('a.txt')];`)
}

// A script that does not end stops at its limit, and by cancel, although there
// is one thread.
func TestEndlessScript(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`["timeout","canceled"]`, `
		const tea = await openTea();
		const endless = "nodes: [{name: a, run: 'while true do end'}]\n";
		const late = await tea.run(endless + "settings: {lua: {timeout_seconds: 0.2}}").catch((e) => e.type);
		const run = tea.run(endless);
		for await (const e of run) if (e.event === 'node_start') { run.cancel(); break; }
		return [late, await run.catch((e) => e.type)];`)
}

// A service worker cannot start a worker, so the host runs in it.
func TestInline(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`{"n":1}`, `
		const { inlineWorker } = await import('/tea/inline.js');
		const tea = await openTea({ worker: inlineWorker });
		const { state } = await tea.run("nodes: [{name: a, run: 'return {n = 1}'}]");
		await tea.close();
		return state;`)
}

// Each fsync of concurrent runs was a separate transaction.
func TestConcurrentSyncsShareTransactions(t *testing.T) {
	t.Parallel()
	newPage(t).expect(`[2,2]`, `
		const { FileSystem } = await import('/tea/fs.js');
		const { openDisk } = await import('/tea/disk.js');
		let begun = 0;
		const { transaction } = IDBDatabase.prototype;
		IDBDatabase.prototype.transaction = function (...args) { if (args[1] === 'readwrite') begun++; return transaction.apply(this, args); };
		const fs = new FileSystem(() => {});
		await fs.mount(await openDisk('files'));
		const { O_WRONLY, O_CREAT } = fs.constants;
		const call = (name, ...args) => new Promise((done, fail) => fs[name](...args, (e, result) => (e ? fail(e) : done(result))));
		const bytes = new Uint8Array(100);
		const use = async (name) => {
			const fd = await call('open', '/' + name, O_WRONLY | O_CREAT, 0o600);
			for (let at = 0; at < 200; at += 100) {
				await call('write', fd, bytes, 0, 100, at);
				await call('fsync', fd);
			}
			await call('close', fd);
		};
		await Promise.all(Array.from({ length: 100 }, (_, i) => use('f' + i)));
		const stored = new FileSystem(() => {});
		await stored.mount(await openDisk('files'));
		return [begun, stored.list('/').filter((f) => f.size === 200).length / 50]`)
}
