// Sends every option of OpenAI's JavaScript client to the workflow `options`, which
// answers with those that it gets. The compiler compares chat-options.json with the
// options of the client. Usage: chat.mjs URL.
import assert from "node:assert/strict"
import OpenAI, { APIError, BadRequestError, InternalServerError } from "openai"
import type { ChatCompletionCreateParamsNonStreaming } from "openai/resources/chat/completions"
import options from "./chat-options.json" with { type: "json" }

type Options = Omit<ChatCompletionCreateParamsNonStreaming, "model" | "messages" | "stream" | "stream_options">
const all: Record<keyof Options, { given?: unknown; refused?: unknown }> = options
const known: keyof typeof options extends keyof Options ? true : false = true
assert(known)

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 })
const chat = { model: "options", messages: [{ role: "user" as const, content: "hello" }] }
const given: Record<string, unknown> = {}
for (const [name, option] of Object.entries(all)) {
	if ("given" in option) {
		given[name] = option.given
		const answer = await client.chat.completions.create({ ...chat, [name]: option.given })
		assert.deepEqual(JSON.parse(answer.choices[0]?.message.content ?? ""), { [name]: option.given })
		continue
	}
	const refused = client.chat.completions.create({ ...chat, [name]: option.refused })
	await assert.rejects(refused, (e: unknown) => e instanceof BadRequestError && e.message.includes(`${name}: `))
}

const stream = await client.chat.completions.create({ ...chat, ...given, stream: true, stream_options: { include_usage: true, include_obfuscation: false } })
let text = ""
const usages: boolean[] = []
let last = 1
for await (const chunk of stream) {
	last = chunk.choices.length
	text += chunk.choices[0]?.delta.content ?? ""
	usages.push(chunk.usage != null)
}
assert.deepEqual(JSON.parse(text), given)
assert.deepEqual(usages, [...usages.slice(1).map(() => false), true])
assert.equal(last, 0)

await assert.rejects(client.chat.completions.create({ ...chat, stream: true, stream_options: { include_obfuscation: true } }), BadRequestError)
await assert.rejects(client.chat.completions.create({ ...chat, model: "fail" }), InternalServerError)
await assert.rejects(async () => {
	for await (const _ of await client.chat.completions.create({ ...chat, model: "fail", stream: true })) {
	}
}, (e: unknown) => e instanceof APIError && e.message.includes("no luck"))
assert.deepEqual((await client.models.list()).data.map(m => m.id), ["fail", "options"])
assert.equal((await client.models.retrieve("options")).owned_by, "tea")
