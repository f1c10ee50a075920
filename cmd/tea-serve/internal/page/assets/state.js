// The state before and after a step.
import {can, get} from "./api.js"
import {fill, h, table} from "./dom.js"

// maxCell is how much of a value a cell shows.
const maxCell = 2000
// maxChanges is how many differences are shown.
const maxChanges = 500

function isObject(value) {
	return value !== null && typeof value === "object" && !Array.isArray(value) && !JSON.isRawJSON?.(value)
}

// changes lists the differences of two values: [path, before, after].
export function changes(before, after, path = "", list = []) {
	if (list.length > maxChanges) {
		return list
	}
	const lists = Array.isArray(before) && Array.isArray(after)
	if (!lists && !(isObject(before) && isObject(after))) {
		if (JSON.stringify(before) !== JSON.stringify(after)) {
			list.push([path, before, after])
		}
		return list
	}
	const keys = lists ? Array.from({length: Math.max(before.length, after.length)}, (_, i) => i) : new Set([...Object.keys(before), ...Object.keys(after)])
	for (const key of keys) {
		const own = value => Object.hasOwn(value, key) ? value[key] : undefined
		changes(own(before), own(after), lists ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`, list)
		if (list.length > maxChanges) {
			break
		}
	}
	return list
}

function cell(tag, value) {
	if (value === undefined) {
		return ""
	}
	const text = typeof value === "string" ? value : JSON.stringify(value, null, 1)
	return h(tag, null, text.length > maxCell ? `${text.slice(0, maxCell)}… (${text.length} characters)` : text)
}

// changeTable returns a table of differences: [path, before, after].
export function changeTable(caption, before, after, list) {
	return table(caption, ["Key", before, after], list.slice(0, maxChanges).map(([path, from, to]) => [h("code", null, path), cell("del", from), cell("ins", to)]))
}

// steps shows the changes of a step: show reads them, at is the path of a node or the
// number of a record, "" for the last one.
export function steps(run, signal, forked) {
	const content = h("div", {"aria-live": "polite"}, h("p", {class: "muted"}, "Choose a node in the graph or the timeline."))
	let asked = 0
	async function show(at) {
		const mine = ++asked
		let doc
		try {
			doc = await get(`/v1/runs/${encodeURIComponent(run)}/changes${at === "" ? "" : `?at=${encodeURIComponent(at)}`}`, signal)
		} catch (err) {
			if (!signal.aborted && mine === asked) {
				fill(content, h("p", null, err.status === 404 ? "The node has not changed the state: it failed, or it has not ended." : err.message))
			}
			return
		}
		if (mine !== asked) {
			return // another step was chosen meanwhile
		}
		const list = changes(doc.before ?? {}, doc.after)
		fill(content,
			h("p", null, `Step ${doc.step}: `, h("code", null, doc.path ?? doc.kind), " ",
				can("run") ? h("button", {type: "button", onclick: () => forked(doc.step)}, "Fork after this step …") : null),
			changeTable("Changes of the state", "Before", "After", list) ??
				h("p", {class: "muted"}, "The step has not changed the state. Branches change it where they join."),
			list.length > maxChanges ? h("p", null, `More than ${maxChanges} differences: the rest is not shown.`) : null,
			h("details", null, h("summary", null, "State after the step"), h("pre", null, JSON.stringify(doc.after, null, 2).slice(0, 200000))))
	}
	return {element: content, show}
}
