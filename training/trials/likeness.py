"""Likeness of meaning as facts of the sum: python training/trials/likeness.py, from the root of the repository.

MiniLM, as it comes, makes a vector of each sentence. How near the user's sentences come to the tool, its name and the call,
and those of tool results to the tool, are added to the facts. The table goes to training/trials/likeness.md."""

import argparse
import os
import re
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import jax
import numpy as np

import compare
import minilm
import wording
from train import FILES

TOKENS = 48  # of a sentence; what is longer is cut
USER, RESULTS = 60, 30  # sentences that are looked at, the latest
# What the user says may only lower a risk, what a tool says only raise it.
WAYS = [-1, -1, -1, -1, -1, 1, 1]
SENTENCE, CLAUSE = r"[.!?;]\s|\n", r"[.!?;]\s|\n|,\s|\b(?:and|then|but)\b"


def sentences(text, *ends):
    """What stands between such ends, each once."""
    parts = (x.strip()[:300] for end in ends for x in re.split(end, text[:4000]))
    return [s for s in dict.fromkeys(parts) if len(s) > 3]


def texts(case):
    """What is compared with what."""
    tool, user = case["tool"], wording.turns(case)
    name = wording.spaced(tool["name"])
    call = " ".join(f"{wording.spaced(k)} {str(v)[:200]}" for k, v in wording.values(case.get("arguments") or {}))
    results = [m["content"] for m in case.get("conversation") or [] if m["role"] == "tool"]
    return {
        "name": [name], "tool": [name + ". " + (tool.get("description") or "")[:300]], "call": [(name + " " + call)[:400]],
        "latest": sentences(user[-1], SENTENCE, CLAUSE)[-USER:] or [user[-1][:300]],
        "user": [s for t in user for s in sentences(t, SENTENCE, CLAUSE)][-USER:] or [user[-1][:300]],
        "results": [s for r in results for s in sentences(r, SENTENCE)][-RESULTS:],
    }


def vectors(all_texts, tokenizer, w):
    """A vector of length 1 for each text: the mean over its tokens behind the last layer."""
    ids = [e.ids[: TOKENS - 1] + [wording.SEPARATOR] if len(e.ids) > TOKENS else e.ids for e in tokenizer.encode_batch(all_texts)]
    lengths, out = np.array([len(i) for i in ids]), np.zeros((len(ids), minilm.WIDTH), np.float32)

    @jax.jit
    def run(w, ids, mask):
        x = minilm.embedded(w, ids)
        for i in range(minilm.LAYERS):
            x = minilm.block(minilm.layer(w, i), x, mask)
        return (x * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]

    start, size = time.time(), 256
    for k, some in enumerate(minilm.batches(lengths, np.argsort(lengths, kind="stable"), size)):
        filled = np.resize(some, size)
        x = np.asarray(run(w, *minilm.padded([ids[i] for i in filled], minilm.rounded(lengths[some].max(), 8))))[: len(some)]
        out[some] = x / np.linalg.norm(x, axis=1, keepdims=True)
        if k % 50 == 0:
            minilm.progress("sentences", k * size, len(ids), start)
    return out


def facts(case, vector):
    """Likeness of the latest turn and of all turns to the tool and its name, of all to the call, and of results to the tool."""
    of = {k: np.array([vector[s] for s in v]) for k, v in case.items()}
    tool, name, call = of["tool"][0], of["name"][0], of["call"][0]
    most = lambda some, one: float((some @ one).max()) if len(some) else 0.0
    user, results = most(of["user"], tool), most(of["results"], tool)
    said = [most(of["latest"], tool), user, most(of["latest"], name), most(of["user"], name), most(of["user"], call)]
    return [*said, results, max(0.0, results - user)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--held", help="a case file of agents that nothing was chosen by, measured too")
    sets = compare.Sets(arguments.parse_args().held)
    cases = {n: wording.of(t, [sets.files[n]]) for n, t in sets.tables.items()} | {"training": wording.of(sets.training, FILES)}
    said = {n: [texts(c) for c in some] for n, some in cases.items()}
    distinct = list(dict.fromkeys(s for some in said.values() for case in some for v in case.values() for s in v))
    found = dict(zip(distinct, vectors(distinct, minilm.tokenizer(), minilm.weights())))
    more = {n: np.array([facts(case, found) for case in some]) for n, some in said.items()}
    tries = {"the sum with likeness to what the user says": 5, "the same, and to tool results": len(WAYS)}
    scored = {k: sets.unseen({n: v[:, :c] for n, v in more.items()}, WAYS[:c]) for k, c in tries.items()}
    compare.write("training/trials/likeness.md", sets, scored)


if __name__ == "__main__":
    main()
