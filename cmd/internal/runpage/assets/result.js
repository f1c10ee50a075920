// The result of a run: the last state, and the files that it has written.
import {button, fill, h, notice} from "./dom.js"
import {markdown} from "./markdown.js"
import {members} from "./node.js"

// A preview has at most maxPreview characters of a text, or maxRows rows of a table.
const maxPreview = 100000
const maxRows = 50
const images = {png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml"}

function endOf(file) {
	return /\.(\w+)$/.exec(file)?.[1].toLowerCase() ?? ""
}

function bytes(n) {
	return n < 1000 ? `${n} bytes` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`
}

// rowsOf parses the beginning of a CSV or TSV file, whose cells can be quoted.
function rowsOf(text, comma) {
	const rows = [[""]]
	let quoted = false
	for (const [part] of text.slice(0, maxPreview).matchAll(/""|[^]/g)) {
		const row = rows.at(-1)
		if (part === "\"") {
			quoted = !quoted
		} else if (part === "\"\"") {
			row[row.length - 1] += quoted ? "\"" : ""
		} else if (part === comma && !quoted) {
			row.push("")
		} else if (part === "\n" && !quoted) {
			if (rows.length > maxRows) {
				return rows
			}
			rows.push([""])
		} else if (part !== "\r") {
			row[row.length - 1] += part
		}
	}
	return rows.filter(row => row.length > 1 || row[0] !== "")
}

function spreadsheet(file, text, comma) {
	const [head, ...rows] = rowsOf(text, comma)
	return h("div", {class: "sheet", tabindex: "0", role: "region", "aria-label": file}, h("table", null, h("thead", null, h("tr", null, (head ?? []).map(cell => h("th", {scope: "col"}, cell)))),
		h("tbody", null, rows.slice(0, maxRows).map(row => h("tr", null, row.map(cell => h("td", null, cell)))))), rows.length > maxRows ? h("p", {class: "muted"}, `The first ${maxRows} rows.`) : null)
}

// picture shows an image. Browsers run no scripts in an img element.
function picture(name, kind, content) {
	return h("img", {alt: name, src: `data:${kind};base64,${content}`})
}

// preview shows the beginning of a file. None of its content is inserted as HTML.
function preview(file, content) {
	const end = endOf(file)
	if (images[end]) {
		return picture(file, images[end], base64(content))
	}
	let text
	try {
		text = new TextDecoder("utf-8", {fatal: true}).decode(content)
	} catch {
		return h("p", {class: "muted"}, "There is no preview for this kind of file.")
	}
	if (end === "csv" || end === "tsv") {
		return spreadsheet(file, text, end === "csv" ? "," : "\t")
	}
	const cut = text.length > maxPreview ? [h("p", {class: "muted"}, `The first ${maxPreview} of ${text.length} characters.`)] : []
	const shown = text.slice(0, maxPreview)
	return [end === "md" || end === "markdown" ? h("div", {class: "context"}, markdown(shown)) : h("pre", {tabindex: "0"}, shown), ...cut]
}

function base64(content) {
	let text = ""
	for (let i = 0; i < content.length; i += 0x8000) {
		text += String.fromCharCode(...content.subarray(i, i + 0x8000))
	}
	return btoa(text)
}

// download saves the content of a file.
function download(file, content) {
	const url = URL.createObjectURL(new Blob([content], {type: "application/octet-stream"}))
	h("a", {href: url, download: file.split("/").at(-1)}).click()
	setTimeout(() => URL.revokeObjectURL(url), 60000)
}

// resultPane returns the pane. read returns the content of a file and whether secrets in
// it are masked, or throws an error.
export function resultPane(read) {
	const element = h("div")
	let before = ""

	function one(file) {
		const message = notice()
		const content = h("div")
		let loaded = null
		const load = async () => loaded ??= await read(file)
		const open = async () => {
			const got = await load()
			fill(content, got.masked ? h("p", {class: "muted"}, "Secrets in the file are masked.") : null, preview(file.file, got.content))
		}
		const details = h("details", {ontoggle: () => details.open && !loaded && file.size !== undefined && open().catch(message.fail)},
			h("summary", null, h("code", null, file.file), " ", h("span", {class: "muted"}, [file.size === undefined ? "" : bytes(file.size), ` written by ${file.path}`].join(" "))),
			file.note ? h("p", {class: "muted"}, file.note) : null, message.element, content,
			file.size === undefined ? null : h("p", {class: "buttons"}, button("Download", async () => download(file.file, (await load()).content), message.fail, {"aria-label": `Download ${file.file}`})))
		return h("li", null, details)
	}

	// show shows the files, and the state unless it is undefined.
	function show(files, state, note) {
		const text = JSON.stringify([files, state, note])
		if (text === before) { // keep files open that the reader has opened
			return
		}
		before = text
		const list = files.map(one)
		const first = files.findIndex(file => endOf(file.file) === "md" && file.size !== undefined)
		fill(element, list.length > 0 ? h("ul", {class: "artefacts"}, list) : null, state === undefined ? null : h("details", {open: true}, h("summary", null, "Last state"), values(state)),
			note ? h("p", {class: "muted"}, note) : null)
		if (first >= 0) {
			list[first].firstChild.open = true
		}
	}
	return {element, show}
}

// values lists the members of a state. It renders texts with Markdown headings, and shows PNG
// images.
function values(state) {
	return Object.keys(state).length === 0 ? h("p", {class: "muted"}, "It is empty.") : members(state, (key, value) => typeof value !== "string" ? null
		: /^iVBORw0KGgo/.test(value) ? picture(key, "image/png", value) : /^#{1,6} .*\n/m.test(value) ? h("div", {class: "context"}, markdown(value)) : null)
}
