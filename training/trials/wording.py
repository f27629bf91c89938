"""What the reader reads: a call in words, and where each of its values stands, so that it can spend itself on meaning."""

import gzip
import json
import os
import re

# Tokens that each part may take; of what is longer, the beginning and the end are kept.
TOOL, ARGUMENTS, LATEST, EARLIER, CALLS, PASSAGE = 40, 96, 72, 48, 32, 72
START, SEPARATOR = 101, 102
CALL = "[tool call] "


def cases(path):
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def of(table, files):
    """The cases that the rows of a table of facts were computed from, in its order."""
    by = {(os.path.basename(f), c["id"]): c for f in files for c in cases(f)}
    return [by[key] for key in zip(table.meta["file"], table.meta["id"])]


def words(text):
    """Letters and digits in lower case, one space between words and around all, so that `in` compares whole words."""
    return " " + " ".join(re.findall(r"\w+", text.casefold().replace("_", " "))) + " "


def spaced(name):
    return re.sub(r"[._\-/]+", " ", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)).lower()


def values(arguments, key=""):
    """Each value with the name that it has."""
    if isinstance(arguments, dict):
        return [x for k, v in arguments.items() for x in values(v, k)]
    if isinstance(arguments, list):
        return [x for v in arguments for x in values(v, key)]
    return [(key, arguments)]


def turns(case):
    """What the user said, the latest last."""
    said = [m["content"] for m in case.get("conversation") or [] if m["role"] == "user"]
    request = case.get("userRequest") or ""
    return said if said and said[-1] == request else [*said, request]


class Said:
    """Who said what before a call, as words."""

    def __init__(self, case):
        talk = case.get("conversation") or []
        by = lambda role, call: [m["content"] for m in talk if m["role"] == role and m["content"].startswith(CALL) == call]
        self.user, self.results = words(" ".join(turns(case))), words(" ".join(by("tool", False)))
        self.called, self.agent = words(" ".join(by("assistant", True))), words(" ".join(by("assistant", False)))
        self.facts = words(json.dumps(case.get("facts") or {}))
        self.each = set(self.user.split())

    def origin(self, value):
        """Where a value stands, in words; nothing for what says nothing."""
        if value is None or isinstance(value, bool) or not words(str(value)).strip():
            return ""
        text = words(f"{value:g}" if isinstance(value, float) else str(value))
        for known, where in ((self.user, "said by the user"), (self.facts, "a known fact")):
            if text in known:
                return f" ({where})"
        of = text.split()
        if len(of) > 3 and sum(w in self.each for w in of) >= 0.6 * len(of):
            return " (mostly said by the user)"
        for known, where in ((self.called, "used before"), (self.agent, "proposed by the agent"), (self.results, "found in a result")):
            if text in known:
                return f" ({where})"
        return " (nowhere)"


def passage(case, around=250):
    """The piece of the results about a value of the call, the longest first; else the start of the last result."""
    results = [m["content"] for m in case.get("conversation") or [] if m["role"] == "tool"]
    wanted = sorted({str(v).lower() for _, v in values(case.get("arguments") or {}) if len(str(v)) > 2}, key=lambda v: (-len(v), v))
    for result in reversed(results):
        for v in wanted:
            at = result.lower().find(v[:60])
            if at >= 0:
                return result[max(0, at - around) : at + around]
    return results[-1][: 2 * around] if results else ""


def cut(ids, most):
    return ids if len(ids) <= most else ids[: most - most // 2] + ids[len(ids) - most // 2 :]


def tokens(case, tokenizer):
    """The ids that the reader gets: the call and its values; what the user said; what the agent called and read."""
    part = lambda text, most: cut(tokenizer.encode(text, add_special_tokens=False).ids, most)
    tool, said, user = case["tool"], Said(case), turns(case)
    talk = case.get("conversation") or []
    arguments = "; ".join(f"{spaced(k)}: {str(v)[:120]}{said.origin(v)}" for k, v in values(case.get("arguments") or {}))
    spoken = [m["content"] for m in talk if m["role"] == "assistant" and not m["content"].startswith(CALL)]
    earlier = " ".join(t[-200:] for t in user[:-1][-3:]) + (" The agent: " + spoken[-1][-200:] if spoken else "")
    called = " ".join(spaced(m["content"][len(CALL) :][:60]) for m in talk if m["content"].startswith(CALL))[-240:]
    out = [START] + part(spaced(tool["name"]) + ". " + (tool.get("description") or "")[:300], TOOL)
    out += part(arguments or "no values", ARGUMENTS) + [SEPARATOR] + part(user[-1], LATEST) + [SEPARATOR]
    return out + part(earlier, EARLIER) + [SEPARATOR] + part(called, CALLS) + [SEPARATOR] + part(passage(case), PASSAGE) + [SEPARATOR]
