"""A Strands agent whose tools run only when the gate allows.

    agent = Agent(model=model, tools=tools, interventions=[..., GatewrightIntervention(Gate())])

Put it last: a handler after it could still change the call that the gate has seen. Where a handler of yours adds
messages in the user's name, pass the user's own words by context. Written for strands-agents 1.x.
"""

from __future__ import annotations

import asyncio
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from strands.hooks import BeforeToolCallEvent
from strands.interventions import Deny, Guide, InterventionHandler, Proceed

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from gatewright import Gate


class GatewrightIntervention(InterventionHandler):
    """Ask the gate about each tool call. context adds review's keywords for one call: session, on_behalf_of, ..."""

    name = "gatewright"
    on_error = "deny"

    def __init__(self, gate: Gate, context: Callable[[BeforeToolCallEvent], Mapping[str, Any]] = lambda event: {}):
        self.gate, self.context = gate, context

    async def before_tool_call(self, event: BeforeToolCallEvent, **_: Any) -> Proceed | Deny | Guide:
        messages = _messages(event.agent.messages)
        about = {
            "user_request": next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""),
            "messages": messages,
            **self.context(event),
        }
        call = event.tool_use
        decision = await asyncio.to_thread(self.gate.review, call["name"], call["input"], **about)
        if decision:
            # A tool finds its permit here, by its own call: tools may run side by side.
            event.invocation_state.setdefault("gatewright", {})[call["toolUseId"]] = decision
            return Proceed()
        # A Confirm of the gate waits for a person at the gate, so it is no Confirm of this framework.
        text = decision.for_model()
        return Guide(feedback=text) if decision.outcome == "Clarify" else Deny(reason=text)


def _messages(history: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The conversation as the gate reads it: results of tools come in the user's role, and are not the user's."""
    names: dict[str, str] = {}
    said = []
    for message in history:
        texts = []
        for block in message["content"]:
            if "toolUse" in block:
                names[block["toolUse"]["toolUseId"]] = block["toolUse"]["name"]
            elif "toolResult" in block:
                result = block["toolResult"]
                said.append({"role": "tool", "content": _join(result["content"]), "name": names.get(result["toolUseId"], "unknown")})
            else:
                texts.append(block)
        if text := _join(texts):
            said.append({"role": message["role"], "content": text})
    return said


def _join(blocks: list[dict[str, Any]]) -> str:
    """The text of blocks, with a word in place of what is no text: the gate should know that it did not see it."""
    return "\n".join(block["text"] if "text" in block else f"[{next(iter(block))} that the gate cannot read]" for block in blocks)
