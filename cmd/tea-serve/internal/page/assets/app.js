// Shows the view of the path behind the #.
import {fill, h} from "./dom.js"
import {watch} from "./api.js"
import {compare} from "./compare.js"
import {device} from "./device.js"
import {inbox} from "./inbox.js"
import {memory} from "./memory.js"
import {trusted} from "./graph.js"
import {notifications, silence} from "./push.js"
import {run} from "./run.js"
import {runs} from "./runs.js"
import {schedule} from "./schedule.js"
import {logOut, token} from "./session.js"
import {usage} from "./usage.js"
import {workflow, workflows} from "./workflows.js"

const main = document.getElementById("main")
let end = () => {}
let shown = null
let title = "tea"
let waiting = 0

// name sets the title, with the number of runs that wait for a person.
function name() {
	document.title = waiting > 0 ? `(${waiting}) ${title}` : title
}

// viewOf returns the view of a path, which is called with a signal that ends it.
function viewOf(path) {
	const [, first = "", second = "", third = ""] = path.split("/").map(decodeURIComponent)
	switch (first) {
	case "":
		return {title: "Workflows", show: workflows}
	case "workflows":
		return {title: second, show: signal => workflow(second, signal)}
	case "inbox":
		return {title: "Inbox", show: inbox}
	case "runs":
		return second === "" ? {title: "Runs", show: runs} : {title: second, show: signal => run(second, signal)}
	case "schedule":
		return {title: "Schedule", show: schedule}
	case "compare":
		return {title: "Compare runs", show: signal => compare(second, third, signal)}
	case "usage":
		return {title: "Usage", show: usage}
	case "memory":
		return {title: "Memory", show: memory}
	case "plugins":
		return {title: "Plugins", show: device}
	}
	return null
}

function show() {
	const path = location.hash.slice(1).split("?")[0] || "/"
	if (path === shown) {
		return
	}
	end()
	let view = null
	try {
		view = viewOf(path)
	} catch {
		// not a path that this page has made
	}
	const controller = new AbortController()
	end = () => controller.abort()
	title = view ? `${view.title} · tea` : "tea"
	name()
	fill(main, view ? view.show(controller.signal) : h("p", null, "There is no such view. ", h("a", {href: "#/"}, "Workflows")))
	for (const link of document.querySelectorAll("nav a")) {
		const own = link.getAttribute("href").slice(1)
		const here = own === "/" ? path === "/" || path.startsWith("/workflows") : path.startsWith(own)
		here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")
		here && link.scrollIntoView({block: "nearest", inline: "nearest"}) // the navigation scrolls on a phone
	}
	if (shown !== null) {
		main.focus({preventScroll: true})
		scrollTo(0, 0)
	}
	shown = path
}

document.getElementById("skip").addEventListener("click", () => main.focus())
addEventListener("hashchange", show)
addEventListener("keydown", event => {
	const typing = event.target.closest?.("input, textarea, select, dialog")
	const search = main.querySelector("input[type=search]")
	if (event.key === "/" && !typing && search && !event.ctrlKey && !event.metaKey && !event.altKey) {
		event.preventDefault()
		search.focus()
	}
})
const logout = document.getElementById("logout")
logout.addEventListener("click", async () => {
	await silence().catch(() => {})
	await logOut()
	end()
	fill(main)
	location.replace("/")
})
show()
notifications(document.getElementById("push"))
if (isSecureContext) {
	navigator.serviceWorker?.register(trusted.createScriptURL("/worker.js")).catch(() => {}) // as in a private window
}
watch(count => {
	logout.hidden = token() === null
	waiting = count
	name()
	const badge = document.getElementById("waiting")
	badge.hidden = count === 0
	badge.textContent = String(count)
	badge.setAttribute("aria-label", `${count} waiting`)
}, () => { // shows the controls of the role
	shown = null
	show()
})
