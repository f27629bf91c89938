import asyncio
import concurrent.futures
import enum
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
import uuid
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fake_gate import ALLOW, FIELDS, ROWS, TOOL, FakeGate, certificate, free_port, response
from gatewright import RETRY_PAUSE, Decision, Gate, ToolCallDenied, current


class Contract(unittest.TestCase):
    def test_the_table_is_whole(self):
        self.assertGreaterEqual(len(ROWS), 80)
        self.assertEqual(set(), {key for row in ROWS for key in row} - FIELDS)

    def test_every_row(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for row, outcome in zip(ROWS, pool.map(self.outcome_of, ROWS)):
                with self.subTest(row["name"]):
                    got, text, ran, asked, took, timeout = outcome
                    self.assertEqual(row["want"], got)
                    self.assertEqual(row["want"]["allowed"], ran)
                    self.assertEqual("done" if ran else row["want"]["tells"], text)
                    self.assertEqual(2, asked)
                    self.assertLess(took, timeout + 2)

    def outcome_of(self, row):
        with FakeGate(row) as fake:
            timeout = row.get("timeout", 10000) / 1000
            gate, ran = Gate(fake.url, timeout=timeout), []

            def tool(order_id):
                ran.append(current.get().allowed)
                return "done"

            start = time.monotonic()
            d = gate.review(TOOL, {"order_id": "5521"}, user_request="Refund order 5521, please.")
            took = time.monotonic() - start
            try:
                text = gate.guard(tool, tool=TOOL)("5521")
            except ToolCallDenied as denied:
                text = str(denied)
            got = dict(allowed=bool(d), outcome=d.outcome, reason=d.reason, retryable=d.retryable, tells=d.for_model())
            return got, text, ran == [True], len(fake.asked), took, timeout


class Review(unittest.TestCase):
    def test_sends_the_call_as_it_is(self):
        with FakeGate(ALLOW) as fake:
            arguments = {"big": 9007199254740993, "price": 19.99, "text": "é <&>", "list": [1, None, True]}
            messages = [{"role": "user", "content": "Hello"}]
            decision = Gate(fake.url + "/base/", token="tkn").review(
                "orders.refund",
                arguments,
                server="orders",
                user_request="Refund.",
                messages=messages,
                facts={"paid": True},
                session="s",
                on_behalf_of="ann",
                language="en",
                attestation="a.b.c",
                approval="refund-1",
            )
        self.assertTrue(decision)
        asked = fake.asked[0]
        self.assertEqual("/base/v1alpha1/review?timeout=10s", asked["path"])
        self.assertEqual("Bearer tkn", asked["headers"]["Authorization"])
        self.assertEqual("application/json", asked["headers"]["Content-Type"])
        uid = asked["review"]["request"].pop("uid")
        self.assertEqual(7, uuid.UUID(uid).version)
        self.assertEqual(uuid.RFC_4122, uuid.UUID(uid).variant)
        self.assertLess(abs((uuid.UUID(uid).int >> 80) / 1000 - time.time()), 60)
        context = dict(userRequest="Refund.", messages=messages, facts={"paid": True}, session="s")
        context.update(onBehalfOf="ann", language="en", attestation="a.b.c")
        request = dict(tool={"name": "orders.refund", "server": "orders"}, arguments=arguments, context=context, approval="refund-1")
        wanted = {"apiVersion": "review.gatewright.dev/v1alpha1", "kind": "ToolCallReview", "request": request}
        self.assertEqual(wanted, asked["review"])
        self.assertIn(b'"big":9007199254740993', asked["raw"])

    def test_never_reuses_a_uid(self):
        with FakeGate(ALLOW) as fake:
            for _ in range(20):
                Gate(fake.url).review("t", {})
        self.assertEqual(20, len({asked["review"]["request"]["uid"] for asked in fake.asked}))

    def test_a_dry_run_is_never_allowed(self):
        with FakeGate(ALLOW) as fake:
            decision = Gate(fake.url).review("t", {}, dry_run=True)
        self.assertTrue(fake.asked[0]["review"]["request"]["dryRun"])
        self.assertFalse(decision)
        self.assertEqual(("Allow", "t did not run: this was a dry run."), (decision.outcome, decision.for_model()))

    def test_a_decision_that_no_gate_gave_allows_nothing(self):
        self.assertFalse(Decision())
        self.assertFalse(Decision(outcome="Allow"))

    def test_what_json_would_change_is_not_sent(self):
        deep, loop = [], {}
        for _ in range(100):
            deep = [deep]
        loop["self"] = loop
        word = enum.Enum("Word", {"A": "a"}, type=str)
        cases = {
            "NaN": {"a": float("nan")},
            "infinity within a list": {"a": [float("-inf")]},
            "a name that is a number": {1: "a"},
            "a name that is null": {"a": {None: 1}},
            "half of a surrogate pair": {"a": "\ud800"},
            "bytes": {"a": b"x"},
            "a set": {"a": {1}},
            "an object": {"a": object()},
            "a word of an enumeration": {"a": word.A},
            "nesting beyond what is sent": {"a": deep},
            "a loop": loop,
            "a list in place of an object": [1],
            "nothing in place of an object": None,
        }
        with FakeGate(ALLOW) as fake:
            for name, arguments in cases.items():
                with self.subTest(name):
                    decision = Gate(fake.url).review("t", arguments)
                    self.assertFalse(decision)
                    self.assertEqual(("Block", "RequestNotSendable"), (decision.outcome, decision.reason))
            self.assertEqual("RequestNotSendable", Gate(fake.url).review(None, {}).reason)
            self.assertEqual([], fake.asked)

    def test_arguments_that_change_meanwhile_block(self):
        arguments = {"amount": 1}
        with FakeGate(ALLOW, on_ask=lambda _: arguments.update(amount=1000)) as fake:
            decision = Gate(fake.url).review("t", arguments)
        self.assertFalse(decision)
        self.assertEqual("ArgumentsChanged", decision.reason)

    def test_what_is_misconfigured_blocks_and_asks_nobody(self):
        with tempfile.TemporaryDirectory() as folder, FakeGate(ALLOW) as fake:
            empty = folder + "/empty"
            pathlib.Path(empty).write_text(" \n")
            cases = {
                "no URL": dict(url=""),
                "a URL without a scheme": dict(url="gate:8443"),
                "http to another machine": dict(url="http://gate.example"),
                "http to a name like loopback": dict(url="http://127.0.0.1.example"),
                "a URL that does not parse": dict(url="https://[::1"),
                "a port that is no number": dict(url="https://gate:http"),
                "a password in the URL": dict(url=fake.url.replace("//", "//u:p@")),
                "a query in the URL": dict(url=fake.url + "?timeout=9s"),
                "a token file that is missing": dict(token_file=empty + "x"),
                "a token file that is empty": dict(token_file=empty),
                "a token of two lines": dict(token="a\r\nX-Evil: b"),
                "an empty token": dict(token=""),
                "a time-out below nothing": dict(timeout=-1),
                "a time-out that is no number": dict(timeout=float("nan")),
                "a time-out longer than a call": dict(timeout=3600),
            }
            for name, options in cases.items():
                with self.subTest(name), mock.patch.dict(os.environ, GATEWRIGHT_URL=""):
                    decision = Gate(**{"url": fake.url, **options}).review("t", {})
                    self.assertFalse(decision)
                    self.assertEqual(("ClientMisconfigured", False), (decision.reason, decision.retryable))
            for name in (empty, empty + "x"):
                self.assertEqual("ClientMisconfigured", Gate("https://127.0.0.1:1", ca_file=name).review("t", {}).reason)
            self.assertEqual([], fake.asked)

    def test_a_fault_of_the_client_blocks(self):
        with FakeGate(ALLOW) as fake, mock.patch("gatewright._read", side_effect=KeyError("bug")):
            decision = Gate(fake.url).review("t", {})
        self.assertFalse(decision)
        self.assertEqual("ClientFailed", decision.reason)

    def test_the_token_file_is_read_for_each_call(self):
        with tempfile.TemporaryDirectory() as folder, FakeGate(ALLOW) as fake:
            file = pathlib.Path(folder, "token")
            with mock.patch.dict(os.environ, GATEWRIGHT_URL=fake.url, GATEWRIGHT_TOKEN_FILE=str(file)):
                gate = Gate()
            for token in ("first", "second\n"):
                file.write_text(token)
                self.assertTrue(gate.review("t", {}))
        self.assertEqual(["Bearer first", "Bearer second"], [a["headers"]["Authorization"] for a in fake.asked])

    def test_only_the_given_authority_is_trusted(self):
        with tempfile.TemporaryDirectory() as folder:
            pair = certificate(folder)
            with FakeGate(ALLOW, certificate=pair) as fake:
                self.assertTrue(Gate(fake.url, ca_file=pair[0]).review("t", {}))
                self.assertEqual("GateUnreachable", Gate(fake.url).review("t", {}).reason)
                self.assertEqual("GateUnreachable", Gate(fake.url.replace("127.0.0.1", "localhost"), ca_file=pair[0]).review("t", {}).reason)
        self.assertEqual(1, len(fake.asked))

    def test_a_connection_that_stays_refused_blocks_after_a_second_try(self):
        start = time.monotonic()
        decision = Gate(f"http://127.0.0.1:{free_port()}").review("t", {})
        self.assertEqual(("GateUnreachable", True, False), (decision.reason, decision.retryable, bool(decision)))
        self.assertGreaterEqual(time.monotonic() - start, RETRY_PAUSE)

    def test_a_gate_that_comes_back_is_reached_by_the_retry(self):
        # On a busy machine the gate may come back too late, hence several tries, each at a port of its own: a client
        # that does not retry is refused at all of them.
        for _ in range(10):
            port, fakes = free_port(), []
            late = threading.Timer(RETRY_PAUSE / 4, lambda: fakes.append(FakeGate(ALLOW, port=port).__enter__()))
            late.start()
            decision = Gate(f"http://127.0.0.1:{port}").review("t", {})
            late.join()
            for fake in fakes:
                fake.__exit__()
            if decision:
                return self.assertEqual([1], [len(fake.asked) for fake in fakes])
        self.fail("a gate that came back was never reached")


class Guard(unittest.TestCase):
    def test_reviews_the_arguments_by_name_and_tells_the_permit(self):
        def tool(order_id, amount=1, **more):
            return current.get().permit, order_id, amount, more

        with FakeGate(response("Allow", permit="a.b.c")) as fake:
            guarded = Gate(fake.url).guard(tool, tool="orders.refund", context=lambda: {"user_request": "Refund."})
            self.assertEqual(("a.b.c", "5521", 2, {"note": "x"}), guarded("5521", amount=2, note="x"))
            self.assertIsNone(current.get())
        request = fake.asked[0]["review"]["request"]
        self.assertEqual({"order_id": "5521", "amount": 2, "note": "x"}, request["arguments"])
        self.assertEqual({"userRequest": "Refund."}, request["context"])

    def test_coroutines_run_only_on_allow(self):
        ran = []

        async def tool(order_id):
            ran.append(order_id)
            return current.get().outcome

        with FakeGate(ALLOW) as fake:
            self.assertEqual("Allow", asyncio.run(Gate(fake.url).guard(tool, tool=TOOL)("1")))
        with FakeGate(response("Block", reason="No", message="Not you.")) as fake:
            with self.assertRaises(ToolCallDenied) as denied:
                asyncio.run(Gate(fake.url).guard(tool, tool=TOOL)("2"))
        self.assertEqual(("No", ["1"]), (denied.exception.decision.reason, ran))

    def test_refuses_what_it_could_not_show_to_the_gate(self):
        gate = Gate("http://127.0.0.1:1")
        for tool in (lambda *args: args, eval("lambda a, /: a")):
            with self.assertRaises(TypeError):
                gate.guard(tool, tool="t")
        with self.assertRaises(TypeError):
            gate.guard(lambda a: a, tool="t", context={"dry_run": True})(1)


if __name__ == "__main__":
    unittest.main()
