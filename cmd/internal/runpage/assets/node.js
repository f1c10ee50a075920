// The pane that shows one execution of a node.
import {badge, dollars, fill, h, lasting, when} from "./dom.js"

// maxShown is how much of a value is shown, pageSize how many items of a map.
const maxShown = 100000
const pageSize = 300
const outcomes = ["failed", "running", "waiting", "stopped", "done", "skipped"]

// text formats a value for display.
function text(value) {
	const written = typeof value === "string" ? value : JSON.stringify(value, null, 2)
	return written.length > maxShown ? `${written.slice(0, maxShown)}… (${written.length} characters)` : written
}

function isObject(value) {
	return value !== null && typeof value === "object" && !Array.isArray(value) && !JSON.isRawJSON?.(value)
}

// members lists the members of a value, so that strings keep their line breaks. special
// returns an element to show in place of a member's value, or null.
export function members(value, special = () => null) {
	if (!isObject(value)) {
		return h("pre", {tabindex: "0"}, text(value))
	}
	return h("dl", {class: "members"}, Object.entries(value).map(([key, member]) => [h("dt", null, h("code", null, key)),
		h("dd", null, special(key, member) ?? (typeof member === "string" && !member.includes("\n") && member.length < 100 ? h("code", null, member) : h("pre", {tabindex: "0"}, text(member))))]))
}

// folded returns a collapsible section.
function folded(title, content, open) {
	return h("details", {open}, h("summary", null, title), content)
}

// conversation returns the messages of a model call; null if it has none.
function conversation(params, result) {
	const said = isObject(result) ? result : {}
	const asked = isObject(params) ? params : {}
	let list = Array.isArray(said.messages) ? said.messages : null
	if (!list && (Array.isArray(asked.messages) || typeof asked.prompt === "string")) {
		list = [asked.system && {role: "system", content: asked.system}, ...asked.messages ?? [], asked.prompt && {role: "user", content: asked.prompt}].filter(Boolean)
		if (said.content || said.tool_calls?.length > 0 || said.reasoning) {
			list.push({role: "assistant", ...said})
		}
	}
	return list && h("ol", {class: "talk"}, list.map(message))
}

function message(one) {
	if (!isObject(one)) {
		return h("li", {class: "muted"}, text(one)) // stands for messages that were cut
	}
	const content = one.content === undefined || one.content === null || one.content === "" ? null : h("pre", {tabindex: "0"}, text(one.content))
	const calls = Array.isArray(one.tool_calls) ? one.tool_calls : []
	const long = one.role === "system" || one.role === "tool"
	return h("li", {"data-role": one.role ?? ""}, h("strong", null, one.role ?? "", one.name ? ` ${one.name}` : ""),
		one.reasoning ? folded("Reasoning", h("pre", {tabindex: "0"}, text(one.reasoning))) : null,
		content && long ? folded(`${text(one.content).slice(0, 80)}`, content) : content,
		calls.map(call => folded(["Calls ", h("code", null, call?.function?.name ?? call?.name ?? "a tool")], h("pre", {tabindex: "0"}, text(call?.function?.arguments ?? call?.arguments ?? call)))))
}

