// The drawing of a workflow, which the server makes, with the statuses of its nodes.
import {h} from "./dom.js"

const parts = new Set(["svg", "title", "rect", "defs", "marker", "path", "g", "text"])
const statuses = ["running", "waiting", "failed", "stopped", "done", "skipped", "unreached"]
const rules = {createHTML: text => text, createScriptURL: url => url}
// trusted marks the markup of drawings and the address of the worker. A page has one.
export const trusted = window.trustedTypes?.createPolicy("tea", rules) ?? rules
const sheet = new CSSStyleSheet()
document.adoptedStyleSheets = [sheet]

// clean removes what drawings do not have.
function clean(element) {
	for (const child of [...element.children]) {
		parts.has(child.localName) ? clean(child) : child.remove()
	}
	for (const {name} of [...element.attributes]) {
		if (name.startsWith("on") || name.includes("href")) {
			element.removeAttribute(name)
		}
	}
}

// drawing parses a drawing. It returns the element, and a function that marks the
// nodes with the statuses of a model; chosen is called with the key of a node that
// is clicked.
export function drawing(text, chosen) {
	text = text.replace(/<style>([^]*?)<\/style>/, (_, style) => { // the policy of the page has no inline styles
		sheet.replaceSync(style)
		return ""
	})
	const parsed = new DOMParser().parseFromString(trusted.createHTML(text), "image/svg+xml").documentElement
	clean(parsed)
	const svg = document.importNode(parsed, true)
	const nodes = []
	collect(svg, "", nodes)
	if (chosen) {
		for (const node of nodes) {
			node.group.setAttribute("tabindex", "0")
			node.group.setAttribute("role", "button")
			const choose = event => {
				event.stopPropagation()
				event.preventDefault()
				chosen(node.key)
			}
			node.group.addEventListener("click", choose)
			node.group.addEventListener("keydown", event => (event.key === "Enter" || event.key === " ") && choose(event))
		}
	}
	svg.setAttribute("role", chosen ? "group" : "img")
	svg.setAttribute("aria-label", "Graph")
	return {element: h("div", {class: "graph"}, svg), mark: model => nodes.forEach(node => mark(node, model))}
}

// collect finds the groups of nodes, bodies included.
function collect(element, prefix, nodes) {
	for (const child of element.children) {
		if (child.localName !== "g") {
			continue
		}
		const name = [...child.children].find(part => part.localName === "text" && part.classList.contains("name"))
		if (!name || child.classList.contains("end")) {
			collect(child, prefix, nodes)
			continue
		}
		const key = prefix + name.textContent
		const words = [...child.children].filter(part => part.localName === "text")
		words.forEach(part => part.after(" ")) // separates their words
		nodes.push({key, group: child, name, words: words.map(part => part.textContent).join(" ")})
		collect(child, `${key}/`, nodes)
	}
}

function mark(node, model) {
	const status = model.status(node.key)
	const group = model.groups.get(node.key)
	const progress = group ? ` ${group.done + group.failed}/${group.total}` : ""
	if (node.status === status && node.progress === progress) {
		return
	}
	node.status = status
	node.progress = progress
	node.group.classList.remove(...statuses)
	node.group.classList.add(status)
	node.group.setAttribute("aria-label", `${node.words}${progress}: ${status}`)
	if (progress !== "") {
		node.count ??= node.group.appendChild(count(node))
		node.count.textContent = progress
	}
}

// count returns the text above a node that shows its progress.
function count(node) {
	const box = [...node.group.children].find(part => part.classList.contains("box"))
	const text = document.createElementNS("http://www.w3.org/2000/svg", "text")
	text.setAttribute("class", "label")
	text.setAttribute("x", Number(box.getAttribute("x")) + Number(box.getAttribute("width")))
	text.setAttribute("y", Number(box.getAttribute("y")) - 4)
	text.setAttribute("text-anchor", "end")
	return text
}
