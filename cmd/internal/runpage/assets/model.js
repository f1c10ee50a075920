// What the events of a run say about its nodes.

// maxText is how much of the text of a model is kept per node.
const maxText = 20000
// maxListed is how much of it is one event of the list.
const maxListed = 1000

// nodeKey returns the path of a node in the graph, without branches, indexes and
// visits: each/fetch for each[3]/fetch#2, check for start>disk/check. The last part is
// that of the node; known are the names of nodes, which tell them from branches.
export function nodeKey(path, node, known) {
	const names = []
	const parts = path.split("/")
	parts.forEach((part, i) => {
		if (i === parts.length - 1 && node && part.startsWith(node) && (part === node || "[#~!".includes(part[node.length]))) {
			names.push(node)
			return
		}
		const at = part.search(/[[#~]/)
		const name = at > 0 ? part.slice(0, at) : part
		if (!part.includes(">") || known.has(name)) { // else a branch of a fan-out, which is of the same graph
			names.push(name)
		}
	})
	return names.join("/")
}

// groupOf returns the path of the node that has started a branch.
function groupOf(branch) {
	const at = Math.max(branch.lastIndexOf(">"), branch.lastIndexOf("["))
	return at > 0 ? branch.slice(0, at) : branch
}

// Model collects the events of a run, in their order.
export class Model {
	// last is the number of the last event.
	last = 0
	events = []
	// executions are the visits of nodes: path, key, status, start, end, attempts.
	executions = []
	// nodes has the number of visits by status, by key.
	nodes = new Map()
	// groups has the progress of branches and maps, by path.
	groups = new Map()
	// texts are the texts of models, by path.
	texts = new Map()
	// values has the params and results of nodes by path. Only reports contain them.
	values = new Map()
	problems = []
	// files is the number of files that were written.
	files = 0
	retries = 0
	// usage is that of the run at its last end.
	usage = null
	first = 0
	end = 0
	// times has the last start and end of the visits, by key.
	times = new Map()
	#latest = new Map()
	#branches = new Map()
	#items = new Map()
	#names = new Set()

	add(event) {
		if (event.event === "values") { // it repeats the seq of the event before it
			this.values.set(event.path, event)
			return
		}
		if (event.seq <= this.last) {
			return
		}
		this.last = event.seq
		event.at = Date.parse(event.ts)
		this.first ||= event.at
		this.end = event.at
		this.#list(event)
		switch (event.event) {
		case "node_start":
			this.#begin(event)
			break
		case "node_end":
			this.#finish(event, event.skipped ? "skipped" : "done")
			break
		case "node_error":
			this.#finish(event, "failed")
			this.problems.push(event)
			break
		case "retry":
			this.retries++
			this.#latest.get(event.path)?.waits.push([event.at, event.at + (event.wait_ms ?? 0)])
			break
		case "interrupt":
			this.#finish(event, "waiting")
			break
		case "branch_start":
			this.#branch(event, "running")
			break
		case "branch_end":
			this.#branch(event, event.success === false ? "failed" : "done")
			break
		case "file":
			this.files++
			break
		case "token":
			this.texts.set(event.path ?? "", ((this.texts.get(event.path ?? "") ?? "") + event.text).slice(-maxText))
			break
		case "run_end":
			this.usage = {steps: event.steps, tokens: event.tokens, usd: event.usd}
			this.#stop(event.at)
		}
	}

	// list adds an event to the list. The tokens of a text are one event.
	#list(event) {
		const before = this.events.at(-1)
		if (event.event === "token" && before?.event === "token" && before.path === event.path && before.text.length < maxListed) {
			before.text += event.text
			before.search = undefined
			return
		}
		this.events.push({...event})
	}

	// stop ends what has not ended, unless the run is running: it was interrupted.
	stop(status) {
		if (status !== "running" && status !== "waiting") {
			this.#stop(this.end)
		}
	}

	#stop(at) {
		for (const visit of this.#latest.values()) {
			if (visit.status === "running") {
				this.#change(visit, "stopped")
				visit.end = at
			}
		}
		for (const [path, status] of this.#branches) {
			if (status === "running") {
				this.groups.get(groupOf(path)).running--
				this.#items.get(path).status = "stopped"
				this.#branches.delete(path)
			}
		}
	}

	#count(key, status, n) {
		const counts = this.nodes.get(key) ?? {}
		counts[status] = (counts[status] ?? 0) + n
		this.nodes.set(key, counts)
	}

	#change(visit, status) {
		this.#count(visit.key, visit.status, -1)
		this.#count(visit.key, status, 1)
		visit.status = status
	}

	#begin(event) {
		const before = this.#latest.get(event.path)
		if (before?.status === "waiting") { // it continues
			this.#change(before, "running")
			before.waits.push([before.end, event.at])
			before.end = 0
			return before
		}
		if (before) {
			this.#count(before.key, before.status, -1)
		}
		this.#names.add(event.node)
		const visit = {path: event.path, key: nodeKey(event.path, event.node, this.#names), status: "running", start: event.at, end: 0, attempts: 1, waits: [], uses: event.uses, seq: event.seq}
		this.times.set(visit.key, {...this.times.get(visit.key), start: event.at})
		this.#latest.set(event.path, visit)
		this.#count(visit.key, "running", 1)
		this.executions.push(visit)
		return visit
	}

	#finish(event, status) {
		let visit = this.#latest.get(event.path)
		if (!visit || visit.status !== "running" && visit.status !== "waiting") {
			visit = this.#begin(event)
			visit.start = event.at - (event.duration_ms ?? 0)
		}
		this.#change(visit, status)
		if (visit.end) { // it waited until now
			visit.waits.push([visit.end, event.at])
		}
		visit.end = event.at
		this.times.set(visit.key, {...this.times.get(visit.key), end: event.at})
		visit.attempts = event.attempts ?? 1
		visit.tokens = event.usage?.total_tokens
		visit.error = event.error
	}

	#branch(event, status) {
		const path = groupOf(event.path)
		const group = this.groups.get(path) ?? {path, total: 0, running: 0, done: 0, failed: 0, items: []}
		this.groups.set(path, group)
		const before = this.#branches.get(event.path)
		if (before) {
			group[before]--
		}
		let item = this.#items.get(event.path)
		if (!item) {
			const index = event.index ?? group.items.length
			item = {path: event.path, label: event.item === undefined ? event.path : `${event.path} ${event.item}`, short: event.index === undefined ? event.branch : String(index)}
			this.#items.set(event.path, item)
			group.items.push(item)
		}
		item.status = status
		item.error = event.error
		this.#branches.set(event.path, status)
		group[status]++
		group.total = Math.max(group.total, event.count ?? 0, group.running + group.done + group.failed)
	}

	// visit returns the last execution at a path.
	visit(path) {
		return this.#latest.get(path)
	}

	// failure returns the execution to show first in a failed run: the last one at path or,
	// once all events have arrived, the last one that reported an error.
	failure(path) {
		const last = this.usage && this.#latest.get(this.problems.at(-1)?.path)
		return [this.#latest.get(path), last].find(visit => visit?.status === "failed")
	}

	// status returns the status of a node of the graph.
	status(key) {
		const counts = this.nodes.get(key) ?? {}
		return ["running", "waiting", "failed", "stopped", "done", "skipped"].find(status => counts[status] > 0) ?? "unreached"
	}
}
