/** A client of the HTTP API of `tea serve`. Start with Client. */
import type { components } from "./api.js"
import { ConnectionFailed, positionIn, RunFailed, ServerError } from "./errors.js"

export { ConnectionFailed, RunFailed, ServerError, TeaError } from "./errors.js"

/** The types of the OpenAPI document. */
export type Schemas = components["schemas"]
export type Run = Schemas["Run"]
export type Status = Schemas["Status"]
export type RunNode = Schemas["Node"]
export type RunQuestion = Schemas["RunQuestion"]
export type Source = Schemas["Source"]
export type RunFile = Schemas["RunFile"]
export type Workflow = Schemas["Workflow"]
export type WorkflowList = Schemas["WorkflowList"]

/** An event of a run, with all its fields, such as text of a token. */
export interface RunEvent {
	seq: number // from 1
	event: string // the kind, such as node_end; the last one is run_end
	node?: string
	path?: string // the execution of the node, such as each[3]
	[field: string]: unknown
}

export type Values = Record<string, unknown>

export interface Options {
	/** The token, or a function that returns it for each request, such as one that reads a file. */
	token?: string | (() => string | Promise<string>)
	/** Sends the requests instead of the global fetch. */
	fetch?: typeof fetch
}

/** signal ends the wait, not the run. AbortSignal.timeout sets a timeout. */
export interface Wait { signal?: AbortSignal }

export interface RunFilter {
	workflow?: string
	status?: Status
	trigger?: string
	search?: string // words that the id, workflow, trigger or error must contain
	since?: Date // since and until bound the time when the run was accepted
	until?: Date
}

export interface Request extends Wait {
	query?: Record<string, string | undefined>
	body?: unknown
	headers?: Record<string, string>
}

const silence = 60_000 // the server sends something every 15 seconds
const passing = new Set([429, 502, 503, 504])
const minPause = 250, maxPause = 10_000

/** A client of `tea serve`, whose address is http://HOST:PORT or https://HOST:PORT. */
export class Client {
	readonly #options: Options
	readonly #address: string

