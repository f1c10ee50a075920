// The list of runs.
import {can, changed, get, post} from "./api.js"
import {badge, button, dialog, dollars, h, lasting, notice, refill, runLink, table, when, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {keep, token} from "./session.js"

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

// runTable returns a table of runs. With chosen, a set of ids, rows can be selected;
// select is then called after a change.
export function runTable(list, own, chosen, select) {
	return table("Runs", [chosen ? "Select" : null, "Run", own ? null : "Workflow", "Status", "Trigger", "Started", "Duration", "Question or error", "Tokens", "Cost"].filter(name => name),
		list.map(run => [chosen ? checkbox(run.id, chosen, select) : null, runLink(run.id), own ? null : workflowLink(run.workflow), badge(run.status), run.trigger ?? "request", when(run.started_at ?? run.accepted_at), duration(run),
			run.question || run.error ? h("span", {class: "cut", title: run.question || run.error}, run.question || run.error) : "", run.usage?.tokens ? run.usage.tokens.toLocaleString() : "", run.usage?.usd ? dollars(run.usage.usd) : ""].filter(cell => cell !== null)))
}

function checkbox(id, chosen, select) {
	const box = h("input", {type: "checkbox", "aria-label": `Select ${id}`, onchange: () => {
		box.checked ? chosen.add(id) : chosen.delete(id)
		select()
	}})
	box.checked = chosen.has(id)
	return box
}

function duration(run) {
	return run.started_at && run.updated_at && ["done", "failed", "stopped"].includes(run.status) ? lasting(Date.parse(run.updated_at) - Date.parse(run.started_at)) : ""
}

// runs shows all runs. The filters are in the address, so that a list can be sent to
// others.
export function runs(signal) {
	const message = notice()
	const content = h("div", null, loading(8))
	const given = new URLSearchParams(location.hash.split("?")[1] ?? "")
	const field = (label, element) => h("label", {for: element.id}, label, element)
	const controls = {
		q: h("input", {type: "search", id: "q", placeholder: "Id, workflow, error, input", autocomplete: "off"}),
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
	const chosen = new Set()
	const actions = h("div", {class: "buttons", role: "group", "aria-label": "Selected runs"})

	// change asks before it changes the selected runs. Those that it cannot change stay
	// selected, with the reasons.
	async function change(name, path, hint) {
		const ids = [...chosen].slice(0, 500)
		await dialog(`${name} ${ids.length === 1 ? "1 run" : `${ids.length} runs`}?`, h("p", null, hint), name, async () => {
			const {runs: results} = await post(`/v1/runs/${path}`, {ids})
			const failed = results.filter(one => one.error)
			results.filter(one => !one.error).forEach(one => chosen.delete(one.id))
			await read()
			if (failed.length > 0) {
				throw new Error(`${results.length - failed.length} of ${results.length} runs were changed. The others:\n${failed.map(one => `${one.id}: ${one.error}`).join("\n")}`)
			}
		})
	}

	function select() {
		const act = (name, path, hint) => button(`${name} …`, () => change(name, path, hint), message.fail)
		const [first, second] = chosen
		refill(actions, chosen.size === 0 ? h("span", {class: "muted"}, can("run") ? "Select runs to compare, cancel, retry or delete them." : "Select two runs to compare them.") : [
			h("span", {role: "status"}, `${chosen.size} selected`),
			chosen.size === 2 ? button("Compare", () => location.hash = `#/compare/${encodeURIComponent(first)}/${encodeURIComponent(second)}`, message.fail) : null,
			can("run") ? [act("Cancel", "cancel", "Runs that are running, queued or waiting stop."), act("Retry", "retry", "The failed parts run again."),
				act("Delete", "delete", "The runs, their events and results are removed. This cannot be undone.")] : null,
			button("Select all", () => {
				[...known.keys()].forEach(id => chosen.add(id))
				show()
			}, message.fail),
			button("Select none", () => {
				chosen.clear()
				show()
			}, message.fail)])
	}

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
			page.runs = page.runs.map(run => run.unchanged ? known.get(run.id) : run)
			if (version) {
				keep(path, JSON.stringify(page), token()).catch(() => {}) // no space is left
			}
			list.push(...page.runs)
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
		more = Boolean(after)
		show()
	}

	let more = false
	function show() {
		chosen.forEach(id => known.has(id) || chosen.delete(id))
		select()
		refill(content, runTable([...known.values()], false, chosen, select) ?? (filters().size > 0 ? empty("No run matches the filters.", h("a", {href: "#/runs", onclick: clear}, "Show all runs")) : empty("No runs yet.", "Start one from its ", h("a", {href: "#/"}, "workflow"), ".")),
			more ? button("More", () => {
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

	select()
	every(signal, read, message.fail)
	return h("div", null, h("h1", null, "Runs"), h("div", {class: "filters", role: "search"}, field("Search", controls.q), field("Workflow", controls.workflow), field("Status", controls.status),
		field("Trigger", controls.trigger), field("From", controls.since), field("Before", controls.until)), message.element, actions, content)
}
