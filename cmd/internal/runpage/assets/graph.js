// The drawing of a workflow, which the server makes, with the statuses of its nodes.
import {h, notice, refill} from "./dom.js"

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

// wanted has the options with which all graphs are drawn.
const wanted = {horizontal: false, collapsed: false}

// graphPane returns a pane with a drawing. read returns the SVG for the wanted options, and
// chosen is called with the key of a node that is clicked. The method draw draws again, and
// mark marks the nodes with the statuses of a model.
export function graphPane(read, chosen) {
	const element = h("div")
	const message = notice()
	let marks = null
	let marked = null
	let folds = false // whether any node contains others
	const toggle = (label, name) => h("button", {type: "button", "aria-pressed": String(wanted[name]), onclick: () => {
		wanted[name] = !wanted[name]
		draw().catch(message.fail)
	}}, label)

	async function draw() {
		const text = await read(wanted)
		message.clear()
		folds ||= /class="(map|loop|subgraph|steps)\b/.test(text)
		marks = drawing(text, chosen, [toggle("Horizontal", "horizontal"), folds ? toggle("Collapse", "collapsed") : null])
		element.classList.toggle("wide", wanted.horizontal)
		refill(element, message.element, marks.element)
		marked && marks.mark(marked)
	}
	return {element, draw, mark(model) {
		marked = model
		marks?.mark(model)
	}}
}

// drawing parses a drawing. It returns the element, and a function that marks the
// nodes. more are additional tools.
export function drawing(text, chosen, more) {
	text = text.replace(/<style>([^]*?)<\/style>/, (_, style) => { // the policy of the page has no inline styles
		sheet.replaceSync(style)
		return ""
	})
	const parsed = new DOMParser().parseFromString(trusted.createHTML(text), "image/svg+xml").documentElement
	clean(parsed)
	const svg = document.importNode(parsed, true)
	const nodes = []
	const edges = []
	collect(svg, "", nodes, edges)
	if (chosen) {
		for (const node of nodes) {
			const control = node.group.classList.contains("body") ? node.name : node.group // a button contains no buttons
			node.group.setAttribute("role", "group")
			control.setAttribute("tabindex", "0")
			control.setAttribute("role", "button")
			const choose = event => {
				event.stopPropagation()
				event.preventDefault()
				chosen(node.key)
			}
			node.group.addEventListener("click", choose)
			control.addEventListener("keydown", event => (event.key === "Enter" || event.key === " ") && choose(event))
		}
	}
	svg.setAttribute("role", chosen ? "group" : "img")
	svg.setAttribute("aria-label", "Graph")
	const frame = zoomable(svg, more)
	return {element: frame.element, mark(model) {
		nodes.forEach(node => mark(node, model))
		markEdges(edges, model)
		frame.follow(nodes.findLast(node => node.status === "running") ?? nodes.findLast(node => node.status === "waiting"))
	}}
}

// minScale is the smallest scale at which a drawing is fitted into the window.
const minScale = 0.5