	constructor(address = "http://localhost:8311", options: Options = {}) {
		[this.#address, this.#options] = [address.replace(/\/+$/, ""), options]
	}

	/**
	 * Starts a run and returns its id once the run is on the server's disk. If it throws
	 * ConnectionFailed, the run may have started: repeat it with the same key, which starts one run.
	 */
	async start(workflow: string, input?: Values, options: { key?: string } & Wait = {}): Promise<string> {
		const { key, ...rest } = options
		const headers: Record<string, string> = key ? { "Idempotency-Key": key } : {}
		const accepted = await this.request<{ id: string }>("POST", `/v1/workflows/${encodeURIComponent(workflow)}/runs`, { body: { input }, headers, ...rest })
		return accepted.id
	}

	/** Starts a run and waits for it: see start and wait. */
	async run(workflow: string, input?: Values, options: { key?: string } & Wait = {}): Promise<Run> {
		const { signal } = options
		return this.wait(await this.start(workflow, input, options), signal ? { signal } : {})
	}

	/** Returns a run, with its state. */
	get(id: string, options: Wait = {}): Promise<Run> { return this.request("GET", runPath(id), { query: { state: "true" }, ...options }) }

	/**
	 * Waits until a run is done or asks something, and returns it with its state. It throws
	 * RunFailed if the run ends otherwise, unless check is false. It survives lost connections
	 * and restarts of the server.
	 */
	async wait(id: string, options: { check?: boolean } & Wait = {}): Promise<Run> {
		const { check = true, ...rest } = options
		let last = 0, failed: RunEvent | undefined
		for (;;) {
			const before = last
			for await (const event of this.#events(id, last, rest, last > 0)) {
				last = event.seq
				if (event.event === "node_error") failed = event
			}
			const run = await this.#getAgain(id, rest, last > 0)
			if (check && !["queued", "running", "done", "waiting"].includes(run.status)) {
				throw new RunFailed(run, failed?.path, await this.#position(id, failed, rest))
			}
			if (run.status !== "queued" && run.status !== "running") return run
			if (last === before) await sleep(minPause, rest.signal) // its next event follows soon
		}
	}

	// #getAgain repeats get while the server cannot be reached, if it has been reached before.
	async #getAgain(id: string, options: Wait, connected: boolean): Promise<Run> {
		for (let pause = minPause; ; pause = Math.min(2 * pause, maxPause)) {
			try {
				return await this.get(id, options)
			} catch (error) {
				if (!connected || !passes(error)) throw error
			}
			await sleep(pause, options.signal)
		}
	}

	async #position(id: string, failed: RunEvent | undefined, options: Wait): Promise<string | undefined> {
		const found = positionIn(String(failed?.error ?? ""))
		if (found || !failed) return found
		const source = await this.source(id, options).catch(() => undefined) // without it the position is unknown
		const path = (failed.path ?? "").replace(/#\d+|\[\d+\]/g, "")
		const line = source?.lines?.[path] ?? source?.lines?.[failed.node ?? ""]
		return line ? `${source?.file}:${line}` : undefined
	}

	/**
	 * Returns the events of a run with numbers above after, until the run ends or waits. If the
	 * connection is lost or the server restarts, it continues after the last event. If after is
	 * the last event of a waiting run, it waits for the events that follow the answer.
	 */
	events(id: string, options: { after?: number } & Wait = {}): AsyncGenerator<RunEvent, void, undefined> {
		return this.#events(id, options.after ?? 0, options, false)
	}

	async *#events(id: string, last: number, { signal }: Wait, connected: boolean): AsyncGenerator<RunEvent, void, undefined> {
		for (let pause = minPause, ended = false; ; pause = Math.min(2 * pause, maxPause)) {
			const lost = new AbortController()
			let timer = setTimeout(() => lost.abort(), silence)
			try {
				const headers = { Accept: "text/event-stream", "Last-Event-ID": String(last) }
				const response = await this.#send("GET", runPath(id, "events"), { headers, signal: signal ? AbortSignal.any([signal, lost.signal]) : lost.signal })
				if (response.status === 204 || !response.body) return
				connected = isType(response, "text/event-stream")
				if (!connected) throw new ConnectionFailed("the response is not a stream of events; check the address")
				for await (const line of readLines(response.body)) {
					clearTimeout(timer)
					timer = setTimeout(() => lost.abort(), silence)
					if (line === undefined) continue
					const event = parseEvent(line)
					connected = event !== undefined
					if (!event) throw new ConnectionFailed("the stream has something that is not an event; check the address")
					if (event.seq <= last) continue
					last = event.seq
					pause = minPause
					ended = event.event === "run_end" // events follow if the run was continued
					yield event
				}
			} catch (error) {
				signal?.throwIfAborted()
				if (!connected || !passes(error)) throw error
			} finally {
				clearTimeout(timer)
				lost.abort()
			}
			if (ended) return
			await sleep(pause, signal) // the connection is lost, or the server is stopping
		}
	}

	/** Returns runs, the newest first. It requests pages as they are needed. */
	async *runs(filter: RunFilter = {}, options: Wait = {}): AsyncGenerator<Run, void, undefined> {
		const { search, since, until, ...rest } = filter
		const query: Record<string, string | undefined> = { limit: "200", ...rest, q: search, since: since && time(since), until: until && time(until) }
		do {
			const page = await this.request<Schemas["RunPage"]>("GET", "/v1/runs", { query, ...options })
			yield* page.runs
			query.after = page.next
		} while (query.after)
	}

	/** Returns the questions that wait for a person, of all workflows. */
	async questions(): Promise<RunQuestion[]> { return (await this.request<Schemas["QuestionList"]>("GET", "/v1/questions")).questions }
	/** Answers questions of a waiting run, by the question's id, path or node; the run continues. */
	answer(id: string, answers: Values): Promise<void> { return this.resume(id, { answers }) }
	/** Continues a run; input is merged into its state, and migrate uses the current version of the workflow. */
	async resume(id: string, body: { answers?: Values; input?: Values; retry_failed?: boolean; migrate?: boolean } = {}): Promise<void> {
		await this.request("POST", runPath(id, "resume"), { body })
	}
	/** Runs the failed parts of a failed or parked run again. */
	async retry(id: string): Promise<void> { await this.request("POST", runPath(id, "retry")) }
	/** Stops a run that is running, queued, parked or waiting. */
	async cancel(id: string): Promise<void> { await this.request("POST", runPath(id, "cancel")) }
	/** Copies a run up to a step, continues the copy and returns its id. */
	async fork(id: string, at: string, input?: Values): Promise<string> {
		return (await this.request<{ id: string }>("POST", runPath(id, "fork"), { body: { at, input } })).id
	}
	/** Returns the last execution of a node, by its name or path. */
	node(id: string, at: string): Promise<RunNode> { return this.request("GET", runPath(id, "node"), { query: { at } }) }
	/** Returns the text of the workflow as it was when a run began. */
	source(id: string, options: Wait = {}): Promise<Source> { return this.request("GET", runPath(id, "source"), options) }
	/** Lists the files that a run has written. */
	async files(id: string): Promise<RunFile[]> { return (await this.request<{ files: RunFile[] }>("GET", runPath(id, "files"))).files }
	/** Draws the workflow of a run with the statuses of its nodes, as SVG. */
	graph(id: string): Promise<string> { return this.request("GET", runPath(id, "graph.svg")) }
	/** Returns the workflows, and the files that cannot be loaded. */
	workflows(): Promise<WorkflowList> { return this.request("GET", "/v1/workflows") }
	/** Returns a workflow, with the schema of its input. */
	workflow(name: string): Promise<Workflow> { return this.request("GET", `/v1/workflows/${encodeURIComponent(name)}`) }

