"""Asks the decider server by the Python SDK that others wrote for this wire, and checks what the SDK makes of the replies.

    client.py URL
"""

import json
import sys
import urllib.request

from typesafe_sdk import Choice, Noul, NoulCriteria, RetryPolicy, Score, TypeSafeClient, TypeSafeUnprocessableEntityError

STATE = {"user_request": "Please cancel order 1042.", "proposed_call": {"tool": "cancel_order", "arguments": {"order": "1042"}}}
QUESTIONS = {
    "named": Noul(instructions="Is it the order that the user named?", criteria=NoulCriteria(true="it is", false="it is another one")),
    "verdict": Choice(instructions="What should happen?", criteria={"allow": "run it", "confirm": None, "block": "refuse it"}),
    "severity": Score(instructions="How bad would a mistake be?", criteria=["harmless", "annoying", "terrible"]),
}


def check(name, holds):
    if not holds:
        sys.exit(f"not so: {name}")
    print(f"   {name}")


def raw(url):
    """The same request without the SDK."""
    questions = {
        "named": {"type": "noul", "instructions": "Is it the order that the user named?", "criteria": {"true": "it is", "false": "it is another one"}},
        "verdict": {"type": "choice", "instructions": "What should happen?", "criteria": {"allow": "run it", "confirm": None, "block": "refuse it"}},
        "severity": {"type": "score", "instructions": "How bad would a mistake be?", "criteria": ["harmless", "annoying", "terrible"]},
    }
    body = json.dumps({"state": STATE, "questions": questions}).encode()
    request = urllib.request.Request(url + "/v1/systemone", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def main(url):
    want = raw(url)
    with TypeSafeClient(api_key="local", base_url=url, model=want["model"], compression=False, timeout=60, retry=RetryPolicy(max_retries=0)) as client:
        listed = client.models.list().models
        check("the list of models is parsed", [m.name for m in listed] == [want["model"]])
        got = client.system_one(state=STATE, questions=QUESTIONS)
        check("the model names itself", got.model == want["model"])
        check("a yes-no is parsed", got.nouls["named"].noul == want["answers"]["named"]["noul"] and 0 <= got.nouls["named"].noul <= 1)
        verdict = got.choices["verdict"]
        check("a choice is parsed", verdict.probabilities == want["answers"]["verdict"]["probabilities"] and set(verdict.probabilities) == {"allow", "confirm", "block"})
        check("the choice is the likeliest option", verdict.choice == max(verdict.probabilities, key=verdict.probabilities.get))
        severity = got.scores["severity"]
        check("a score is parsed", severity.legend == {0: "harmless", 1: "annoying", 2: "terrible"} and abs(severity.score - sum(k * p for k, p in severity.probabilities.items())) < 1e-9)
        check("tokens are counted", got.usage.input_tokens == want["usage"]["input_tokens"] > 0 and got.usage.output_tokens == 3)
        try:
            client.system_one(state=STATE, questions={"bad": Choice(instructions="One option?", criteria={"only": None})})
        except TypeSafeUnprocessableEntityError:
            check("what cannot be asked is the SDK's own kind of error", True)
        else:
            check("what cannot be asked is the SDK's own kind of error", False)


if __name__ == "__main__":
    main(sys.argv[1])
