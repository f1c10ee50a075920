// A report of a run: the file has its description, events and drawing.
import {fill, h} from "./dom.js"
import {RunView, section} from "./view.js"

const report = JSON.parse(document.getElementById("run").textContent)
const contents = new Map((report.files ?? []).map(file => [file.file, file]))

class Report extends RunView {
	drawing({horizontal, collapsed}) {
		const name = `${horizontal ? "-horizontal" : ""}${collapsed ? "-collapsed" : ""}`
		return report.drawings?.[name] ?? report.graph
	}


	async content({file}) {
		const {content, omitted} = contents.get(file)
		if (omitted) {
			throw new Error(omitted)
		}
		return {content: Uint8Array.from(atob(content ?? ""), character => character.charCodeAt(0))}
	}
}

const view = new Report()
view.doc = report.run
for (const event of report.events) {
	view.model.add(event)
}
view.model.stop(report.run.status)
const questions = report.run.status === "waiting" ? report.run.pending ?? [] : []
document.title = `${report.run.workflow} ${report.run.id}`
fill(view.head, view.title(report.run.workflow, report.run.id), view.facts())
document.getElementById("main").append(h("div", {class: "run"}, view.head, view.errors,
	questions.length === 0 ? "" : h("section", {class: "questions", "aria-label": "Questions"}, h("h2", null, "Waiting for an answer"), questions.map(one => h("p", null, one.question ?? one.id))),
	h("div", {class: "columns"}, section("Graph", view.graph.element, view.progress), section("Node", view.node.element)),
	section("Result", view.result.element), section("Timeline", view.timeline.element), section("Source", view.source.element),
	view.texts, section("Events and logs", view.events.element)))
if (report.graph) {
	view.graph.draw()
} else {
	fill(view.graph.element, h("p", {class: "muted"}, report.note))
}
view.showSource(report.source ?? {note: report.note})
view.result.show(report.files ?? [], report.state, report.state || report.files ? "" : report.note || "The state is not in the report.")
view.draw()
