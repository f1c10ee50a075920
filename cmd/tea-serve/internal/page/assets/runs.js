// The list of runs.
import {changed, get} from "./api.js"
import {badge, button, dollars, h, lasting, notice, refill, runLink, table, when, workflowLink} from "./dom.js"

const statuses = ["", "running", "waiting", "failed", "stopped", "done", "queued", "parked"]
// every calls read whenever a run has changed, at least every ms, while the page is
// visible, until the signal is aborted.
export async function every(signal, read, fail, ms) {
	while (!signal.aborted) {
		if (!document.hidden) {
			try {
				await read()
			} catch (err) {
				if (!signal.aborted) {
					fail(err)
				}
			}
		}
		await changed(signal, ms)
	}
}

// runTable returns a table of runs.
export function runTable(list, own) {
	return table("Runs", ["Run", own ? null : "Workflow", "Status", "Trigger", "Started", "Duration", "Error", "Tokens", "Cost"].filter(name => name),
		list.map(run => [runLink(run.id), own ? null : workflowLink(run.workflow), badge(run.status), run.trigger ?? "request", when(run.started_at ?? run.accepted_at), duration(run),
			run.error ? h("span", {class: "cut", title: run.error}, run.error) : "", run.usage?.tokens ? run.usage.tokens.toLocaleString() : "", run.usage?.usd ? dollars(run.usage.usd) : ""].filter(cell => cell !== null)))
}

function duration(run) {
	return run.started_at && run.updated_at && ["done", "failed", "stopped"].includes(run.status) ? lasting(Date.parse(run.updated_at) - Date.parse(run.started_at)) : ""
}

// runs shows all runs. The filters are in the address, so that a list can be sent to
// others.
export function runs(signal) {
	const message = notice()
	const content = h("div", null, h("p", {class: "muted"}, "Loading …"))
	const given = new URLSearchParams(location.hash.split("?")[1] ?? "")
	const field = (label, element) => h("label", {for: element.id}, label, element)
	const controls = {
		q: h("input", {type: "search", id: "q", placeholder: "Id, workflow or error", autocomplete: "off"}),
		workflow: h("input", {type: "search", id: "workflow", placeholder: "Any", autocomplete: "off"}),
		status: h("select", {id: "status"}, statuses.map(name => h("option", {value: name}, name || "Any"))),
		trigger: h("input", {type: "search", id: "trigger", placeholder: "Any", autocomplete: "off"}),
		since: h("input", {type: "date", id: "since"}),
		until: h("input", {type: "date", id: "until"}),
	}
	for (const [name, control] of Object.entries(controls)) {
		control.value = given.get(name) ?? ""
		control.addEventListener("change", changedFilter)
	}
	let pages = 1
	let asked = 0
	let known = new Map() // descriptions by id
	const versions = new Map() // of the last responses, by request

	function filters() {
		return new URLSearchParams(Object.entries(controls).map(([name, control]) => [name, control.value.trim()]).filter(([, value]) => value !== ""))
	}

	async function read() {
		const mine = ++asked
		const list = []
		let after = ""
		for (let n = 0; n < pages; n++) {
			const query = filters()
			query.set("limit", "100")
			if (after) {
				query.set("after", after)
			}
			const path = `/v1/runs?${query}`
			const version = versions.get(path)
			const page = await get(version ? `${path}&known=${version}` : path, signal)
			versions.set(path, page.version)
			list.push(...page.runs.map(run => run.unchanged ? known.get(run.id) : run))
			after = page.next
			if (!after) {
				break
			}
		}
		if (mine !== asked) {
			return // the filters have changed meanwhile
		}
		known = new Map(list.map(run => [run.id, run]))
		message.clear()
		refill(content, runTable(list) ?? h("div", {class: "card empty"}, h("p", null, h("strong", null, filters().size > 0 ? "No run matches the filters." : "No runs yet.")), h("p", null, filters().size > 0 ? h("a", {href: "#/runs", onclick: clear}, "Show all runs") : ["Start one from its ", h("a", {href: "#/"}, "workflow"), "."])),
			after ? button("More", () => {
				pages++
				return read()
			}, message.fail) : null)
	}

	function clear() {
		for (const control of Object.values(controls)) {
			control.value = ""
		}
		changedFilter()
	}

	function changedFilter() {
		pages = 1
		const query = filters().toString()
		history.replaceState(null, "", query ? `#/runs?${query}` : "#/runs")
		read().catch(err => signal.aborted || message.fail(err))
	}

	every(signal, read, message.fail)
	return h("div", null, h("h1", null, "Runs"), h("div", {class: "filters", role: "search"}, field("Search", controls.q), field("Workflow", controls.workflow), field("Status", controls.status),
		field("Trigger", controls.trigger), field("From", controls.since), field("Before", controls.until)), message.element, content)
}
