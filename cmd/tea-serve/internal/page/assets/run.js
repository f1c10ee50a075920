// A run, live.
import {can as may, changed, events, drawingPath, get, getBytes, getText, post, sleep, visible, whileVisible} from "./api.js"
import {button, dialog, fill, h, notice, refill, runLink, when, workflowLink} from "./dom.js"
import {loading} from "./empty.js"
import {objectField, question} from "./form.js"
import {steps} from "./state.js"
import {fact, RunView, section} from "./view.js"

// drawMS is how often events are drawn.
const drawMS = 150
// maxReadingMS is how long the parts of the page are hidden until their content is there.
const maxReadingMS = 1000

// run shows a run until the signal is aborted.
export function run(id, signal) {
	return new View(id, signal).element
}

class View extends RunView {
	constructor(id, signal) {
		super()
		this.id = id
		this.signal = signal
		this.path = `/v1/runs/${encodeURIComponent(id)}`
		this.connection = h("p", {class: "notice warn", role: "status", hidden: true}, "The connection to the server is lost. Trying again …")
		this.pending = h("div")
		this.trouble = notice() // of the server, until it answers again
		this.wake = () => {} // connects to the events again, without a wait
		this.changes = steps(id, signal, at => this.fork(at))
		this.element = h("div", {class: "run"}, this.head, this.connection, this.trouble.element, this.message.element, this.errors, this.pending,
			h("div", {class: "columns"}, section("Graph", this.graph.element, this.progress), h("div", null, section("Node", this.node.element), section("State", this.changes.element))),
			section("Result", this.result.element), section("Timeline", this.timeline.element), section("Source", this.source.element),
			this.texts, section("Events and logs", this.events.element))
		fill(this.head, loading(8))
		this.element.classList.add("reading") // until the first events have their place
		this.start()
	}

	async start() {
		await this.refresh()
		this.draw()
		setTimeout(() => this.element.classList.remove("reading"), maxReadingMS) // it may have no events
		this.follow()
		while (!this.signal.aborted) {
			await changed(this.signal)
			if (!document.hidden && !this.signal.aborted) {
				await this.refresh()
			}
		}
	}

	// refresh reads the description of the run.
	async refresh() {
		try {
			this.doc = await get(this.path, this.signal)
		} catch (err) {
			if (!this.signal.aborted && err.status) {
				this.trouble.fail(err)
			}
			return
		}
		this.trouble.clear()
		if (!this.drawn) {
			this.readGraph()
		}
		if (!this.listed && this.doc.status !== "queued") {
			this.readSource()
		}
		this.describe()
		this.readResult()
	}

	async readGraph() {
		this.drawn = true
		try {
			await this.graph.draw()
		} catch (err) {
			this.drawn = false
			if (!this.signal.aborted) {
				fill(this.graph.element, h("p", {class: "muted"}, this.doc.status === "queued" ? "The run has not started." : err.message))
			}
		}
	}

	// readResult reads the files of the run and, once it is no longer running, its last state.
	async readResult() {
		const ended = !["running", "queued"].includes(this.doc.status)
		const key = `${this.doc.status} ${this.doc.updated_at} ${this.model.files}`
		if (key === this.resulted) {
			return
		}
		this.resulted = key
		const failed = []
		const read = async (wanted, path, or) => {
			try {
				return wanted ? await get(`${this.path}/${path}`, this.signal) : or
			} catch (err) {
				failed.push(err.message)
				return or
			}
		}
		const [{files}, state] = await Promise.all([read(this.model.files > 0, "files", {files: []}), read(ended, "state")])
		if (key === this.resulted && !this.signal.aborted) {
			this.result.show(files, state, ended ? failed.join(" ") : "The run has not ended.")
		}
	}

	content({file}) {
		return getBytes(`${this.path}/files/content?file=${encodeURIComponent(file)}`, this.signal)
	}

	drawing(wanted) {
		return getText(drawingPath(this.path, wanted), this.signal)
	}

	async readSource() {
		this.listed = true
		try {
			this.showSource(await get(`${this.path}/source`, this.signal))
		} catch (err) {
			this.listed = false
			this.showSource({note: err.message})
		}
	}

	// follow reads the events, and connects again when the connection is lost or the
	// run continues.
	//
	// A page that is hidden does not read them: a browser has six connections to a server
	// over HTTP/1.1, which the tabs share.
	async follow() {
		let wait = 500
		while (!this.signal.aborted) {
			await visible(this.signal)
			const shown = whileVisible(this.signal)
			try {
				await events(this.id, this.model.last, shown.signal, () => {
					this.connection.hidden = true
					wait = 500
				}, list => this.add(list))
				await this.refresh()
				await Promise.race([this.active() ? sleep(200, this.signal) : changed(this.signal), new Promise(resolve => {
					this.wake = resolve
				})])
			} catch (err) {
				if (this.signal.aborted) {
					return
				}
				if (shown.signal.aborted) {
					continue
				}
				this.connection.hidden = Boolean(err.status) // the server has answered
				await sleep(wait, this.signal)
				wait = Math.min(wait * 2, 10000)
			} finally {
				shown.abort()
			}
		}
	}