	/** Sends any request of the API and returns the response: a JSON value, or text. It throws ServerError for an error status. */
	async request<T = unknown>(method: string, path: string, options: Request = {}): Promise<T> {
		const response = await this.#send(method, path, options)
		try {
			return await (isType(response, "application/json") ? response.json() : response.text()) as T
		} catch (error) {
			options.signal?.throwIfAborted()
			throw new ConnectionFailed(`the response is incomplete: ${reason(error)}`, error)
		}
	}

	async #send(method: string, path: string, { query = {}, body, headers = {}, signal }: Request): Promise<Response> {
		const url = new URL(this.#address + path)
		for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
		const { token } = this.#options
		const secret = typeof token === "function" ? await token() : token
		const init: RequestInit = { method, headers: { ...headers, ...(secret && { Authorization: `Bearer ${secret.trim()}` }), ...(body !== undefined && { "Content-Type": "application/json" }) } }
		if (body !== undefined) init.body = JSON.stringify(body)
		if (signal) init.signal = signal
		let response: Response
		try {
			response = await (this.#options.fetch ?? fetch)(url, init)
		} catch (error) {
			signal?.throwIfAborted()
			throw new ConnectionFailed(`the server does not answer: ${reason(error)}`, error)
		}
		if (response.ok) return response
		let message = `the server answered with status ${response.status} ${response.statusText}`
		if (isType(response, "application/problem+json")) message = (await response.json().catch(() => ({}))).detail || message
		throw new ServerError(response.status, message, Number(response.headers.get("retry-after")) || 0)
	}
}

const runPath = (id: string, of?: string): string => `/v1/runs/${encodeURIComponent(id)}${of ? `/${of}` : ""}`
const time = (date: Date): string => date.toISOString().replace(/\.\d+/, "")
const isType = (response: Response, type: string): boolean => (response.headers.get("content-type") ?? "").startsWith(type)

const passes = (error: unknown): boolean => error instanceof ConnectionFailed || (error instanceof ServerError && passing.has(error.status))

// The message of fetch's error is general; its cause says what happened.
function reason(error: unknown): string {
	const { message, cause } = error as Error
	return cause instanceof Error && cause.message ? cause.message : message
}

function parseEvent(line: string): RunEvent | undefined {
	try {
		const event = JSON.parse(line)
		return typeof event?.seq === "number" ? event : undefined
	} catch {
		return undefined
	}
}

// readLines returns the data of server-sent events, and undefined for each chunk that arrives.
async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string | undefined, void, undefined> {
	const reader = stream.getReader(), decoder = new TextDecoder()
	try {
		for (let rest = ""; ;) {
			const { done, value } = await reader.read()
			if (done) return
			yield
			const lines = (rest + decoder.decode(value, { stream: true })).split("\n")
			rest = lines.pop() ?? ""
			for (const line of lines) if (line.startsWith("data: ")) yield line.slice("data: ".length)
		}
	} catch (error) {
		throw new ConnectionFailed(`the stream is broken: ${reason(error)}`, error)
	}
}

async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
	signal?.throwIfAborted()
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); resolve() }, milliseconds)
		const stop = (): void => { clearTimeout(timer); reject(signal?.reason) }
		signal?.addEventListener("abort", stop, { once: true })
	})
}
