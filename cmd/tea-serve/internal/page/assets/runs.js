// The list of runs.
import {changed, get} from "./api.js"
import {badge, button, dollars, h, notice, refill, runLink, table, when, workflowLink} from "./dom.js"

const statuses = ["", "running", "waiting", "failed", "stopped", "done", "queued", "parked"]
// every calls read when a run has changed and now and then, while the view is visible,
// until the signal is aborted.
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
	return table("Runs", ["Run", own ? null : "Workflow", "Status", "Trigger", "Started", "Tokens", "Cost"].filter(name => name),
		list.map(run => [runLink(run.id), own ? null : workflowLink(run.workflow), badge(run.status), run.trigger ?? "request", when(run.started_at ?? run.accepted_at),
			String(run.usage?.tokens ?? ""), run.usage?.usd ? dollars(run.usage.usd) : ""].filter(cell => cell !== null)))
}

// runs shows all runs, with filters.
export function runs(signal) {
	const message = notice()
	const content = h("div")
	const status = h("select", {id: "status"}, statuses.map(name => h("option", {value: name}, name || "any status")))
	const workflow = h("input", {id: "workflow", type: "search", placeholder: "Workflow", "aria-label": "Workflow", autocomplete: "off"})
	let pages = 1

	async function read() {
		const list = []
		let after = ""
		for (let n = 0; n < pages; n++) {
			const query = new URLSearchParams({limit: "100"})
			for (const [name, value] of [["status", status.value], ["workflow", workflow.value.trim()], ["after", after]]) {
				if (value) {
					query.set(name, value)
				}
			}
			const page = await get(`/v1/runs?${query}`, signal)
			list.push(...page.runs)
			after = page.next
			if (!after) {
				break
			}
		}
		message.clear()
		refill(content, runTable(list) ?? h("p", {class: "muted"}, "No runs."),
			after ? button("More", () => {
				pages++
				return read()
			}, message.fail) : null)
	}
	const changed = () => {
		pages = 1
		read().catch(message.fail)
	}
	status.addEventListener("change", changed)
	workflow.addEventListener("change", changed)
	every(signal, read, message.fail)
	return h("div", null, h("h1", null, "Runs"), h("p", {class: "buttons"}, h("label", {for: "status"}, "Status "), status, workflow), message.element, content)
}
