// Lists of any length: only the rows that are visible exist.
import {h} from "./dom.js"

// longList returns a list with rows of the given height. render returns the element
// of an item. update shows other items; with follow, a list that is scrolled to its
// end stays there.
export function longList({label, height, render, follow}) {
	const inside = h("div", {class: "rows"})
	const element = h("div", {class: "long", tabindex: "0", role: "group", "aria-label": label}, inside)
	let items = []

	function draw() {
		const first = Math.max(0, Math.floor(element.scrollTop / height) - 5)
		const last = Math.min(items.length, Math.ceil((element.scrollTop + element.clientHeight) / height) + 5)
		const focused = inside.contains(document.activeElement) ? document.activeElement.closest(".row").dataset.index : null
		const rows = []
		for (let i = first; i < last; i++) {
			const row = render(items[i], i)
			row.classList.add("row")
			row.dataset.index = i
			row.style.top = `${i * height}px`
			row.style.height = `${height}px`
			rows.push(row)
		}
		inside.replaceChildren(...rows)
		if (focused !== null) {
			const row = rows.find(row => row.dataset.index === focused)
			const target = row?.matches("button") ? row : row?.querySelector("button");
			(target ?? element).focus({preventScroll: true})
		}
	}

	element.addEventListener("scroll", draw, {passive: true})
	new ResizeObserver(draw).observe(element)
	return {
		element,
		update(list) {
			const atEnd = element.scrollTop + element.clientHeight >= items.length * height - 2
			items = list
			inside.style.height = `${items.length * height}px`
			element.style.height = `${items.length * height + 2}px` // the style sheet sets the maximum
			if (follow && atEnd) {
				element.scrollTop = items.length * height
			}
			draw()
		},
	}
}
