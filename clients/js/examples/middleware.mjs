/**
 * Middleware between a model's tool calls and a table of tools: the loop calls tools only through it.
 *
 *   const tools = { "orders.find": find, "orders.refund": refund };
 *   const call = gated(tools, new Gate());
 *   const reply = await call({ id, name, arguments }, { userRequest, messages, session });
 *
 * The reply is what goes back to the model. The gate's word stands in it where the tool did not run.
 * @module
 */

import { Gate } from "../gatewright.mjs";

/**
 * @typedef {{id: string, name: string, arguments: Record<string, unknown> | string}} ToolCall as a model gives it
 * @typedef {{role: "tool", id: string, name: string, ran: boolean, content: string}} ToolReply
 */

/**
 * @param {Record<string, (args: any, decision: import("../gatewright.mjs").Decision) => unknown>} tools by name
 * @param {Gate} gate
 * @param {{server?: string}} [options]
 * @returns {(call: ToolCall, about?: import("../gatewright.mjs").About) => Promise<ToolReply>}
 */
export function gated(tools, gate, { server } = {}) {
  const table = new Map(Object.entries(tools)); // "constructor" is no tool
  return async (call, about = {}) => {
    /** @returns {ToolReply} */
    const reply = (ran, content) => ({ role: "tool", id: call.id, name: call.name, ran, content });
    const tool = table.get(call.name);
    if (tool === undefined) return reply(false, `There is no tool named ${JSON.stringify(call.name)}.`);
    const args = parsed(call.arguments);
    if (args === undefined) return reply(false, `The arguments of ${call.name} are not a JSON object.`);

    const decision = await gate.review(call.name, args, { ...about, ...(server ? { server } : {}) });
    if (decision.allowed !== true) return reply(false, decision.forModel());
    try {
      return reply(true, JSON.stringify((await tool(args, decision)) ?? null));
    } catch (error) {
      return reply(true, `${call.name} failed: ${error.message}`);
    }
  };
}

/** Models give arguments as an object, or as the text of one. */
function parsed(args) {
  let value = args;
  if (typeof args === "string") {
    try {
      value = JSON.parse(args);
    } catch {
      return undefined;
    }
  }
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

/** Run an agent's loop: ask the model, run what it calls through the gate, until it answers in words. */
export async function runAgent({ model, call, userRequest, session, maxTurns = 8 }) {
  const messages = [{ role: "user", content: userRequest }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const said = await model(messages);
    messages.push({ role: "assistant", content: said.content ?? "", toolCalls: said.toolCalls ?? [] });
    if (!said.toolCalls?.length) return messages;
    const seen = messages.filter(({ content }) => content !== "").map(({ role, content, name }) => ({ role, content, ...(name ? { name } : {}) }));
    for (const toolCall of said.toolCalls) {
      messages.push(await call(toolCall, { userRequest, messages: seen, session }));
    }
  }
  return messages;
}