	active() {
		return ["running", "queued", "waiting"].includes(this.doc?.status)
	}

	add(list) {
		for (const event of list) {
			this.model.add(event)
		}
		if (list.some(event => event.event === "run_start" || event.event === "run_end" || event.event === "interrupt")) {
			this.refresh()
		}
		if (!this.timer) {
			this.timer = setTimeout(() => {
				this.timer = null
				if (!this.signal.aborted) {
					this.draw()
					this.doc && this.readResult()
					this.drawn && this.element.classList.remove("reading")
				}
			}, drawMS)
		}
	}

	// describe shows the description of the run.
	describe() {
		const doc = this.doc
		const text = JSON.stringify(doc)
		if (text === this.described) {
			return
		}
		this.described = text
		const fail = err => this.message.fail(err)
		const act = (label, path) => button(label, async () => {
			this.message.clear()
			await post(`${this.path}/${path}`, {})
			this.wake()
			await this.refresh()
		}, fail)
		const can = (...statuses) => statuses.includes(doc.status)
		refill(this.head,
			this.title(workflowLink(doc.workflow), doc.id),
			h("p", {class: "buttons"},
				may("run") && can("running", "queued", "parked", "waiting") ? act("Cancel", "cancel") : null,
				may("run") && (can("failed", "parked") || doc.failed_branches > 0 && !can("running", "queued")) ? act("Retry", "retry") : null,
				may("answer") && can("failed", "stopped", "waiting") ? button("Continue with input …", () => this.resume(), fail) : null,
				!may("run") || can("queued") ? null : button("Fork …", () => this.fork(""), fail)),
			this.facts(fact("Trigger", doc.trigger), fact("Accepted", when(doc.accepted_at)),
				fact("Attempts", doc.attempts > 1 ? doc.attempts : null), fact("Next attempt", when(doc.next_attempt_at)), fact("Queued because", doc.queued_because),
				fact("Copy of", doc.parent_run ? runLink(doc.parent_run) : null)))
		this.questions()
		this.problems()
	}

	// questions shows what the run waits for. Forms that are the same stay as they
	// are: somebody can be typing.
	questions() {
		const pending = this.doc.status === "waiting" ? this.doc.pending ?? [] : []
		const text = JSON.stringify(pending)
		if (text === this.asked) {
			return
		}
		this.asked = text
		fill(this.pending, pending.length === 0 ? null : h("section", {class: "questions", "aria-label": "Questions"}, h("h2", null, "Waiting for an answer"),
			pending.map(one => question(one, async answer => {
				this.message.clear()
				await post(`${this.path}/resume`, {answers: {[one.id]: answer}})
				await this.refresh()
			}, err => this.message.fail(err)))))
	}

	choose(path) {
		super.choose(path)
		this.changes.show(path)
	}

	values(path) {
		return get(`${this.path}/node?at=${encodeURIComponent(path)}`, this.signal)
	}

	// resume continues the run with changes of its state.
	async resume() {
		const input = objectField("Input", "Keys of the state to set, as a JSON object.")
		const migrate = h("input", {type: "checkbox", id: "migrate"})
		const content = h("div", null, input.element, h("p", null, migrate, h("label", {for: "migrate"}, " with the current version of the workflow")))
		await dialog("Continue the run", content, "Continue", () => post(`${this.path}/resume`, {input: input.read(), migrate: migrate.checked}))
		this.wake()
		await this.refresh()
	}

	// fork copies the run up to a step and shows the copy.
	async fork(at) {
		const step = h("input", {id: "fork-at", required: true, autocomplete: "off"})
		step.value = String(at)
		const input = objectField("Input", "Keys of the state to set in the copy, as a JSON object.")
		const content = h("div", null, h("div", {class: "field"}, h("label", {for: "fork-at"}, "After step *"), step,
			h("small", null, "The number of a step, or the path of a node.")), input.element)
		const made = await dialog("Fork the run", content, "Fork", () => {
			const text = step.value.trim()
			return post(`${this.path}/fork`, {at: /^\d+$/.test(text) ? Number(text) : text, input: input.read()})
		})
		if (made) {
			location.hash = `#/runs/${encodeURIComponent(made.id)}`
		}
	}
}
