// The workflows, and one of them with its start form.
import {can, drawingPath, get, getText, post} from "./api.js"
import {badge, dollars, fill, h, notice, refill, runLink, table, when, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {field, objectField} from "./form.js"
import {graphPane} from "./graph.js"
import {every, runTable} from "./runs.js"

// valuesMS is how often the values of triggers are read.
const valuesMS = 10000

// triggers describes the triggers of a workflow.
function triggers(list) {
	return list.map(trigger => h("div", null, trigger.name, trigger.next ? [" · next ", when(trigger.next)] : null,
		trigger.last ? [" · last ", when(trigger.last)] : null, trigger.value ? [" · value ", h("code", null, trigger.value)] : null,
		trigger.active ? " · active" : null, trigger.problem ? h("span", {class: "bad"}, ` ${trigger.problem}`) : null))
}

// workflows shows all workflows.
export function workflows(signal) {
	const message = notice()
	const content = h("div", null, loading(8))
	every(signal, async () => {
		const [list, recent] = await Promise.all([get("/v1/workflows", signal), get("/v1/runs?limit=100", signal)])
		message.clear()
		const last = new Map()
		for (const run of recent.runs) {
			if (!last.has(run.workflow)) {
				last.set(run.workflow, run)
			}
		}
		refill(content,
			list.problems.map(problem => h("section", {class: "errors"}, h("p", null, h("code", null, problem.file)), h("pre", null, problem.detail))),
			table("Workflows", ["Workflow", "Triggers", "Last run", "Running", "Queued", "Tokens today", "Cost today"], list.workflows.map(one => {
				const run = last.get(one.name)
				return [[workflowLink(one.name), one.description ? h("div", {class: "muted"}, one.description) : null], triggers(one.triggers),
					run ? [badge(run.status), " ", runLink(run.id)] : one.last_run ? [badge(one.last_run.status), " ", when(one.last_run.ended_at)] : "", `${one.running} of ${one.max_running}`, String(one.queued), String(one.tokens_today), dollars(one.usd_today)]
			})) ?? empty("The directory has no workflows.", "Put a YAML file with a workflow into it: it appears here within seconds."),
			h("h2", null, "Recent runs"), runTable(recent.runs.slice(0, 20)) ?? empty("No runs yet.", list.workflows.length > 0 ? "Choose a workflow to start one." : ""))
	}, message.fail, valuesMS)
	return h("div", null, h("h1", null, "Workflows"), message.element, content)
}

// workflow shows one workflow.
export function workflow(name, signal) {
	const path = `/v1/workflows/${encodeURIComponent(name)}`
	const message = notice()
	const trouble = notice() // of the server, until it answers again
	const facts = h("div", {class: "about"})
	const form = h("div", null, loading())
	const pane = graphPane(wanted => getText(drawingPath(path, wanted), signal))
	const graph = h("div", null, loading())
	const list = h("div", null, loading())

	const begin = can("run") ? h("section", {"aria-label": "Start a run"}, h("h2", null, "Start a run"), form) : null
	let digest = null // of the version that is shown
	let schema = null
	async function load(doc) {
		const text = JSON.stringify(doc.input_schema ?? {})
		if (text !== schema) { // else somebody can be typing
			schema = text
			fill(form, startForm(path, doc.input_schema ?? {}, message))
		}
		await pane.draw()
		fill(graph, pane.element)
		digest = doc.digest
	}
	every(signal, async () => {
		const [doc, runs] = await Promise.all([get(path, signal), get(`/v1/runs?limit=20&workflow=${encodeURIComponent(name)}`, signal)])
		trouble.clear()
		refill(facts, doc.description ? h("p", null, doc.description) : null, h("p", {class: "muted"}, h("code", null, doc.file)), triggers(doc.triggers),
			h("p", null, `${doc.running} of ${doc.max_running} running, ${doc.queued} queued · today ${doc.tokens_today} tokens, ${dollars(doc.usd_today)}`))
		refill(list, runTable(runs.runs, true) ?? empty("No runs yet.", can("run") ? "Start one with the form above." : ""))
		if (doc.digest !== digest) {
			await load(doc)
		}
	}, trouble.fail, valuesMS)
	return h("div", null, h("h1", null, name), trouble.element, message.element, facts,
		h("div", {class: "columns"}, h("section", {"aria-label": "Graph"}, h("h2", null, "Graph"), graph),
			h("div", null, begin, h("section", {"aria-label": "Runs"}, h("h2", null, "Runs"), list))))
}

// startForm returns the form that starts a run.
function startForm(path, schema, message) {
	const hasKeys = Object.keys(schema.properties ?? {}).length > 0
	const keys = hasKeys ? field(schema, "", true) : null
	const other = objectField(hasKeys ? "Other keys" : "Input", "A JSON object.")
	const send = h("button", {class: "main"}, "Start")
	return h("form", {onsubmit: async event => {
		event.preventDefault()
		send.disabled = true
		message.clear()
		try {
			const run = await post(`${path}/runs`, {input: {...other.read(), ...keys?.read()}})
			location.hash = `#/runs/${encodeURIComponent(run.id)}`
		} catch (err) {
			message.fail(err)
		}
		send.disabled = false
	}}, keys?.element, hasKeys ? h("details", null, h("summary", null, "Other keys"), other.element) : other.element, h("p", {class: "buttons"}, send))
}
