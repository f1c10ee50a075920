// What a view shows before its content is there, and instead of it.
import {h} from "./dom.js"

// empty says that there is nothing, and what to do next.
export function empty(title, ...hint) {
	return h("div", {class: "card empty"}, h("p", null, h("strong", null, title)), h("p", null, hint))
}

// loading takes the place of rows that are read.
export function loading(rows = 4) {
	return h("div", {class: "card loading"}, h("span", {class: "muted", role: "status"}, "Loading …"), Array.from({length: rows}, () => h("i", {"aria-hidden": "true"})))
}
