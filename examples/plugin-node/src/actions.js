import { z } from "zod";
import { action, ActionError, Bundle } from "./tea/index.js";

// tea checks parameters with the schema, in workflows before they run and in
// each call. Handlers return a result or throw an ActionError, whose type
// determines how the workflow can handle it.
const hello = action(
  "greeter.hello",
  "Greets a person.",
  {
    params: z.strictObject({
      name: z.string().min(1).max(100).describe("who is greeted"),
      tone: z.enum(["plain", "loud"]).default("plain").describe("how"),
    }),
    result: z.object({ text: z.string().describe("the greeting") }),
    idempotent: true,
    reads: true,
  },
  ({ name, tone }) => {
    if (name.toLowerCase() === "nobody") throw new ActionError("not_found", `there is no person called ${JSON.stringify(name)}`);
    const text = `Hello, ${name}!`;
    return { text: tone === "loud" ? text.toUpperCase() : text };
  },
);

// A streaming action emits tokens while it runs. call.signal aborts when the
// call is canceled or its deadline has passed.
const spell = action(
  "greeter.spell",
  "Spells a text, letter by letter.",
  {
    params: z.strictObject({ text: z.string().describe("the text to spell") }),
    result: z.object({ letters: z.int().describe("the number of letters") }),
    streaming: true,
  },
  async ({ text }, call) => {
    const letters = [...text];
    for (const [i, letter] of letters.entries()) {
      call.signal.throwIfAborted();
      await call.token(letter);
      await call.progress((i + 1) / letters.length, "spelling");
    }
    return { letters: letters.length };
  },
);

// Other actions are reached through the host: those of another plugin, of a Lua
// module or of the host itself.
const relay = action(
  "greeter.relay",
  "Calls another action and returns its result.",
  {
    params: z.strictObject({
      action: z.string().describe("the name of the action"),
      params: z.record(z.string(), z.unknown()).optional().describe("its parameters"),
    }),
    result: z.object({ result: z.unknown().describe("its result") }),
  },
  async ({ action, params }, call) => ({ result: await call.invoke(action, params) }),
);

export const bundle = new Bundle({
  name: "greeter",
  version: "0.1.0",
  description: "Greets people.",
  actions: [hello, spell, relay],
});
