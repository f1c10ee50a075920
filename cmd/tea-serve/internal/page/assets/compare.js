// Two runs side by side.
import {get} from "./api.js"
import {badge, dollars, fill, h, lasting, notice, runLink, table, when, workflowLink} from "./dom.js"
import {loading} from "./empty.js"
import {changeTable} from "./state.js"
import {section} from "./view.js"

function visit(one, other) {
	return one ? [badge(one.status), ` ${lasting(one.duration_ms)}`, one.tokens ? `, ${one.tokens} tokens` : ""] : other ? h("span", {class: "muted"}, "not reached") : ""
}

// compare shows what differs between two runs.
export function compare(first, second, signal) {
	const message = notice()
	const content = h("div", null, loading(8))
	const row = (name, of, a, b) => of(a) || of(b) ? [name, of(a) || "", of(b) || ""] : null
	get(`/v1/runs/${encodeURIComponent(first)}/compare?with=${encodeURIComponent(second)}`, signal).then(({a, b, input, state, path, omitted}) => fill(content,
		table("Runs", ["", "First run", "Second run"], [
			row("Run", run => runLink(run.id), a, b), row("Workflow", run => workflowLink(run.workflow), a, b),
			a.digest === b.digest ? null : row("Version", run => h("code", null, run.digest.slice(0, 12)), a, b),
			row("Status", run => badge(run.status), a, b), row("Error", run => run.error, a, b), row("Started", run => when(run.started_at), a, b),
			row("Time", run => lasting(run.duration_ms), a, b), row("Steps", run => run.usage.steps && String(run.usage.steps), a, b),
			row("Tokens", run => run.usage.tokens && run.usage.tokens.toLocaleString(), a, b), row("Cost", run => run.usage.usd && dollars(run.usage.usd), a, b)].filter(one => one)),
		section("Input", changeTable("Differences of the inputs", "First run", "Second run", input.map(one => [one.key, one.from, one.to])) ?? h("p", {class: "muted"}, "The inputs are the same.")),
		section("Path", table("Nodes", ["Node", "First run", "Second run"], path.map(one => [h("code", null, one.path), visit(one.a, one.b), visit(one.b, one.a)])) ?? h("p", {class: "muted"}, "No node has ended.")),
		section("State", changeTable("Differences of the states", "First run", "Second run", state.map(one => [one.key, one.from, one.to])) ?? h("p", {class: "muted"}, "The last states are the same.")),
		omitted ? h("p", {class: "muted"}, `${omitted} more differences are not shown.`) : null),
	err => {
		fill(content)
		signal.aborted || message.fail(err)
	})
	return h("div", null, h("h1", null, "Compare runs"), message.element, content)
}
