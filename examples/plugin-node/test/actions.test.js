import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "../src/actions.js";
import { callAction } from "../src/tea/testing.js";

test("hello greets", async () => {
  const { result } = await callAction(bundle, "greeter.hello", { name: "Ada", tone: "loud" });
  assert.deepEqual(result, { text: "HELLO, ADA!" });
});

test("hello fails", async () => {
  await assert.rejects(callAction(bundle, "greeter.hello", { name: "nobody" }), { type: "not_found" });
});

test("hello checks its parameters", async () => {
  await assert.rejects(callAction(bundle, "greeter.hello", { nmae: "Ada" }), { type: "validation_error" });
});

test("the manifest says what an action promises", () => {
  const declared = new Map(bundle.manifest().actions.map((a) => [a.name, [a.idempotent, a.once, a.reads]]));
  assert.deepEqual(declared.get("greeter.hello"), [true, false, true]);
  assert.deepEqual(declared.get("greeter.relay"), [false, false, false]);
});

test("spell emits tokens", async () => {
  const { result, tokens } = await callAction(bundle, "greeter.spell", { text: "olá" });
  assert.deepEqual(tokens, ["o", "l", "á"]);
  assert.deepEqual(result, { letters: 3 });
});

test("spell stops when it is canceled", async () => {
  await assert.rejects(callAction(bundle, "greeter.spell", { text: "tea" }, { signal: AbortSignal.abort() }), { type: "canceled" });
});

test("relay calls another action", async () => {
  const actions = { "text.upper": ({ text }) => text.toUpperCase() };
  const { result } = await callAction(bundle, "greeter.relay", { action: "text.upper", params: { text: "tea" } }, { actions });
  assert.deepEqual(result, { result: "TEA" });
});
