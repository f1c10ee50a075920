// Forms made from JSON Schemas.
import {can, number, parse} from "./api.js"
import {h, when} from "./dom.js"
import {markdown} from "./markdown.js"

let ids = 0

// typeOf returns the type of a schema without null, "" for any.
function typeOf(schema) {
	const types = [schema.type].flat().filter(type => type && type !== "null")
	return types.length === 1 ? types[0] : ""
}

// show returns a value as it is typed into a field for JSON.
function show(value) {
	return value === undefined ? "" : JSON.stringify(value, null, 2)
}

// field returns a field for a schema: its element, and read, which returns the
// value, undefined for an empty field. An error names the field.
export function field(schema, name, required, initial) {
	const rules = schema !== null && typeof schema === "object" ? schema : {}
	const value = initial === undefined ? rules.default : initial
	if (Array.isArray(rules.enum)) {
		return choice(rules, name, required, value, rules.enum)
	}
	switch (typeOf(rules)) {
	case "boolean":
		return choice(rules, name, required, value, [true, false])
	case "integer":
	case "number":
		return line(rules, name, required, value === undefined || value === null ? "" : JSON.stringify(value), "text", text => {
			if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) {
				throw new Error(`${name}: expected a number, got ${text}`)
			}
			if (typeOf(rules) === "integer" && !/^-?\d+$/.test(text)) {
				throw new Error(`${name}: expected an integer, got ${text}`)
			}
			return number(text)
		})
	case "string": {
		const kinds = {date: "date", email: "email", uri: "url"}
		return line(rules, name, required, typeof value === "string" ? value : "", kinds[rules.format] ?? "text", text => text)
	}
	case "object":
		if (rules.properties && Object.keys(rules.properties).length > 0) {
			return object(rules, name, required, value)
		}
	}
	return json(rules, name, required, value)
}

// labelled puts the name and the description of a field around its control.
function labelled(rules, name, required, control) {
	const id = `field-${++ids}`
	control.id = id
	control.required = required && control.tagName !== "FIELDSET"
	const note = rules.description ? h("small", {id: `${id}-note`}, rules.description) : null
	if (note) {
		control.setAttribute("aria-describedby", note.id)
	}
	return h("div", {class: "field"}, h("label", {for: id}, rules.title ?? name, required ? " *" : ""), control, note)
}

function line(rules, name, required, initial, type, convert) {
	const long = type === "text" && typeOf(rules) === "string"
	const control = long ? h("textarea", {rows: initial.includes("\n") ? "5" : "1"}) : h("input", {type, inputmode: typeOf(rules) === "string" ? null : "decimal", autocomplete: "off"})
	control.value = initial
	let touched = false
	control.addEventListener("input", () => {
		touched = true
	})
	const empty = required && long ? "" : undefined
	const element = labelled(rules, name, required, control)
	control.required = control.required && !long // an empty text is a text
	return {
		element,
		read() {
			if (control.value === "") {
				return touched && long ? "" : empty
			}
			return convert(type === "text" && !long ? control.value.trim() : control.value)
		},
	}
}

function choice(rules, name, required, initial, values) {
	const control = h("select", null, h("option", {value: ""}, "–"),
		values.map((value, i) => h("option", {value: String(i)}, typeof value === "string" ? value : JSON.stringify(value))))
	const at = values.findIndex(value => JSON.stringify(value) === JSON.stringify(initial))
	control.value = at < 0 ? "" : String(at)
	return {element: labelled(rules, name, required, control), read: () => control.value === "" ? undefined : values[Number(control.value)]}
}

function json(rules, name, required, initial) {
	const control = h("textarea", {rows: "3", class: "code", spellcheck: "false", placeholder: "JSON"})
	control.value = show(initial)
	return {
		element: labelled(rules, name, required, control),
		read() {
			if (control.value.trim() === "") {
				return undefined
			}
			try {
				return parse(control.value)
			} catch (err) {
				throw new Error(`${name}: expected JSON: ${err.message}`)
			}
		},
	}
}

