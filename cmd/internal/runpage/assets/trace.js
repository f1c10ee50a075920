// The timeline of a run, and its events.
import {fill, h, lasting} from "./dom.js"
import {longList} from "./list.js"

const rowHeight = 28

// Filter keeps the items whose text has all words of a query. The texts of visits and
// of the last event change.
class Filter {
	#words = []
	constructor(text) {
		this.text = text
	}
	set(query) {
		this.#words = query.toLowerCase().split(/\s+/).filter(word => word !== "")
	}
	of(items) {
		return this.#words.length === 0 ? items : items.filter(item => {
			const text = this.text(item)
			return this.#words.every(word => text.includes(word))
		})
	}
}

// search returns a field that sets a filter.
function search(label, filter, changed) {
	const field = h("input", {type: "search", "aria-label": label, placeholder: label, oninput: () => {
		filter.set(field.value)
		changed()
	}})
	return field
}

// timeline returns the visits of nodes with their times. chosen is called with the
// path of one that is clicked.
export function timeline(model, chosen) {
	const filter = new Filter(visit => `${visit.path} ${visit.status} ${visit.uses ?? ""}`.toLowerCase())
	const list = longList({label: "Visits of nodes", height: rowHeight, render: visit => {
		const end = visit.end || Math.max(model.end, visit.start)
		const total = Math.max(model.end - model.first, 1)
		const part = (from, to, attributes) => {
			const bar = h("i", attributes)
			bar.style.left = `${100 * (from - model.first) / total}%`
			bar.style.width = `${100 * (to - from) / total}%`
			return bar
		}
		const waits = visit.status === "waiting" ? [...visit.waits, [visit.end, model.end]] : visit.waits
		const waited = waits.reduce((sum, [from, to]) => sum + Math.min(to, end) - from, 0)
		const notes = [waited > 0 ? `${lasting(waited)} waiting` : "", visit.attempts > 1 ? `${visit.attempts} attempts` : "", visit.tokens ? `${visit.tokens} tokens` : ""].filter(note => note)
		return h("button", {type: "button", onclick: () => chosen(visit.path), title: visit.error ?? visit.path},
			h("span", {class: "path"}, visit.path), h("span", {class: "state", "data-status": visit.status}, visit.status),
			h("span", {class: "time"}, visit.end ? lasting(visit.end - visit.start) : "…", notes.length > 0 ? ` (${notes.join(", ")})` : ""),
			h("span", {class: "bar"}, part(visit.start, end, {"data-status": visit.status}), waits.map(([from, to]) => part(from, Math.min(to, Math.max(end, from)), {class: "wait"}))))
	}})
	const axis = h("span", {class: "bar"})
	const update = () => {
		const total = model.end - model.first
		fill(axis, total > 0 ? [0, 0.25, 0.5, 0.75, 1].map(at => h("span", null, at === 0 ? "0" : lasting(at * total))) : null)
		list.update(filter.of(model.executions))
	}
	const field = search("Search nodes", filter, update)
	return {element: h("div", null, field, h("div", {class: "axis", "aria-hidden": "true"}, h("span", {class: "path"}), h("span", {class: "state"}), h("span", {class: "time"}), axis), list.element), update, only(text) {
		field.value = text
		filter.set(text)
		update()
	}}
}

// told returns what an event says in a line.
function told(event) {
	switch (event.event) {
	case "token":
		return event.text
	case "log":
		return `${event.level ?? ""} ${event.message ?? ""}`
	case "file":
		return `${event.call} ${event.file}`
	case "retry":
		return `attempt ${event.attempt} failed: ${event.error ?? ""}; waits ${lasting(event.wait_ms ?? 0)}`
	case "interrupt":
		return event.question ?? event.kind ?? ""
	case "run_end":
		return `${event.status}${event.error ? `: ${event.error}` : ""}`
	}
	return event.error ?? event.uses ?? (event.duration_ms === undefined ? "" : lasting(event.duration_ms))
}

// eventList returns the events with their details.
export function eventList(model) {
	const filter = new Filter(event => event.search ??= JSON.stringify(event).toLowerCase())
	const details = h("pre", {hidden: true, tabindex: "0", "aria-label": "Event"})
	const list = longList({label: "Events", height: rowHeight, follow: true, render: event =>
		h("button", {type: "button", "data-event": event.event, "data-level": event.level ?? null, onclick: () => {
			const {at, search, ...shown} = event
			details.hidden = false
			details.textContent = JSON.stringify(shown, null, 2)
		}}, h("span", {class: "time"}, `+${lasting(event.at - model.first)}`), h("span", {class: "kind"}, event.event),
		h("span", {class: "path"}, event.path ?? ""), h("span", {class: "told"}, told(event)))})
	const update = () => list.update(filter.of(model.events))
	return {element: h("div", null, search("Search events and logs", filter, update), list.element, details), update}
}
