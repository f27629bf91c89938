import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { contract, fakeGate, response } from "../fake-gate.mjs";
import { Gate } from "../gatewright.mjs";
import { gated, runAgent } from "./middleware.mjs";

const REFUND = { id: "c1", name: contract.tool, arguments: { order_id: "5521" } };

/** A table of one tool that keeps what it was called with. */
function refunds() {
  const calls = [];
  const tools = { [contract.tool]: (args) => calls.push(args) && { refunded: args.order_id } };
  return { calls, tools };
}

/** A model that says what the script says, one entry a turn, and keeps what it read. */
function scripted(...script) {
  const read = [];
  const model = async (messages) => {
    read.push(messages.at(-1).content);
    return script.shift();
  };
  return { model, read };
}

describe("the middleware runs the tool exactly when the contract allows", { concurrency: 8 }, () => {
  for (const row of contract.rows) {
    test(row.name, async (t) => {
      const fake = await fakeGate(row);
      t.after(() => fake.close());
      const { calls, tools } = refunds();
      const call = gated(tools, new Gate({ url: fake.url, timeoutMilliseconds: row.timeout ?? 10_000 }));
      const reply = await call(REFUND, { userRequest: "Refund order 5521." });
      assert.deepEqual(calls, row.want.allowed ? [{ order_id: "5521" }] : []);
      const content = row.want.allowed ? '{"refunded":"5521"}' : row.want.tells;
      assert.deepEqual(reply, { role: "tool", id: "c1", name: contract.tool, ran: row.want.allowed, content });
    });
  }
});

describe("nothing runs and nobody is asked", () => {
  const cases = {
    "for a tool that is not in the table": [{ ...REFUND, name: "rm" }, 'There is no tool named "rm".'],
    "for a name that every object has": [{ ...REFUND, name: "constructor" }, 'There is no tool named "constructor".'],
    "for arguments that are cut": [{ ...REFUND, arguments: '{"order_id": "55' }, `The arguments of ${contract.tool} are not a JSON object.`],
    "for arguments that are a list": [{ ...REFUND, arguments: "[1]" }, `The arguments of ${contract.tool} are not a JSON object.`],
  };
  for (const [name, [call, content]] of Object.entries(cases)) {
    test(name, async (t) => {
      const fake = await fakeGate(response("Allow"));
      t.after(() => fake.close());
      const { calls, tools } = refunds();
      assert.deepEqual(await gated(tools, new Gate({ url: fake.url }))(call), { role: "tool", id: "c1", name: call.name, ran: false, content });
      assert.deepEqual([calls, fake.asked], [[], []]);
    });
  }
});

test("an agent's loop shows the gate the conversation, and the model the gate's word", async (t) => {
  const fake = await fakeGate(response("Clarify", { reason: "ArgumentFromNowhere", message: "Ask which order.", missing: ["/order_id"] }));
  t.after(() => fake.close());
  const { calls, tools } = refunds();
  const { model, read } = scripted({ content: "I will refund it.", toolCalls: [REFUND] }, { content: "Which order is it?" });
  const call = gated(tools, new Gate({ url: fake.url }), { server: "orders" });
  const messages = await runAgent({ model, call, userRequest: "Refund my order.", session: "s1" });
  assert.deepEqual(calls, []);
  assert.equal(
    read[1],
    `${contract.tool} did not run (ArgumentFromNowhere). Ask which order. Ask the user before you call it again. Missing: /order_id.`,
  );
  assert.equal(messages.at(-1).content, "Which order is it?");
  const { tool, context } = fake.asked[0].review.request;
  assert.deepEqual(tool, { name: contract.tool, server: "orders" });
  const said = [{ role: "user", content: "Refund my order." }, { role: "assistant", content: "I will refund it." }];
  assert.deepEqual(context, { userRequest: "Refund my order.", messages: said, session: "s1" });
});

test("a tool that fails is told to the model", async (t) => {
  const fake = await fakeGate(response("Allow"));
  t.after(() => fake.close());
  const tools = { [contract.tool]: () => Promise.reject(new Error("order is closed")) };
  const reply = await gated(tools, new Gate({ url: fake.url }))(REFUND);
  assert.deepEqual([reply.ran, reply.content], [true, `${contract.tool} failed: order is closed`]);
});
