// The text of a workflow file, with the lines of a node.
import {fill, h} from "./dom.js"

// sourcePane returns the pane. mark marks the lines of the node with a key, and the line
// that an error names.
export function sourcePane() {
	const element = h("div", null, h("p", {class: "muted"}, "Loading …"))
	let lines = {}
	let code = null

	function show(doc) {
		lines = doc.lines ?? {}
		code = doc.text === undefined ? null : h("pre", {class: "source", tabindex: "0"}, doc.text.trimEnd().split("\n").map(text => h("span", null, `${text}\n`)))
		fill(element, h("p", {class: "muted"}, h("code", null, doc.file ?? ""), doc.changed ? " has changed since the run began." : "", doc.note ?? ""), code)
	}

	function mark(key, error) {
		while (!lines[key] && key.includes("/")) {
			key = key.slice(0, key.lastIndexOf("/"))
		}
		if (!code || !lines[key]) {
			return
		}
		const rows = [...code.children]
		const indent = row => row.textContent.search(/\S|$/)
		const first = lines[key] - 1
		const after = rows.findIndex((row, i) => i > first && row.textContent.trim() !== "" && indent(row) <= indent(rows[first]))
		const end = after < 0 ? rows.length : after
		const named = Number(/:(\d+):/.exec(error ?? "")?.[1]) - 1
		const bad = error === undefined ? -1 : named >= first && named < end ? named : first
		rows.forEach((row, i) => {
			row.className = i === bad ? "failing" : i >= first && i < end ? "here" : ""
		})
		code.scrollTop = rows[Math.max(bad, first)].offsetTop - code.clientHeight / 3
	}
	return {element, show, mark}
}
