// Runs a workflow of `tea serve` with the types that openapi-typescript generates.
// Usage: client.mjs URL TOKEN BUNDLE NEXT.
import assert from "node:assert/strict"
import { readFile } from "node:fs/promises"
import createClient from "openapi-fetch"
import type { components, paths } from "./api.js"

type Run = components["schemas"]["Run"]

const [baseUrl, token, ...bundles] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } })

function isRun(data: Run | components["schemas"]["Accepted"] | undefined): data is Run {
	return data !== undefined && "workflow" in data
}

const { data: list } = await client.GET("/v1/workflows")
assert.deepEqual(list?.workflows.map(w => w.name), ["ask"])

const { data: started } = await client.POST("/v1/workflows/{name}/runs", {
	params: { path: { name: "ask" }, query: { wait: 600 }, header: { "Idempotency-Key": "typescript" } },
	body: { input: { n: 7 } },
})
assert(isRun(started))
assert.equal(started.status, "waiting")
assert.deepEqual(started.pending?.[0]?.choices, ["yes", "no"])

const path = { id: started.id }
const { error: refused } = await client.POST("/v1/runs/{id}/resume", { params: { path }, body: { answers: { q: "maybe" } } })
assert.equal(refused?.status, 422)
const { data: done } = await client.POST("/v1/runs/{id}/resume", { params: { path, query: { wait: 600 } }, body: { answers: { q: "yes" } } })
assert(isRun(done))
assert.equal(done.status, "done")
assert.equal(done.state?.answer, "yes")

const { data: events } = await client.GET("/v1/runs/{id}/events", { params: { path }, parseAs: "text" })
assert.match(String(events), /"event":"run_end"/)
const { data: page } = await client.GET("/v1/runs", { params: { query: { workflow: "ask", status: "done", limit: 1 } } })
assert.equal(page?.runs[0]?.id, started.id)
const { error: missing } = await client.GET("/v1/runs/{id}", { params: { path: { id: "gone" } } })
assert.equal(missing?.status, 404)

for (const bundle of bundles) {
	const form = new FormData()
	form.set("bundle", new Blob([await readFile(bundle)]), "echo.teab")
	const { data: change, error } = await client.POST("/v1/plugins", { body: { bundle: "" }, bodySerializer: () => form })
	assert.equal(change?.name, "echo", JSON.stringify(error))
}
const { data: back } = await client.POST("/v1/plugins/{name}/rollback", { params: { path: { name: "echo" } } })
assert.deepEqual([back?.before, back?.version], ["2.0.0", "1.0.0"])
console.log("ok")
