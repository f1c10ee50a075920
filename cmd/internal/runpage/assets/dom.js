// Elements and texts. The page is built with h only: texts never become markup.

// h returns an element. Attributes that begin with "on" are listeners, true and
// false set and omit an attribute; children are elements, texts, lists and null.
export function h(tag, attributes, ...children) {
	const element = document.createElement(tag)
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (name.startsWith("on")) {
			element.addEventListener(name.slice(2), value)
		} else if (value === true) {
			element.setAttribute(name, "")
		} else if (value !== false && value !== null && value !== undefined) {
			element.setAttribute(name, value)
		}
	}
	element.append(...nodes(children))
	return element
}

// nodes returns children without null, false and nested lists.
function nodes(children) {
	return children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false)
}

// fill replaces the content of an element.
export function fill(element, ...children) {
	element.replaceChildren(...nodes(children))
	return element
}

// refill replaces the content of an element that is drawn again and again. What has the
// focus keeps it, if its successor is there.
export function refill(element, ...children) {
	const nameOf = one => one.getAttribute("href") ?? one.getAttribute("aria-label") ?? one.textContent
	const before = element.contains(document.activeElement) && document.activeElement !== element ? document.activeElement : null
	const same = one => one.localName === before.localName && nameOf(one) === nameOf(before)
	const nth = before ? [...element.querySelectorAll(before.localName)].filter(same).indexOf(before) : -1
	fill(element, ...children)
	if (before) {
		[...element.querySelectorAll(before.localName)].filter(same).at(nth)?.focus({preventScroll: true})
	}
	return element
}

// table returns a table, whose rows are lists of cells; null for no rows.
export function table(caption, head, rows) {
	if (rows.length === 0) {
		return null
	}
	return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, h("table", null,
		h("thead", null, h("tr", null, head.map(text => h("th", {scope: "col"}, text)))),
		h("tbody", null, rows.map(cells => h("tr", null, cells.map((cell, i) => h("td", {"data-label": head[i]}, nodes([cell]).join("") === "" ? null : h("div", null, cell))))))))
}

// badge returns a status as a coloured word.
export function badge(status) {
	return h("span", {class: "badge", "data-status": status}, status)
}

// button returns a button. It is disabled while its action, which can be
// asynchronous, is at work; a failure is reported by fail.
export function button(label, action, fail, attributes) {
	const element = h("button", {type: "button", ...attributes, onclick: async () => {
		element.disabled = true
		try {
			await action()
		} catch (err) {
			fail(err)
		}
		element.disabled = false
	}}, label)
	return element
}

// notice returns a message area for errors and successes, and its setter.
export function notice() {
	const element = h("div", {class: "notice", role: "alert", hidden: true})
	return {
		element,
		fail(err) {
			element.hidden = false
			element.textContent = err.message
		},
		clear() {
			element.hidden = true
			element.textContent = ""
		},
	}
}

// dialog shows a form in a window and returns what read returns when it is sent,
// null if it is closed. read can throw an error, which is shown.
export function dialog(title, content, label, read) {
	return new Promise(resolve => {
		const message = notice()
		let result = null
		const send = h("button", {class: "main"}, label)
		const box = h("dialog", {"aria-label": title, onclose: () => {
			box.remove()
			resolve(result)
		}}, h("form", {onsubmit: async event => {
			event.preventDefault()
			send.disabled = true
			try {
				result = await read()
				box.close()
			} catch (err) {
				message.fail(err)
			}
			send.disabled = false
		}}, h("h2", null, title), message.element, content, h("p", {class: "buttons"}, send,
			h("button", {type: "button", onclick: () => box.close()}, "Close"))))
		document.body.append(box)
		box.showModal()
	})
}

// when returns a time as text, of today without the date.
export function when(text) {
	if (!text) {
		return ""
	}
	const time = new Date(text)
	const today = time.toDateString() === new Date().toDateString()
	return h("time", {datetime: text, title: time.toLocaleString()}, today ? time.toLocaleTimeString() : time.toLocaleString())
}

// lasting returns a number of milliseconds as text.
export function lasting(ms) {
	if (ms < 1000) {
		return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
	}
	if (ms < 60000) {
		return `${Math.round(ms / 100) / 10} s`
	}
	const minutes = Math.floor(ms / 60000)
	return minutes < 60 ? `${minutes} min ${Math.round(ms % 60000 / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

// dollars returns a cost as text.
export function dollars(usd) {
	return usd ? `$${usd.toFixed(usd < 1 ? 4 : 2)}` : "$0"
}

// runLink returns a link to a run.
export function runLink(id) {
	return h("a", {href: `#/runs/${encodeURIComponent(id)}`}, id)
}

// workflowLink returns a link to a workflow.
export function workflowLink(name) {
	return h("a", {href: `#/workflows/${encodeURIComponent(name)}`}, name)
}
