import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]

from strands import Agent, tool
from strands.models.model import Model

from fake_gate import ROWS, FakeGate, response
from gatewright import Gate
from strands_hook import GatewrightIntervention

TOOL = "refund"  # names of this framework hold no dots


class ScriptedModel(Model):
    """Says what the script says, one entry a turn: text, or a list of the arguments of calls."""

    def __init__(self, *script):
        self.script, self.read = list(script), []

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError("this model only follows its script")

    async def stream(self, messages, *_, **__):
        self.read.append(messages[-1]["content"])
        said = self.script.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        for number, arguments in enumerate([said] if isinstance(said, str) else said):
            if isinstance(arguments, str) and isinstance(said, str):
                start, delta = {}, {"text": arguments}
            else:
                start = {"toolUse": {"toolUseId": f"c{len(self.read)}-{number}", "name": TOOL}}
                delta = {"toolUse": {"input": arguments}}
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(said, str) else "tool_use"}}


class Strands(unittest.TestCase):
    def run_agent(self, row, *script, context=lambda event: {}, on_ask=lambda review: None):
        """Give what the tool was called with, what the model read about each call, and what the gate was asked."""
        ran = []

        @tool(name=TOOL, context=True)
        def refund(order_id: str, tool_context) -> str:
            """Refund an order."""
            decisions = tool_context.invocation_state.get("gatewright", {})
            decision = decisions.get(tool_context.tool_use["toolUseId"])
            ran.append((order_id, decision.permit if decision else "no decision"))
            return f"refunded {order_id}"

        model = ScriptedModel(*script)
        with FakeGate(row, on_ask=on_ask) as fake:
            gate = GatewrightIntervention(Gate(fake.url, timeout=row.get("timeout", 10000) / 1000), context)
            agent = Agent(model=model, tools=[refund], interventions=[gate], callback_handler=None)
            agent("Refund order 5521, please.")
        results = {b["toolResult"]["toolUseId"]: b["toolResult"] for m in agent.messages for b in m["content"] if "toolResult" in b}
        return ran, [results[key] for key in sorted(results)], fake.asked

    def test_the_tool_runs_exactly_when_the_contract_allows(self):
        for row in ROWS:
            with self.subTest(row["name"]):
                ran, results, asked = self.run_agent(row, ['{"order_id": "5521"}'], "Done.")
                allowed = row["want"]["allowed"]
                self.assertEqual(["5521"] if allowed else [], [order for order, _ in ran])
                text = results[0]["content"][0]["text"]
                if allowed:
                    self.assertEqual(("success", "refunded 5521"), (results[0]["status"], text))
                else:
                    tells = row["want"]["tells"].replace("orders.refund", TOOL)
                    said = f"GUIDANCE: [gatewright] {tells}" if row["want"]["outcome"] == "Clarify" else f"DENIED: {tells}"
                    self.assertEqual(("error", said), (results[0]["status"], text))
                self.assertEqual(1, len(asked))

    def test_the_gate_sees_the_call_and_the_conversation(self):
        about = lambda event: {"session": "s1", "server": "orders"}
        script = (['{"order_id": "5521"}'], ['{"order_id": "7"}'], "Done.")
        ran, _, asked = self.run_agent(response("Allow", permit="a.b.c"), *script, context=about)
        self.assertEqual([("5521", "a.b.c"), ("7", "a.b.c")], ran)
        first, second = (a["review"]["request"] for a in asked)
        self.assertEqual({"name": TOOL, "server": "orders"}, first["tool"])
        self.assertEqual({"order_id": "5521"}, first["arguments"])
        words = "Refund order 5521, please."
        said = [{"role": "user", "content": words}]
        self.assertEqual({"userRequest": words, "messages": said, "session": "s1"}, first["context"])
        result = {"role": "tool", "content": "refunded 5521", "name": TOOL}
        self.assertEqual({"userRequest": words, "messages": said + [result], "session": "s1"}, second["context"])

    def test_of_two_calls_only_the_allowed_one_runs(self):
        row = response("Allow")

        def answer(review):
            allowed = review["request"]["arguments"]["order_id"] == "5521"
            return {**row["body"]["response"], "outcome": "Allow" if allowed else "Block", "reason": "No"}

        ran, results, _ = self.run_agent({**row, "answer": answer}, ['{"order_id": "5521"}', '{"order_id": "6000"}'], "Done.")
        self.assertEqual(["5521"], [order for order, _ in ran])
        self.assertEqual(["success", "error"], [r["status"] for r in results])
        self.assertEqual(f"DENIED: {TOOL} did not run (No). Do not retry this call.", results[1]["content"][0]["text"])

    def test_a_context_that_fails_runs_nothing(self):
        def context(event):
            raise LookupError("no such session")

        ran, results, asked = self.run_agent(response("Allow"), ['{"order_id": "5521"}'], "Done.", context=context)
        self.assertEqual(([], [], "error"), (ran, asked, results[0]["status"]))

    def test_the_tool_called_by_its_own_name_is_reviewed_too(self):
        ran = []

        @tool(name=TOOL)
        def refund(order_id: str) -> str:
            """Refund an order."""
            ran.append(order_id)
            return "refunded"

        with FakeGate(response("Block", reason="No")) as fake:
            agent = Agent(model=ScriptedModel(), tools=[refund], interventions=[GatewrightIntervention(Gate(fake.url))], callback_handler=None)
            result = agent.tool.refund(order_id="5521")
        self.assertEqual(([], "error", 1), (ran, result["status"], len(fake.asked)))


if __name__ == "__main__":
    unittest.main()