// nodePane returns the pane. values returns the params and the result of an execution, or
// a promise of them; shown is called with the path of an execution selected in the pane.
export function nodePane(model, values, shown) {
	const element = h("div", {class: "node"}, h("p", {class: "muted"}, "Choose a node in the graph or the timeline."))
	let current = null
	let drawn = null // the status of the execution that is shown

	async function show(path) {
		current = path
		const visit = model.visit(path)
		if (!visit) {
			return
		}
		const events = model.events.filter(event => event.path === path)
		const items = group(path)
		draw(visit, events, undefined, items)
		let found = {}
		try {
			found = await values(path) ?? {}
		} catch (err) {
			found = {note: err.message}
		}
		if (current === path) {
			draw(visit, events, found, items) // as the reader has left them
		}
	}

	function draw(visit, events, found, items) {
		drawn = visit.status
		const end = events.findLast(event => event.event === "node_end" || event.event === "node_error") ?? {}
		const retries = events.filter(event => event.event === "retry")
		const logs = events.filter(event => event.event === "log")
		const talk = found && conversation(found.params, found.result)
		const said = model.texts.get(visit.path)
		fill(element,
			h("h3", null, h("code", null, visit.path), " ", badge(visit.status)),
			h("p", {class: "muted"}, [visit.uses && h("code", null, visit.uses), visit.end ? lasting(visit.end - visit.start) : null, visit.attempts > 1 ? `${visit.attempts} attempts` : null,
				visit.tokens ? `${visit.tokens} tokens` : null, end.cost_usd ? dollars(end.cost_usd) : null, end.model].filter(Boolean).flatMap((part, i) => i > 0 ? [" · ", part] : part)),
			end.error ? h("div", {class: "errors"}, h("strong", null, end.error_type ?? "error"), h("pre", {tabindex: "0"}, end.error), end.details ? folded("Details", members(end.details)) : null) : null,
			retries.length > 0 ? h("ol", {class: "attempts"}, retries.map(one => h("li", null, `Attempt ${one.attempt} failed`, one.call ? ` (${one.call})` : "", `, then waited ${lasting(one.wait_ms ?? 0)}: `, one.error ?? ""))) : null,
			items,
			talk ? folded("Conversation", talk, true) : null,
			found?.params !== undefined ? folded("Parameters", members(found.params), !talk) : null,
			found?.result !== undefined ? folded("Result", members(found.result), !talk) : null,
			said && !talk ? folded("Text of the model", h("pre", {tabindex: "0"}, said), true) : null,
			found && found.params === undefined && found.result === undefined && !model.groups.has(visit.path) && (visit.status === "done" || visit.status === "failed") ? h("p", {class: "muted"}, found.note ?? (visit.status === "failed" ? "No parameters are stored." : "Neither parameters nor a result are stored.")) : null,
			logs.length > 0 ? folded(`Logs (${logs.length})`, h("ol", {class: "logs"}, logs.slice(-200).map(one => h("li", {"data-level": one.level}, when(one.ts), ` ${one.level ?? ""} `, one.message ?? "", one.fields ? ` ${JSON.stringify(one.fields)}` : ""))), true) : null)
	}

	// group returns the items or branches that a node has started.
	function group(path) {
		const all = model.groups.get(path)?.items
		if (!all || all.length === 0) {
			return null
		}
		const counts = outcomes.map(status => [status, all.filter(item => item.status === status).length]).filter(([, n]) => n > 0)
		const box = h("div", {class: "items"})
		const inside = h("div")
		function page(status, n) {
			const list = status ? all.filter(item => item.status === status) : all
			const last = Math.max(Math.ceil(list.length / pageSize) - 1, 0)
			const turn = (label, to) => h("button", {type: "button", disabled: to < 0 || to > last, onclick: () => page(status, to)}, label)
			const tab = (label, name) => h("button", {type: "button", "aria-pressed": String(status === name), "data-status": name, onclick: () => page(name, 0)}, label)
			fill(box, h("p", {class: "buttons"}, tab(`all ${all.length}`, ""), counts.map(([name, count]) => tab(`${name} ${count}`, name))),
				h("div", {class: "grid"}, list.slice(n * pageSize, (n + 1) * pageSize).map(item => h("button", {type: "button", "data-status": item.status, title: `${item.label}: ${item.status}`, "aria-label": `${item.label}: ${item.status}`, onclick: () => open(item)}, item.short))),
				last > 0 ? h("p", {class: "buttons"}, turn("Previous", n - 1), `${n * pageSize + 1} to ${Math.min((n + 1) * pageSize, list.length)} of ${list.length}`, turn("Next", n + 1)) : null, inside)
		}
		function open(item) {
			const visits = model.executions.filter(one => one.path.startsWith(`${item.path}/`))
			const chosen = visits.find(one => one.status === "failed") ?? visits.at(-1)
			fill(inside, h("p", null, h("strong", null, item.label), " ", badge(item.status), item.error ? ` ${item.error}` : ""),
				h("p", {class: "buttons"}, visits.slice(0, 50).map(one => h("button", {type: "button", "data-status": one.status, onclick: () => shown(one.path)}, one.path.slice(item.path.length + 1)))))
			if (chosen && visits.length === 1) {
				shown(chosen.path)
			}
		}
		page(counts[0]?.[0] === "failed" ? "failed" : "", 0)
		return box
	}
	return {element, show, get path() {
		return current
	}, update() { // redraws the execution once it has ended
		if (current !== null && drawn !== model.visit(current)?.status) {
			show(current)
		}
	}}
}
