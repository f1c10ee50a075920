// Tests the client with a real `tea serve`: node --test, with tea in PATH.
import assert from "node:assert/strict"
import { spawn, type ChildProcess } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { createInterface } from "node:readline"
import { after, before, test } from "node:test"
import { Client, ConnectionFailed, RunFailed, ServerError, type Run } from "@tea/client"

const flows = {
	ask: `
state_schema: {n: {type: int, required: true}}
nodes:
  - {name: first, run: 'return {m = state.n + 1}'}
  - {name: q, uses: human.ask, with: {question: "Go on?", choices: ["yes", "no"]}, output: {answer: "{{ result.answer }}"}}
`,
	many: `
initial_state: {i: 0}
nodes: [{name: l, type: while_loop, condition: state.i < 300, max_iterations: 1000, body: [{name: x, run: 'return {i = state.i + 1}'}]}]
`,
	slow: "nodes: [{name: a, run: 'return {}'}, {name: s, uses: time.sleep, with: {seconds: 3}}, {name: z, run: 'return {z = 1}'}]\n",
	lua: "nodes:\n  - name: a\n    run: |\n      local x = 1\n      error('no')\n",
}
const dir = mkdtempSync(join(tmpdir(), "client-"))
let url: string, server: ChildProcess, tea: Client

async function freePort(): Promise<number> {
	const free = createServer().listen(0, "127.0.0.1")
	await new Promise(listening => free.once("listening", listening))
	const address = free.address()
	await new Promise(closed => free.close(closed))
	return address !== null && typeof address === "object" ? address.port : 0
}

async function start(): Promise<void> {
	server = spawn("tea", ["serve", ".", "--listen", url.slice("http://".length), "--token-file", "tokens", "-c", "served"], { cwd: dir, stdio: ["ignore", "ignore", "pipe"] })
	assert(server.stderr)
	const log: string[] = []
	for await (const line of createInterface(server.stderr)) {
		log.push(line)
		if (line.includes("serving at")) {
			server.stderr.resume()
			return
		}
	}
	assert.fail(`the server has not started:\n${log.join("\n")}`)
}

async function stop(signal: NodeJS.Signals): Promise<void> {
	const ended = new Promise(exit => server.once("exit", exit))
	server.kill(signal)
	await ended
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
	const list: T[] = []
	for await (const value of values) list.push(value)
	return list
}

before(async () => {
	for (const [name, text] of Object.entries(flows)) writeFileSync(join(dir, `${name}.yaml`), `name: ${name}\n${text}`)
	writeFileSync(join(dir, "token"), "0123456789abcdef0123\n")
	writeFileSync(join(dir, "tokens"), "run 0123456789abcdef0123\n", { mode: 0o600 })
	url = `http://127.0.0.1:${await freePort()}`
	await start()
	tea = new Client(url + "/", { token: () => readFile(join(dir, "token"), "utf8") })
})
after(() => stop("SIGKILL"))

test("a run asks and ends", async () => {
	const id = await tea.start("ask", { n: 1 }, { key: "k" })
	assert.equal(await tea.start("ask", { n: 1 }, { key: "k" }), id)
	const run: Run = await tea.wait(id, { signal: AbortSignal.timeout(30_000) })
	assert.deepEqual([run.status, run.pending?.[0]?.choices], ["waiting", ["yes", "no"]])
	assert.deepEqual((await tea.questions()).filter(q => q.run_id === id).map(q => q.pending.question), ["Go on?"])
	await assert.rejects(tea.answer(id, { q: "maybe" }), (e: ServerError) => e.status === 422 && e.type === "validation_error")
	const last = (await all(tea.events(id))).at(-1)?.seq ?? 0
	await tea.answer(id, { q: "yes" })
	assert.deepEqual((await tea.wait(id)).state, { n: 1, m: 2, answer: "yes" })
	const events = await all(tea.events(id, { after: last }))
	assert.deepEqual([events[0]?.seq, events.at(-1)?.event], [last + 1, "run_end"])
	assert.equal((await all(tea.events(id))).length, events.at(-1)?.seq) // those before and after the answer
	assert.equal((await tea.node(id, "first")).status, "done")
	assert.match(await tea.graph(id), /^<svg/)
	assert.deepEqual(await tea.files(id), [])
	assert.equal((await tea.wait(await tea.fork(id, "first", { n: 5 }))).state?.n, 5)
})

