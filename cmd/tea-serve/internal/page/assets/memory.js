// The contents of a workflow's memory: entries, vectors, sessions and the graph.
import {can, get, post, postText} from "./api.js"
import {button, dialog, fill, h, notice, table, when} from "./dom.js"
import {empty, loading} from "./empty.js"
import {drawing} from "./graph.js"

const views = ["Entries", "Vectors", "Sessions", "Graph"]
const maxCell = 300

function short(value) {
	const text = typeof value === "string" ? value : JSON.stringify(value) ?? ""
	return h("code", {title: text.slice(0, 2000)}, text.length > maxCell ? `${text.slice(0, maxCell)}…` : text)
}

// memory shows the memory of a workflow. The workflow, the namespace, the view and the
// search are in the address.
export function memory(signal) {
	const given = new URLSearchParams(location.hash.split("?")[1] ?? "")
	const message = notice()
	const about = h("p", {class: "muted"})
	const content = h("div", null, loading())
	const workflow = h("select", {id: "workflow"})
	const view = h("select", {id: "view"}, views.map(name => h("option", null, name)))
	const namespace = h("input", {id: "namespace", type: "search", placeholder: "Default", autocomplete: "off"})
	const query = h("input", {id: "q", type: "search", placeholder: "All", autocomplete: "off"})
	view.value = given.get("view") ?? views[0]
	namespace.value = given.get("namespace") ?? ""
	query.value = given.get("q") ?? ""
	let asked = 0

	const path = action => `/v1/workflows/${encodeURIComponent(workflow.value)}/memory/${action}`
	const call = (action, params) => post(path(action), params)
	const common = () => namespace.value ? {namespace: namespace.value} : {}
	const more = (cursor, show) => cursor ? button("More", () => show(cursor), message.fail) : null

	async function remove(key) {
		const done = await dialog("Delete the entry?", h("p", null, h("code", null, key), " is removed. This cannot be undone."), "Delete", () => call("ltm.delete", {...common(), key}))
		if (done) {
			await show()
		}
	}

	const shows = {
		async Entries(cursor) {
			const text = query.value.trim()
			const found = await call(text ? "ltm.search" : "ltm.list", {...common(), limit: 50, ...text ? {query: text} : {}, ...cursor ? {cursor} : {}})
			const rows = found.results ?? found.entries
			return [table("Entries", ["Key", "Value", text ? "Score" : "Changed", can("admin") ? "Action" : null].filter(name => name), rows.map(one => [h("code", null, one.key), one.damaged ? "damaged" : short(one.value),
				text ? one.score.toFixed(3) : when(one.updated_at), can("admin") ? button("Delete …", () => remove(one.key), message.fail, {"aria-label": `Delete ${one.key} …`}) : null].filter(cell => cell !== null))), more(found.next_cursor, show)]
		},
		async Vectors(cursor) {
			const collection = namespace.value || "ltm"
			const found = await call("vector.list", {collection, limit: 20, include_embeddings: true, ...cursor ? {cursor} : {}})
			const near = async one => {
				const {results} = await call("vector.query", {collection, embedding: one.embedding, k: 10})
				fill(content, h("h2", null, "Near ", h("code", null, one.id)), table("Near", ["Id", "Text", "Score"], results.map(item => [h("code", null, item.id), short(item.text), item.score.toFixed(3)])), button("All vectors", () => show(), message.fail))
			}
			return [table("Vectors", ["Id", "Text", "Near this one"], found.items.map(one => [h("code", null, one.id), short(one.text), one.embedding ? button("Show", () => near(one), message.fail, {"aria-label": `Near ${one.id}`}) : ""])), more(found.next_cursor, show)]
		},
		async Sessions(cursor) {
			const found = await call("session.list", {limit: 50, ...cursor ? {cursor} : {}})
			return [table("Sessions", ["Session", "User", "Status", "Created"], found.sessions.map(one => [h("code", null, one.session_id), one.user_id ?? "", one.status ?? "", when(one.created_at)])), more(found.next_cursor, show)]
		},
		async Graph() {
			const text = query.value.trim()
			if (!text) {
				return [empty("Search for an entity.", "Its neighbours are drawn.")]
			}
			const {results} = await call("graph.search", {...common(), query: text, limit: 10})
			const around = h("div")
			const draw = async id => {
				const svg = await postText(`${path("graph.subgraph")}?drawn=true`, {...common(), entity_id: id, depth: 1, limit: 40})
				fill(around, h("h2", null, "Around ", h("code", null, id)), drawing(svg, key => draw(key).catch(message.fail), []).element)
			}
			if (results.length > 0) {
				await draw(results[0].id)
			}
			return [table("Entities", ["Entity", "Type", "Score"], results.map(one => [button(one.id, () => draw(one.id), message.fail), one.type, one.score?.toFixed(3) ?? ""])), around]
		},
	}

	async function show(cursor) {
		const mine = ++asked
		message.clear()
		history.replaceState(null, "", `#/memory?${new URLSearchParams({workflow: workflow.value, view: view.value, ...namespace.value ? {namespace: namespace.value} : {}, ...query.value ? {q: query.value} : {}})}`)
		try {
			const parts = await shows[view.value](typeof cursor === "string" ? cursor : "")
			mine === asked && !signal.aborted && fill(content, parts[0] ?? empty("Nothing is stored here.", "Choose another workflow or namespace; memories can be shared by workflows."), parts.slice(1))
		} catch (err) {
			if (mine === asked && !signal.aborted) {
				fill(content)
				message.fail(err)
			}
		}
	}

	async function start() {
		const {workflows} = await get("/v1/workflows", signal)
		fill(workflow, workflows.map(one => h("option", null, one.name)))
		if (workflows.length === 0) {
			fill(content, empty("The directory has no workflows.", "The memory is that of a workflow's settings."))
			return
		}
		workflow.value = workflows.some(one => one.name === given.get("workflow")) ? given.get("workflow") : workflows[0].name
		await choose()
	}

	async function choose() {
		await show()
		const found = await call("memory.inspect", {}).catch(() => null)
		about.textContent = found ? `${found.engine}, ${found.state}${found.problem ? `: ${found.problem}` : ""} · ${Object.entries(found.entries).map(([name, n]) => `${n} ${name}`).join(", ") || "no entries"} · ${(found.total_bytes / 1e6).toFixed(1)} MB` : ""
	}

	workflow.addEventListener("change", choose)
	for (const control of [view, namespace, query]) {
		control.addEventListener("change", show)
	}
	start().catch(err => signal.aborted || message.fail(err))
	const field = (label, element) => h("label", {for: element.id}, label, element)
	return h("div", null, h("h1", null, "Memory"), h("div", {class: "filters", role: "search"}, field("Workflow", workflow), field("Show", view), field("Namespace or collection", namespace), field("Search", query)), message.element, about, content)
}
