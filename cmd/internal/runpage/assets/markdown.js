// Renders a subset of Markdown: paragraphs, headings, lists, quotes, code, emphasis, links.
import {h} from "./dom.js"

const inline = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g

// spans renders inline markup.
function spans(text) {
	const out = []
	let end = 0
	for (const m of text.matchAll(inline)) {
		out.push(text.slice(end, m.index))
		end = m.index + m[0].length
		out.push(m[1] ? h("code", null, m[1]) : m[2] ? h("strong", null, m[2]) : m[3] ? h("em", null, m[3]) : h("a", {href: m[5], target: "_blank", rel: "noreferrer noopener"}, m[4]))
	}
	out.push(text.slice(end))
	return out
}

// block renders the text between two blank lines.
function block(text) {
	const lines = text.split("\n")
	const every = rule => lines.every(line => rule.test(line))
	if (every(/^\s*[-*] /)) {
		return h("ul", null, lines.map(line => h("li", null, spans(line.replace(/^\s*[-*] /, "")))))
	}
	if (every(/^\s*\d+[.)] /)) {
		return h("ol", null, lines.map(line => h("li", null, spans(line.replace(/^\s*\d+[.)] /, "")))))
	}
	if (every(/^> ?/)) {
		return h("blockquote", null, spans(lines.map(line => line.replace(/^> ?/, "")).join("\n")))
	}
	if (lines.length === 1 && /^#{1,6} /.test(text)) {
		return h("p", null, h("strong", null, spans(text.replace(/^#+ /, ""))))
	}
	return h("p", null, spans(text))
}

// markdown renders a text. A single line gets no paragraph.
export function markdown(text) {
	if (!text.includes("\n")) {
		return spans(text)
	}
	return text.split(/^```.*$/m).map((part, i) => i % 2 === 1 ? h("pre", {tabindex: "0"}, part.trim()) : part.split(/\n\s*\n/).filter(one => one.trim() !== "").map(one => block(one.trim())))
}