test("runs are filtered", async () => {
	const runs = await Promise.all([1, 2, 3].map(n => tea.run("ask", { n })))
	const [first, second] = runs.map(run => run.id)
	assert(first && second)
	await tea.cancel(first)
	const waiting = (await all(tea.runs({ workflow: "ask", status: "waiting" }))).map(run => run.id)
	assert(waiting.includes(second) && !waiting.includes(first))
	assert.deepEqual((await all(tea.runs({ search: second }))).map(run => run.id), [second])
	assert.deepEqual(await all(tea.runs({ until: new Date(Date.now() - 3_600_000) })), [])
})

test("errors", async () => {
	await assert.rejects(tea.run("lua"), (e: RunFailed) => {
		assert.deepEqual([e.name, e.type, e.path, basename(e.position ?? "")], ["RunFailed", "internal_error", "a", "lua.yaml:6"])
		return e instanceof RunFailed && e.run.status === "failed"
	})
	await assert.rejects(tea.start("gone"), (e: ServerError) => e.status === 404 && e.type === "not_found")
	await assert.rejects(new Client(url, { token: "0123456789abcdef3210" }).workflows(), (e: ServerError) => e.type === "permission_denied")
	await assert.rejects(new Client("http://127.0.0.1:1").wait("x"), ConnectionFailed)
	const id = await tea.start("slow")
	await assert.rejects(tea.wait(id, { signal: AbortSignal.timeout(300) }), { name: "TimeoutError" })
	assert.equal((await tea.wait(id)).state?.z, 1)
})

test("events continue after a lost connection", async () => {
	const { id } = await tea.run("many")
	const whole = await all(tea.events(id))
	let opened = 0
	const broken = new Client(url, {
		token: "0123456789abcdef0123",
		fetch: async (input, init) => { // breaks the stream, also in the middle of a line
			const response = await fetch(input, init)
			if (!String(input).endsWith("/events") || !response.body) return response
			opened++
			let left = 20_001
			const cut = new TransformStream<Uint8Array, Uint8Array>({
				transform(chunk, controller) {
					controller.enqueue(chunk.slice(0, left))
					left -= chunk.length
					if (left < 0) controller.error(new TypeError("cut"))
				},
			})
			return new Response(response.body.pipeThrough(cut), response)
		},
	})
	assert.deepEqual(await all(broken.events(id)), whole)
	assert(whole.length > 600 && opened > 1, `${whole.length} events, ${opened} streams`)
})

test("an address that is not tea's", async () => {
	for (const [type, body] of [["text/html", "<h1>It works</h1>"], ["text/event-stream", "data: {\n\n"], ["text/event-stream", "data: null\n\n"]] as const) {
		let requests = 0
		const client = new Client(url, { fetch: () => Promise.resolve(requests++ < 3 ? new Response(body, { headers: { "Content-Type": type } }) : new Response("", { status: 404 })) })
		await assert.rejects(all(client.events("x")), ConnectionFailed)
		await assert.rejects(client.wait("x"), ConnectionFailed)
		assert.equal(requests, 2)
	}
})

test("a wait survives answers of a proxy", async () => {
	for (const ask of [false, true]) {
		const id = ask ? await tea.start("ask", { n: 1 }) : (await tea.run("many")).id
		let refusals = 0
		const client = new Client(url, {
			token: "0123456789abcdef0123",
			fetch: (input, init) => !String(input).includes("/events") && refusals++ < 2 ? Promise.resolve(new Response("", { status: 503 })) : fetch(input, init),
		})
		assert.equal((await client.wait(id, { signal: AbortSignal.timeout(10_000) })).status, ask ? "waiting" : "done")
		assert.equal(refusals, 3)
	}
})

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
	test(`waits and events survive a restart after ${signal}`, async () => {
		let streams = 0, allOpen = (): void => {}
		const opened = new Promise<void>(resolve => { allOpen = resolve })
		const client = new Client(url, {
			token: "0123456789abcdef0123",
			fetch: async (input, init) => {
				const response = await fetch(input, init)
				if (String(input).endsWith("/events") && ++streams === 21) allOpen()
				return response
			},
		})
		const id = await client.start("slow")
		const events = all(client.events(id))
		const waits = Promise.all(Array.from({ length: 20 }, () => client.wait(id, { signal: AbortSignal.timeout(60_000) })))
		await opened
		await stop(signal)
		await start()
		for (const run of await waits) assert.equal(run.state?.z, 1)
		const numbers = (await events).map(event => event.seq)
		assert.deepEqual([numbers[0], ...numbers], [1, ...new Set(numbers)].sort((a, b) => a - b))
	})
}