function object(rules, name, required, initial) {
	const needed = new Set(Array.isArray(rules.required) ? rules.required : [])
	const values = initial !== null && typeof initial === "object" ? initial : {}
	const fields = Object.keys(rules.properties).map(key => [key, field(rules.properties[key], key, needed.has(key), Object.hasOwn(values, key) ? values[key] : undefined)])
	return {
		element: h("fieldset", null, name ? h("legend", null, rules.title ?? name) : null, fields.map(([, f]) => f.element)),
		read() {
			const entries = fields.map(([key, f]) => [key, f.read()]).filter(([, value]) => value !== undefined)
			return entries.length === 0 && !required ? undefined : Object.fromEntries(entries)
		},
	}
}

// objectField returns a field for an object as JSON.
export function objectField(name, description) {
	const f = json({description}, name, false, undefined)
	return {
		element: f.element,
		read() {
			const value = f.read()
			if (value !== undefined && (value === null || typeof value !== "object" || Array.isArray(value))) {
				throw new Error(`${name}: expected an object`)
			}
			return value
		},
	}
}

// outcome says what happens at the deadline of a question.
function outcome(pending) {
	switch (pending.on_timeout) {
	case "deny":
		return "the answer is no (false)"
	case "default":
		return `the answer is ${JSON.stringify(pending.default ?? null)}`
	}
	return "the node fails"
}

// known returns the context and the attachments of a question.
function known(pending) {
	const {context, attachments} = pending
	const shown = typeof context === "string" ? markdown(context) : context === undefined || context === null ? null : h("pre", {tabindex: "0"}, JSON.stringify(context, null, 2))
	const files = (attachments ?? []).map(one => h("li", null, /^https?:\/\//.test(one.url ?? "") ? h("a", {href: one.url, target: "_blank", rel: "noreferrer noopener"}, one.name) : h("strong", null, one.name),
		one.text ? h("details", null, h("summary", null, `Show ${one.name}`), h("pre", {tabindex: "0"}, one.text)) : null))
	return shown || files.length > 0 ? h("div", {class: "context"}, shown, files.length > 0 ? h("ul", {class: "files"}, files) : null) : null
}

// question returns the form of a pending interrupt. answer is called with the
// answer and reports success.
export function question(pending, answer, fail) {
	const title = h("h3", null, pending.question ? markdown(pending.question) : `Waiting ${pending.kind} ${pending.node}`)
	const details = h("p", {class: "muted"}, h("code", null, pending.path), pending.asked_at ? [" · asked ", when(pending.asked_at)] : null,
		pending.deadline ? [" · until ", when(pending.deadline), `, then ${outcome(pending)}`] : null)
	const form = h("form", {class: "question"}, title, details, known(pending))
	if (!can("answer")) {
		form.append(h("p", {class: "muted"}, "The role view cannot answer."))
		return form
	}
	const send = async value => {
		const buttons = form.querySelectorAll("button")
		buttons.forEach(b => {
			b.disabled = true
		})
		try {
			await answer(value)
		} catch (err) {
			fail(err)
		}
		buttons.forEach(b => {
			b.disabled = false
		})
	}
	form.addEventListener("submit", event => event.preventDefault())
	if (pending.kind !== "ask") {
		form.append(h("p", {class: "buttons"}, h("button", {class: "main", onclick: () => send(null)}, "Continue")))
		return form
	}
	if (pending.choices?.length > 0) {
		form.append(h("p", {class: "buttons"}, pending.choices.map(value =>
			h("button", {type: "button", class: JSON.stringify(value) === JSON.stringify(pending.default) ? "main" : null, onclick: () => send(value)},
				typeof value === "string" ? value : JSON.stringify(value)))))
		return form
	}
	const f = field(pending.schema ?? {type: "string"}, "Answer", true, pending.default)
	form.append(f.element, h("p", {class: "buttons"}, h("button", {class: "main"}, "Answer")))
	form.addEventListener("submit", () => {
		try {
			const value = f.read()
			if (value === undefined) {
				throw new Error("an answer is missing")
			}
			send(value)
		} catch (err) {
			fail(err)
		}
	})
	return form
}
