// The API of the server. The token is asked for when the server needs one; it is sent in
// a header, never in a URL.
import {dialog, h} from "./dom.js"
import {away, back, forget, keep, logIn, maxLength, recall, token} from "./session.js"

// Problem is an error that the server reports.
export class Problem extends Error {
	constructor(status, detail) {
		super(detail || `the server answered with status ${status}`)
		this.status = status
	}
}

let asking = null // the dialog that is open
let declined // the token for which nobody has given another one

// askToken asks for a token unless another request has asked for one meanwhile.
function askToken(refused) {
	if (token() !== refused) {
		return Promise.resolve(true)
	}
	if (declined === refused && !asking) { // not again with each request
		return Promise.resolve(false)
	}
	asking ??= (async () => {
		const field = h("input", {type: "password", id: "token", required: true, autocomplete: "off", spellcheck: "false"})
		const stay = h("input", {type: "checkbox", id: "stay"})
		const content = h("div", null, h("p", null, refused ? "The server does not accept the token. " : "The server needs a token. ",
			h("label", {for: "token"}, "Token"), field),
		h("p", null, stay, h("label", {for: "stay"}, " Stay logged in on this device, and keep the last data for when the server is away")))
		const given = await dialog("Token", content, "Use the token", () => {
			const text = field.value.trim()
			if (!/^[\x21-\x7e]+$/.test(text)) {
				throw new Error("a token has letters, digits and signs without spaces")
			}
			return text
		})
		if (given !== null) {
			logIn(given, stay.checked)
		} else {
			declined = refused
		}
		asking = null
		return given !== null
	})()
	return asking
}

// request sends a request and returns the response of a server that accepts it.
async function request(path, options) {
	for (;;) {
		const used = token()
		const headers = {...options.headers}
		if (used) {
			headers.Authorization = `Bearer ${used}`
		}
		let response
		try {
			response = await fetch(path, {...options, headers, cache: "no-store", credentials: "omit", redirect: "error"})
		} catch (err) {
			if (options.signal?.aborted) {
				throw err
			}
			away()
			throw new Error("The server cannot be reached.")
		}
		if (back()) {
			listeners.forEach(listener => listener())
		}
		if (response.status === 401) {
			await forget()
			if (await askToken(used)) {
				continue
			}
		}
		if (response.ok) {
			response.used = used
			return response
		}
		const text = await response.text()
		let detail = ""
		try {
			detail = JSON.parse(text).detail
		} catch {
			// not of this server
		}
		throw new Problem(response.status, response.status === 401 ? `${detail}. Load the page again to enter a token.` : detail)
	}
}

// parse reads JSON. Integers that JavaScript would round are kept as they are
// written.
export function parse(text) {
	return JSON.parse(text, (_, value, context) => {
		if (typeof value === "number" && context && JSON.rawJSON && !Number.isSafeInteger(value) && /^-?\d+$/.test(context.source)) {
			return JSON.rawJSON(context.source)
		}
		return value
	})
}

// parseEvent reads an event. Those without long numbers, which are most, are read fast.
function parseEvent(text) {
	return /\d{16}/.test(text) ? parse(text) : JSON.parse(text)
}

// number returns a number for a request, as it is written.
export function number(text) {
	return JSON.rawJSON ? JSON.rawJSON(text) : Number(text)
}

// get reads a resource.
export async function get(path, signal) {
	return parse(await getText(path, signal))
}

// getText reads a resource that is not JSON. While the server is away, it returns the last
// answer that was kept.
export async function getText(path, signal) {
	let response
	try {
		response = await request(path, {signal})
	} catch (err) {
		const kept = err.status || signal?.aborted ? null : await recall(path)
		if (kept === null) {
			throw err
		}
		return kept
	}
	const text = await response.text()
	keep(path, text, response.used).catch(() => {}) // no space is left
	return text
}

// drawingPath returns the path of a run's drawing with the wanted options.
export function drawingPath(path, wanted) {
	const query = Object.entries(wanted).filter(([, on]) => on).map(([name]) => `${name}=true`).join("&")
	return `${path}/graph.svg${query ? `?${query}` : ""}`
}

// getBytes reads a file, and reports whether secrets in it are masked.
export async function getBytes(path, signal) {
	const response = await request(path, {signal})
	return {content: new Uint8Array(await response.arrayBuffer()), masked: response.headers.get("Tea-Masked") === "true"}
}

