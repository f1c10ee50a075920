// The plugins of the device.
import {can, get, upload} from "./api.js"
import {button, dialog, h, notice, refill, table, when, workflowLink} from "./dom.js"
import {empty, loading} from "./empty.js"
import {every} from "./runs.js"

// device shows the plugins that run and those that are installed, which are replaced and
// rolled back.
export function device(signal) {
	const message = notice()
	const done = h("p", {role: "status"})
	const content = h("div", null, loading())
	async function read() {
		const [{plugins, installed}, {workflows}] = await Promise.all([get("/v1/plugins", signal), get("/v1/workflows", signal)])
		const values = workflows.flatMap(one => one.triggers.filter(trigger => trigger.kind === "poll" || trigger.kind === "stream").map(trigger => [workflowLink(one.name), trigger.name, trigger.value ? h("code", null, trigger.value) : "",
			[when(trigger.last), trigger.problem ? h("div", {class: "bad"}, trigger.problem) : null]]))
		const names = new Set(plugins.map(plugin => plugin.name))
		const idle = installed.filter(one => !names.has(one.name)).map(one => ({name: one.name, version: one.version, state: "not started"}))
		const earlier = new Map(installed.map(one => [one.name, one.earlier]))
		refill(content, table("Plugins", ["Plugin", "Version", "State", "Generation", "Memory", "Calls", "Failed", "Crashes", ""],
			[...plugins, ...idle].sort((a, b) => a.name.localeCompare(b.name)).map(plugin => [
				plugin.name, plugin.version, [plugin.state, trouble("died", plugin.last_crash), trouble("not replaced", plugin.refused)],
				plugin.generation ?? "", plugin.rss_bytes ? `${(plugin.rss_bytes / 1048576).toFixed(1)} MiB` : "",
				plugin.calls ?? "", plugin.failures ?? "", plugin.crashes ?? "",
				can("admin") && earlier.get(plugin.name)?.length ? button("Roll back …", () => change(rollback(plugin, earlier.get(plugin.name).at(-1))), message.fail,
					{"aria-label": `Roll back ${plugin.name} …`}) : null,
			])) ?? empty("No plugin is running.", "Plugins start with the first call of their actions."),
			values.length > 0 ? [h("h2", null, "Last values"), table("Last values", ["Workflow", "Trigger", "Value", "Last run"], values)] : null)
	}
	async function change(request) {
		const result = await request
		if (result) {
			done.textContent = `${result.name} ${result.version} is active${result.before ? ` (before: ${result.before})` : ""}.`
			await read()
		}
	}
	every(signal, async () => {
		await read()
		message.clear()
	}, message.fail, 5000)
	return h("div", null, h("h1", null, "Plugins"), message.element, done, content,
		can("admin") ? h("p", null, button("Install or replace …", () => change(install()), message.fail)) : null)
}

// trouble describes what has gone wrong with a plugin.
function trouble(what, text) {
	return text ? h("div", {class: "bad"}, `${what}: ${text}`) : null
}

// install asks for a bundle and installs it.
function install() {
	const bundle = h("input", {type: "file", id: "bundle", required: true, accept: ".teab"})
	const signature = h("input", {type: "file", id: "signature", accept: ".minisig"})
	const content = h("div", null, h("p", null, "The version that runs is replaced without a failed call. If the new one cannot be used, it stays."),
		h("p", null, h("label", {for: "bundle"}, "Bundle"), bundle), h("p", null, h("label", {for: "signature"}, "Signature, if it has one"), signature))
	return dialog("Install or replace a plugin", content, "Install", () => {
		const form = new FormData()
		form.set("bundle", bundle.files[0])
		if (signature.files.length > 0) {
			form.set("signature", signature.files[0])
		}
		return upload("/v1/plugins", form)
	})
}

// rollback asks whether a plugin returns to a version.
function rollback(plugin, version) {
	return dialog(`Roll back ${plugin.name}`, h("p", null, `Return from version ${plugin.version} to version ${version}?`), "Roll back",
		() => upload(`/v1/plugins/${encodeURIComponent(plugin.name)}/rollback`))
}
