// The questions of all workflows that wait for a person.
import {get, post} from "./api.js"
import {fill, h, notice, runLink, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {question} from "./form.js"
import {every} from "./runs.js"

// inbox shows the questions. Unchanged forms are kept, because somebody may be typing.
export function inbox(signal) {
	const message = notice()
	const content = h("div", null, loading())
	const note = h("p", {class: "muted", role: "status"})
	let cards = new Map()

	async function read() {
		const {questions, total} = await get("/v1/questions", signal)
		message.clear()
		const before = cards
		cards = new Map(questions.map(one => {
			const key = JSON.stringify(one)
			return [key, before.get(key) ?? card(one)]
		}))
		const list = [...cards.values()]
		if (list.length === 0) {
			fill(content, empty("Nothing waits for an answer.", "Questions of human.ask and stops before and after nodes appear here."))
		} else if (list.length !== content.children.length || list.some((element, i) => content.children[i] !== element)) {
			for (const element of [...content.children]) {
				list.includes(element) || element.remove()
			}
			list.forEach((element, i) => content.children[i] !== element && content.insertBefore(element, content.children[i] ?? null))
		}
		const runs = new Set(questions.map(one => one.run_id)).size
		note.textContent = total > runs ? `Showing the questions of ${runs} of ${total} waiting runs.` : ""
	}

	function card(one) {
		const form = question(one.pending, async answer => {
			await post(`/v1/runs/${encodeURIComponent(one.run_id)}/resume`, {answers: {[one.pending.id]: answer}})
			await read()
		}, message.fail)
		return h("section", {class: "ask", "aria-label": one.pending.question ?? one.pending.id}, h("p", {class: "muted"}, workflowLink(one.workflow), " · ", runLink(one.run_id)), form)
	}

	every(signal, read, message.fail)
	return h("div", {class: "inbox"}, h("h1", null, "Inbox"), message.element, note, content)
}
