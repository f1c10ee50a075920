// What the events and the description of a run say, for the page and for reports.
import {badge, dollars, fill, h, lasting, notice, when} from "./dom.js"
import {graphPane} from "./graph.js"
import {Model} from "./model.js"
import {nodePane} from "./node.js"
import {resultPane} from "./result.js"
import {sourcePane} from "./source.js"
import {eventList, timeline} from "./trace.js"

// maxProblems is how many errors of nodes are shown on top.
const maxProblems = 20

// fact returns a row of facts, none without a value.
export function fact(name, value) {
	return value === null || value === undefined || value === "" ? null : h("div", null, h("dt", null, name), h("dd", null, value))
}

// section returns a part of the page with a title.
export function section(title, ...content) {
	return h("section", {"aria-label": title}, h("h2", null, title), content)
}

// RunView shows a run. doc is its description, as in the API.
export class RunView {
	model = new Model()
	doc = null
	message = notice()
	head = h("div")
	errors = h("div")
	progress = h("div", {class: "progress"})
	texts = h("div")
	shownTexts = new Map()
	timeline = timeline(this.model, path => this.choose(path))
	events = eventList(this.model)
	node = nodePane(this.model, path => this.values(path), path => this.choose(path))

	source = sourcePane()
	result = resultPane(file => this.content(file))

	// values returns the params and the result of an execution.
	values(path) {
		return this.model.values.get(path)
	}

	// choose shows the execution at a path.
	choose(path) {
		this.node.show(path)
		this.markSource()
	}

	// markSource marks the lines of the execution that is shown.
	markSource() {
		const visit = this.model.visit(this.node.path)
		if (visit) {
			this.source.mark(visit.key, visit.status === "failed" ? visit.error ?? "" : undefined)
		}
	}

	// showSource shows the text of the workflow file.
	showSource(doc) {
		this.source.show(doc)
		this.markSource()
	}

	graph = graphPane(wanted => this.drawing(wanted), key => {
		this.timeline.only(key)
		const visits = this.model.executions.filter(visit => visit.key === key)
		if (visits.length > 0) {
			this.choose((visits.findLast(visit => visit.status === "failed") ?? visits.at(-1)).path)
		}
	})

	// title returns the heading; name and id can be links.
	title(name, id) {
		return h("h1", null, name, " ", h("span", {class: "id"}, id), " ", h("span", {role: "status"}, badge(this.doc.status)))
	}

	// facts returns a list of facts, with those of the caller in between.
	facts(...more) {
		const usage = this.doc.usage ?? this.model.usage
		return h("dl", {class: "facts"},
			fact("Started", when(this.doc.started_at)), fact("Updated", when(this.doc.updated_at)), fact("Node", this.doc.node), more,
			fact("Steps", usage?.steps), fact("Tokens", usage?.tokens || null), fact("Cost", usage?.usd ? dollars(usage.usd) : null),
			fact("Retries", this.model.retries || null), fact("Time", this.model.end ? lasting(this.model.end - this.model.first) : null))
	}

	// draw shows what the events say.
	draw() {
		this.timeline.update()
		this.events.update()
		this.graph.mark(this.model)
		fill(this.progress, [...this.model.groups.values()].slice(0, 20).map(group => h("p", null,
			h("label", null, h("code", null, group.path), ` ${group.done + group.failed} of ${group.total}`, group.running > 0 ? `, ${group.running} running` : "", group.failed > 0 ? `, ${group.failed} failed` : "", " ",
				h("progress", {max: group.total, value: group.done + group.failed})))))
		this.modelTexts()
		this.problems()
		this.node.update()
		const failure = this.node.path === null && ["failed", "parked"].includes(this.doc?.status) && this.model.failure(this.doc.node)
		if (failure) {
			this.choose(failure.path)
		}
	}

	// modelTexts shows the last texts of models. Those that are shown stay as they are:
	// somebody can have closed or marked one.
	modelTexts() {
		const texts = [...this.model.texts].slice(-8)
		const shown = this.shownTexts
		this.shownTexts = new Map(texts.map(([path]) => [path, shown.get(path) ?? h("pre", {class: "text"})]))
		for (const [path, text] of texts) {
			const element = this.shownTexts.get(path)
			if (element.textContent !== text) {
				element.textContent = text
			}
		}
		if (texts.some(([path]) => !shown.has(path))) {
			fill(this.texts, section("Texts of models",
				[...this.shownTexts].map(([path, element]) => element.parentElement ?? h("details", {open: true}, h("summary", null, h("code", null, path)), element))))
		}
	}

	// problems shows the errors of the run and of its nodes.
	problems() {
		const doc = this.doc ?? {}
		const nodes = this.model.problems.slice(-maxProblems)
		const rest = this.model.problems.length - nodes.length
		const over = doc.error || doc.parked || doc.failures?.length > 0
		const text = JSON.stringify([doc.error, doc.parked, doc.failures, doc.notes, this.model.problems.length])
		if (text === this.problemText) {
			return
		}
		this.problemText = text
		fill(this.errors, !over && nodes.length === 0 && !doc.notes ? null : h("section", {class: over || nodes.length > 0 ? "errors" : null, "aria-label": "Errors"},
			doc.error ? h("p", null, h("strong", null, doc.error)) : null,
			doc.parked && doc.parked !== doc.error ? h("p", null, doc.parked) : null,
			(doc.failures ?? []).slice(0, maxProblems).map(failure => h("p", null, h("code", null, failure.path), ` ${failure.error_type ?? ""}: ${failure.error ?? ""}`)),
			nodes.length === 0 ? null : h("details", null, h("summary", null, `${this.model.problems.length} errors of nodes`),
				rest > 0 ? h("p", null, `The last ${maxProblems}:`) : null,
				nodes.map(event => h("p", null, h("code", null, event.path ?? ""), ` ${event.error_type ?? ""}: ${event.error ?? ""}`))),
			(doc.notes ?? []).map(note => h("p", null, note))))
	}
}