// zoomable returns the frame of a drawing, which is moved by dragging, by scrolling and
// by the arrow keys. follow shows a node, unless the reader has moved the drawing.
function zoomable(svg, more) {
	const frame = h("div", {class: "graph", tabindex: "0", role: "region", "aria-label": "Drawing"}, svg)
	const [width, height] = ["width", "height"].map(name => Number(svg.getAttribute(name)))
	let scale = 0 // 0 fits the drawing into the window
	let whole = false // whether to fit all of it, even below minScale
	let following = true
	let shown = null
	function apply() {
		const fit = Math.max(whole ? 0.05 : minScale, Math.min(1, frame.clientWidth / width, 0.7 * innerHeight / height))
		svg.setAttribute("width", width * (scale || fit))
		svg.setAttribute("height", height * (scale || fit))
	}
	function zoom(by) {
		const before = svg.getBoundingClientRect().width / width
		const middle = [(frame.scrollLeft + frame.clientWidth / 2) / before, (frame.scrollTop + frame.clientHeight / 2) / before]
		whole ||= by === 0
		scale = by === 0 ? 0 : Math.min(4, Math.max(0.2, before * by))
		apply()
		const after = svg.getBoundingClientRect().width / width
		frame.scrollTo(middle[0] * after - frame.clientWidth / 2, middle[1] * after - frame.clientHeight / 2)
	}
	let drag = null
	frame.addEventListener("pointerdown", event => {
		drag = event.pointerType === "mouse" && event.button === 0 && !event.target.closest("[role=button]") ? [event.clientX + frame.scrollLeft, event.clientY + frame.scrollTop] : null
	})
	frame.addEventListener("pointermove", event => {
		if (drag && event.buttons === 1) {
			frame.scrollTo(drag[0] - event.clientX, drag[1] - event.clientY)
			following = false
		}
	})
	frame.addEventListener("wheel", event => {
		following = false
		if (event.ctrlKey) {
			event.preventDefault()
			zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15)
		}
	}, {passive: false})
	new ResizeObserver(apply).observe(frame)
	const tool = (label, text, by) => h("button", {type: "button", "aria-label": label, title: label, onclick: () => {
		following ||= by === 0
		zoom(by)
	}}, text)
	return {
		element: h("div", null, h("div", {class: "tools", role: "group", "aria-label": "Drawing tools"}, tool("Zoom in", "+", 1.25), tool("Zoom out", "−", 0.8), tool("Fit into the window", "Fit", 0), more), frame),
		follow(node) {
			if (!following || !node || node === shown) {
				return
			}
			shown = node
			const box = node.group.getBoundingClientRect()
			const view = frame.getBoundingClientRect()
			if (box.top < view.top || box.bottom > view.bottom || box.left < view.left || box.right > view.right) {
				frame.scrollBy({left: box.left + box.width / 2 - view.left - view.width / 2, top: box.top + box.height / 2 - view.top - view.height / 2})
			}
		},
	}
}

// markEdges marks the edges that were taken: those from the nodes that ended last before
// the target began. edges have the keys of their nodes, null for the start and the end.
function markEdges(edges, model) {
	const ended = edge => edge.from === null ? model.first : model.times.get(edge.from)?.end
	const begins = to => to === null ? model.usage && model.end : model.times.get(to)?.start
	for (const to of new Set(edges.map(edge => edge.to))) {
		const at = begins(to)
		const into = edges.filter(edge => edge.to === to)
		const done = at ? into.filter(edge => ended(edge) <= at && !(to === null && model.status(edge.from ?? "") === "failed")).sort((a, b) => ended(b) - ended(a)) : []
		const taken = done.filter((edge, i) => i === 0 || !edges.some(other => other.from === edge.from && other.to === done[0].from && begins(other.to)))
		for (const edge of into) {
			edge.path.classList.toggle("taken", taken.includes(edge))
		}
	}
}

// collect finds the groups of nodes and the edges, bodies included.
function collect(element, prefix, nodes, edges) {
	const keyOf = name => name === "__start__" || name === "__end__" ? null : prefix + name
	for (const child of element.children) {
		if (child.localName === "path" && child.dataset.from) {
			edges.push({path: child, from: keyOf(child.dataset.from), to: keyOf(child.dataset.to)})
		}
		if (child.localName !== "g") {
			continue
		}
		const name = [...child.children].find(part => part.localName === "text" && part.classList.contains("name"))
		if (!name || child.classList.contains("end")) {
			collect(child, prefix, nodes, edges)
			continue
		}
		const key = prefix + (child.dataset.name ?? name.textContent)
		const words = [...child.children].filter(part => part.localName === "text")
		words.forEach(part => part.after(" ")) // separates their words
		nodes.push({key, group: child, name, words: [child.dataset.name, ...words.map(part => part.textContent)].filter(Boolean).join(" ")})
		collect(child, `${key}/`, nodes, edges)
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
	if (node.name.hasAttribute("role")) {
		node.name.setAttribute("aria-label", `${node.name.textContent}: ${status}`)
	}
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
