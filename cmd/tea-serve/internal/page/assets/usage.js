// Charts and a table of what runs have used, by day and workflow.
import {get} from "./api.js"
import {dollars, h, lasting, notice, refill, table, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {every} from "./runs.js"
import {section} from "./view.js"

const count = value => value.toLocaleString()
// measures are the columns and charts.
const measures = [
	{title: "Runs", of: one => one.runs, text: count},
	{title: "Failed", of: one => one.failed, text: count},
	{title: "Running time", of: one => one.seconds, text: value => lasting(value * 1000)},
	{title: "Tokens", of: one => one.tokens, text: count},
	{title: "Cost", of: one => one.usd, text: dollars},
]
const sum = (list, of) => list.reduce((total, one) => total + of(one), 0)

// svg returns an element of a drawing.
function svg(tag, attributes, ...children) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
	for (const [name, value] of Object.entries(attributes)) {
		element.setAttribute(name, value)
	}
	element.append(...children)
	return element
}

// daysUntil returns the dates of n days, the last one included.
function daysUntil(last, n) {
	return Array.from({length: n}, (_, i) => new Date(Date.parse(last) - (n - 1 - i) * 86400000).toISOString().slice(0, 10))
}

// chart draws a measure as a bar for each day.
function chart({title, of, text}, days, byDay) {
	const values = days.map(day => sum(byDay.get(day) ?? [], of))
	const most = Math.max(...values)
	const peak = days[values.indexOf(most)]
	const all = text(values.reduce((a, b) => a + b, 0))
	const bars = values.map((value, i) => {
		const height = most > 0 ? Math.max(value > 0 ? 2 : 0, 100 * value / most) : 0
		return svg("g", {}, svg("title", {}, `${days[i]}: ${text(value)}`), svg("rect", {class: "day", x: i, y: 0, width: 1, height: 100}), svg("rect", {class: "bar", x: i + 0.1, y: 100 - height, width: 0.8, height}))
	})
	const label = `${title} by day: ${all} in all${most > 0 ? `, at most ${text(most)} on ${peak}` : ""}`
	return h("figure", {class: "chart", "data-measure": title}, h("figcaption", null, h("strong", null, title), " ", h("span", null, all)),
		h("div", {class: "muted"}, most > 0 ? text(most) : "None"),
		svg("svg", {viewBox: `0 0 ${days.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label}, ...bars),
		h("div", {class: "muted ends"}, h("span", null, days[0]), h("span", null, days.at(-1))))
}

// usage shows what runs have used. The filters are in the address.
export function usage(signal) {
	const message = notice()
	const content = h("div", null, loading(8))
	const given = new URLSearchParams(location.hash.split("?")[1] ?? "")
	const period = h("select", {id: "days"}, [7, 30, 90].map(n => h("option", {value: String(n)}, `${n} days`)))
	const chosen = h("select", {id: "of"}, h("option", {value: ""}, "All"))
	period.value = given.get("days") ?? "30"
	if (period.value === "") {
		period.value = "30"
	}
	let wanted = given.get("workflow") ?? ""
	let list = []

	function show() {
		const names = [...new Set(list.map(one => one.workflow)), wanted].filter(name => name).sort()
		refill(chosen, h("option", {value: ""}, "All"), [...new Set(names)].map(name => h("option", {value: name}, name)))
		chosen.value = wanted
		const today = new Date(Date.now() - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 10)
		const days = daysUntil([today, list[0]?.day ?? ""].sort().at(-1), Number(period.value))
		const rows = list.filter(one => one.day >= days[0] && (!wanted || one.workflow === wanted))
		const byDay = Map.groupBy(rows, one => one.day)
		const cells = part => measures.map(({of, text}) => text(sum(part, of)))
		refill(content, rows.length === 0 ? empty("No run has ended in this time.", list.length > 0 ? "Choose more days, or all workflows." : ["Start one from its ", h("a", {href: "#/"}, "workflow"), "."]) : [
			h("div", {class: "charts"}, measures.map(one => chart(one, days, byDay))),
			section("By workflow", table("By workflow", ["Workflow", ...measures.map(one => one.title)], [...Map.groupBy(rows, one => one.workflow)].sort((a, b) => sum(b[1], measures[0].of) - sum(a[1], measures[0].of))
				.map(([name, part]) => [workflowLink(name), ...cells(part)]))),
			section("By day", table("By day", ["Day", "Workflow", ...measures.map(one => one.title)], rows.map(one => [one.day, workflowLink(one.workflow), ...cells([one])])))])
	}
	function filter() {
		wanted = chosen.value
		history.replaceState(null, "", `#/usage?${new URLSearchParams({days: period.value, ...wanted ? {workflow: wanted} : {}})}`)
		show()
	}
	period.addEventListener("change", filter)
	chosen.addEventListener("change", filter)
	every(signal, async () => {
		list = (await get("/v1/usage", signal)).days
		message.clear()
		show()
	}, message.fail)
	return h("div", null, h("h1", null, "Usage"), h("p", {class: "muted"}, "Runs by the day on which they ended, in the time zone of the server, also those that were removed."),
		h("div", {class: "filters", role: "search"}, h("label", {for: "days"}, "Time", period), h("label", {for: "of"}, "Workflow", chosen)), message.element, content)
}
