import asyncio
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from fake_gate import ROWS, TOOL, FakeGate, response
from gatewright import Gate, current
from langchain_middleware import GatewrightMiddleware


class ScriptedModel(BaseChatModel):
    """Says what the script says, one entry a turn, and keeps what it read last."""

    script: list
    read: list = []

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        self.read.append(messages[-1])
        return ChatResult(generations=[ChatGeneration(message=self.script[len(self.read) - 1])])


def calls(*arguments, content=""):
    named = [{"name": TOOL, "args": a, "id": f"c{i}"} for i, a in enumerate(arguments)]
    return AIMessage(content, tool_calls=named)


class Langchain(unittest.TestCase):
    def run_agent(self, row, script, user="Refund order 5521, please.", context=lambda request: {}, use_async=False):
        """Give what the tool was called with, what the model read, and what the gate was asked."""
        ran = []

        @tool(TOOL)
        def refund(order_id: str, amount: float = 1.0) -> str:
            """Refund an order."""
            ran.append((order_id, amount, current.get().permit))
            return f"refunded {order_id}"

        model = ScriptedModel(script=script, read=[])
        with FakeGate(row) as fake:
            gate = Gate(fake.url, timeout=row.get("timeout", 10000) / 1000)
            agent = create_agent(model, [refund], middleware=[GatewrightMiddleware(gate, context)])
            state = {"messages": [{"role": "user", "content": user}]}
            messages = (asyncio.run(agent.ainvoke(state)) if use_async else agent.invoke(state))["messages"]
        results = [m for m in messages if isinstance(m, ToolMessage)]
        return ran, results, model.read, fake.asked

    def test_the_tool_runs_exactly_when_the_contract_allows(self):
        for number, row in enumerate(ROWS):
            with self.subTest(row["name"]):
                script = [calls({"order_id": "5521"}), AIMessage("Done.")]
                ran, results, read, asked = self.run_agent(row, script, use_async=number % 2 == 1)
                allowed = row["want"]["allowed"]
                self.assertEqual(["5521"] if allowed else [], [order for order, _, _ in ran])
                self.assertEqual("refunded 5521" if allowed else row["want"]["tells"], read[1].content)
                self.assertEqual("success" if allowed else "error", results[0].status)
                self.assertEqual(1, len(asked))

    def test_the_gate_sees_the_call_and_the_conversation(self):
        user = [{"type": "text", "text": "Refund 5521."}, {"type": "image", "url": "https://img.example/a.png"}]
        script = [calls({"order_id": "5521", "amount": 19.99}, content="I will."), calls({"order_id": "7"}), AIMessage("Done.")]
        about = lambda request: {"facts": {"paid": True}, "session": "s1", "server": "orders"}
        ran, _, _, asked = self.run_agent(response("Allow", permit="a.b.c"), script, user, about)
        self.assertEqual([("5521", 19.99, "a.b.c"), ("7", 1.0, "a.b.c")], ran)
        first, second = (a["review"]["request"] for a in asked)
        self.assertEqual({"name": TOOL, "server": "orders"}, first["tool"])
        self.assertEqual({"order_id": "5521", "amount": 19.99}, first["arguments"])
        words = "Refund 5521.\n[image that the gate cannot read]"
        said = [{"role": "user", "content": words}, {"role": "assistant", "content": "I will."}]
        context = {"userRequest": words, "messages": said, "facts": {"paid": True}, "session": "s1"}
        self.assertEqual(context, first["context"])
        result = {"role": "tool", "content": "refunded 5521", "name": TOOL}
        self.assertEqual(said + [result], second["context"]["messages"])

    def test_a_context_that_fails_runs_nothing(self):
        def context(request):
            raise LookupError("no such session")

        with self.assertRaises(LookupError):
            self.run_agent(response("Allow"), [calls({"order_id": "5521"}), AIMessage("Done.")], context=context)

    def test_of_two_calls_only_the_allowed_one_runs(self):
        row = response("Allow")
        other = {**row["body"]["response"], "outcome": "Block", "reason": "No"}

        def answer(review):
            allowed = review["request"]["arguments"]["order_id"] == "5521"
            return row["body"]["response"] if allowed else other

        for use_async in (False, True):
            script = [calls({"order_id": "5521"}, {"order_id": "6000"}), AIMessage("Done.")]
            ran, results, _, _ = self.run_agent({**row, "answer": answer}, script, use_async=use_async)
            self.assertEqual(["5521"], [order for order, _, _ in ran])
            self.assertEqual(["refunded 5521", f"{TOOL} did not run (No). Do not retry this call."], [m.content for m in results])

    def test_a_confirm_tells_the_approval_to_harness_and_model(self):
        row = response("Confirm", reason="Irreversible", approval={"name": "refund-abc123"})
        ran, results, read, _ = self.run_agent(row, [calls({"order_id": "5521"}), AIMessage("It waits.")])
        self.assertEqual([], ran)
        self.assertIn("approval refund-abc123", read[1].content)
        self.assertEqual({"outcome": "Confirm", "reason": "Irreversible", "approval": "refund-abc123"}, results[0].artifact)


if __name__ == "__main__":
    unittest.main()
