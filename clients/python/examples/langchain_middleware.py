"""A LangChain agent whose tools run only when the gate allows.

    agent = create_agent(model, tools, middleware=[..., GatewrightMiddleware(Gate())])

Put it last: middleware after it could still change the call that the gate has seen. Written for langchain 1.x.
"""

from __future__ import annotations

import asyncio
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from gatewright import Decision, Gate, current

ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


class GatewrightMiddleware(AgentMiddleware):
    """Ask the gate about each tool call. context adds review's keywords for one call: facts, on_behalf_of, ..."""

    def __init__(self, gate: Gate, context: Callable[[Any], Mapping[str, Any]] = lambda request: {}):
        super().__init__()
        self.gate, self.context = gate, context

    def wrap_tool_call(self, request, handler):
        decision = self._review(request)
        if not decision:
            return _denied(request, decision)
        token = current.set(decision)
        try:
            return handler(request)
        finally:
            current.reset(token)

    async def awrap_tool_call(self, request, handler):
        decision = await asyncio.to_thread(self._review, request)
        if not decision:
            return _denied(request, decision)
        token = current.set(decision)
        try:
            return await handler(request)
        finally:
            current.reset(token)

    def _review(self, request) -> Decision:
        messages = request.state["messages"]
        about = {
            "user_request": next((_text(m) for m in reversed(messages) if isinstance(m, HumanMessage)), ""),
            "messages": [_message(m) for m in messages if _text(m) or isinstance(m, ToolMessage)],
            **self.context(request),
        }
        return self.gate.review(request.tool_call["name"], request.tool_call["args"], **about)


def _denied(request, decision: Decision) -> ToolMessage:
    call, approval = request.tool_call, decision.approval.name if decision.approval else None
    artifact = {"outcome": decision.outcome, "reason": decision.reason, "approval": approval}  # for the harness
    return ToolMessage(decision.for_model(), tool_call_id=call["id"], name=call["name"], status="error", artifact=artifact)


def _message(message: BaseMessage) -> dict[str, str]:
    # A kind of message that is not known here is not the user's own word.
    said = {"role": ROLES.get(message.type, "tool"), "content": _text(message)}
    return {**said, "name": message.name} if isinstance(message, ToolMessage) and message.name else said


def _text(message: BaseMessage) -> str:
    """The text of a message, with a word in place of what is no text: the gate should know that it did not see it."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(_block(block) for block in message.content).strip()


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if block.get("type") == "text":
        return block.get("text", "")
    return "" if block.get("type") in ("tool_use", "tool_call") else f"[{block.get('type', 'unknown')} that the gate cannot read]"
