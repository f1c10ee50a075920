// When schedules start runs, and how their last runs ended.
import {can, get, post} from "./api.js"
import {button, h, notice, refill, table, when, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {every, runTable} from "./runs.js"
import {section} from "./view.js"

// maxOfDay is how many times of a trigger on a day are listed one by one.
const maxOfDay = 24
const clock = time => time.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"})

// daysOf returns the rows of a table by day: the time, or the number of times.
function daysOf(triggers) {
	const days = new Map()
	for (const one of triggers) {
		const byDay = Map.groupBy(one.times.map(text => new Date(text)), time => time.toDateString())
		for (const [day, times] of byDay) {
			const rows = times.length > maxOfDay ? [{at: times[0], text: `${times.length} times, ${clock(times[0])} to ${clock(times.at(-1))}`, one}] : times.map(at => ({at, text: clock(at), one}))
			days.set(day, [...days.get(day) ?? [], ...rows])
		}
	}
	return [...days].map(([day, rows]) => ({day, rows: rows.sort((a, b) => a.at - b.at)})).sort((a, b) => a.rows[0].at - b.rows[0].at)
}

// schedule shows the next seven days.
export function schedule(signal) {
	const message = notice()
	const content = h("div", null, loading())
	const run = one => button("Run now", async () => {
		message.clear()
		const made = await post(`/v1/workflows/${encodeURIComponent(one.workflow)}/triggers/${encodeURIComponent(one.trigger)}/run`, {})
		location.hash = `#/runs/${encodeURIComponent(made.id)}`
	}, message.fail, {"aria-label": `Run now: ${one.workflow} ${one.trigger}`})
	const pause = one => button(one.paused ? "Resume" : "Pause", async () => {
		message.clear()
		await post(`/v1/workflows/${encodeURIComponent(one.workflow)}/triggers/${encodeURIComponent(one.trigger)}/${one.paused ? "resume" : "pause"}`, {})
		await refresh()
		content.querySelector(`[aria-label="${CSS.escape(`${one.paused ? "Pause" : "Resume"}: ${one.workflow} ${one.trigger}`)}"]`)?.focus()
	}, message.fail, {"aria-label": `${one.paused ? "Resume" : "Pause"}: ${one.workflow} ${one.trigger}`})
	const next = one => one.paused ? [h("span", {class: "badge", "data-status": "parked"}, "paused"), " since ", when(one.paused)] : when(one.times[0])
	async function refresh() {
		const [{triggers}, {runs}] = await Promise.all([get("/v1/schedule", signal), get("/v1/runs?limit=500", signal)])
		message.clear()
		if (triggers.length === 0) {
			refill(content, empty("Nothing is scheduled.", "Triggers of the kinds ", h("code", null, "cron"), " and ", h("code", null, "every"), " in the section ", h("code", null, "serve"), " of a workflow appear here."))
			return
		}
		const skipped = triggers.flatMap(one => (one.skipped ?? []).map(skip => ({...skip, one}))).sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, 50)
		const known = new Set(triggers.map(one => JSON.stringify([one.workflow, one.trigger])))
		const past = runs.filter(one => known.has(JSON.stringify([one.workflow, one.trigger]))).slice(0, 50)
		refill(content,
			table("Schedules", ["Workflow", "Trigger", "Last", "Next", can("run") ? "Action" : null].filter(name => name), triggers.map(one => [workflowLink(one.workflow), one.trigger, when(one.last), next(one), can("run") ? h("span", {class: "buttons"}, run(one), pause(one)) : null].filter((cell, i) => i < 4 || cell))),
			h("h2", null, "Next seven days"),
			daysOf(triggers).map(({day, rows}) => section(new Date(day).toLocaleDateString([], {weekday: "long", day: "numeric", month: "long"}),
				table(`Runs on ${day}`, ["Time", "Workflow", "Trigger"], rows.map(({text, one}) => [text, workflowLink(one.workflow), one.trigger])))),
			triggers.some(one => one.more) ? h("p", {class: "muted"}, "The first 500 times of a trigger are shown.") : null,
			skipped.length === 0 ? null : [h("h2", null, "Skipped starts"), table("Skipped starts", ["Time", "Workflow", "Trigger", "Reason"], skipped.map(({at, reason, one}) => [when(at), workflowLink(one.workflow), one.trigger, reason]))],
			h("h2", null, "Past runs"), runTable(past) ?? empty("No schedule has started a run yet.", can("run") ? "Run now starts one." : ""))
	}
	every(signal, refresh, message.fail)
	return h("div", null, h("h1", null, "Schedule"), message.element, content)
}