// post sends JSON and returns the parsed answer.
export async function post(path, body) {
	return parse(await postText(path, body))
}

// postText is post for an answer that is not JSON.
export async function postText(path, body) {
	const response = await request(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)})
	return response.text()
}

// upload sends a form with files.
export async function upload(path, form) {
	return parse(await (await request(path, {method: "POST", body: form})).text())
}

// eventsOf returns the events of blocks of a stream.
function eventsOf(blocks) {
	return blocks.flatMap(block => block.split("\n").filter(line => line.startsWith("data: ")).map(line => parseEvent(line.slice(6))))
}

// events calls each with the events of a run after a number, several at a time, until
// the stream ends. opened is called when the server has answered. While it is away, each
// gets the events that were kept when a stream ended.
export async function events(run, after, signal, opened, each) {
	const path = `/v1/runs/${encodeURIComponent(run)}/events`
	let response
	try {
		response = await request(path, {signal, headers: after ? {"Last-Event-ID": String(after)} : {}})
	} catch (err) {
		const kept = after || err.status || signal.aborted ? null : await recall(path)
		if (kept !== null) {
			each(eventsOf(kept.split("\n\n")))
		}
		throw err
	}
	opened()
	if (response.status === 204) {
		return
	}
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
	let rest = ""
	let all = after ? null : ""
	for (;;) {
		const {done, value} = await reader.read()
		if (done) {
			if (all) {
				keep(path, all, response.used).catch(() => {}) // no space is left
			}
			return
		}
		all = all === null || all.length > maxLength ? null : all + value
		const blocks = (rest + value).split("\n\n")
		rest = blocks.pop()
		each(eventsOf(blocks))
	}
}

// sleep waits, less if the signal is aborted.
export function sleep(ms, signal) {
	return new Promise(resolve => {
		const end = () => {
			clearTimeout(timer)
			signal.removeEventListener("abort", end)
			resolve()
		}
		const timer = setTimeout(end, ms)
		signal.addEventListener("abort", end)
	})
}

// visible waits until the page is visible or the signal is aborted.
export async function visible(signal) {
	while (document.hidden && !signal.aborted) {
		await new Promise(resolve => {
			const end = () => {
				document.removeEventListener("visibilitychange", end)
				signal.removeEventListener("abort", end)
				resolve()
			}
			document.addEventListener("visibilitychange", end)
			signal.addEventListener("abort", end)
		})
	}
}

// whileVisible returns a controller that is aborted when the page is hidden or the signal
// is aborted. The caller must abort it to release the listeners.
export function whileVisible(signal) {
	const controller = new AbortController()
	const change = () => (document.hidden || signal.aborted) && controller.abort()
	document.addEventListener("visibilitychange", change, {signal: controller.signal})
	signal.addEventListener("abort", change, {signal: controller.signal})
	return controller
}

// refreshMS is the longest time between two refreshes of a view, pauseMS the shortest:
// on a busy server, runs change all the time.
const refreshMS = 30000
const pauseMS = 1000
const listeners = new Set()
const roles = ["view", "answer", "run", "admin"]
// role is the client's role. Until the server answers, it is that of the previous answer.
let role = sessionStorage.getItem("tea-role") ?? "run"

// can reports whether the client has a role.
export function can(needed) {
	return roles.indexOf(role) >= roles.indexOf(needed)
}

// watch calls the listeners when a run has changed, shown with the number of runs that
// wait for a person, and roleChanged when the client's role has changed. All views share
// its request.
export async function watch(shown, roleChanged) {
	const signal = new AbortController().signal
	let version = 0
	for (;;) {
		await visible(signal)
		const open = whileVisible(signal)
		try {
			const doc = await get(`/v1/changes?after=${version}`, open.signal)
			if (role !== doc.role) {
				role = doc.role
				sessionStorage.setItem("tea-role", role)
				roleChanged()
			}
			shown(doc.waiting)
			if (doc.version !== version) {
				version = doc.version
				listeners.forEach(listener => listener())
			}
			await sleep(pauseMS, open.signal)
		} catch {
			await sleep(5 * pauseMS, signal)
		}
		open.abort()
	}
}

// changed waits until a run has changed, or ms have passed.
export async function changed(signal, ms = refreshMS) {
	const wake = new AbortController()
	const end = () => wake.abort()
	listeners.add(end)
	signal.addEventListener("abort", end)
	await sleep(ms, wake.signal)
	listeners.delete(end)
	signal.removeEventListener("abort", end)
}
