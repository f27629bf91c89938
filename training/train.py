"""Trains the embedded judge: python training/train.py, from the root of the repository.

Writes models/judge.json, and testdata for the Go evaluator: facts of some calls with what Python predicts for them."""

import argparse
import hashlib
import json
import sys

import numpy as np

import trees

FILES = [f"training/data/train-{name}.jsonl.gz" for name in ("synthetic", "benchmarks", "lookups", "journeys", "chains")]
FIXTURE_ROWS = 64


def calibrate(head, t, y, groups, directions):
    """Fits the curve on agents that the parts behind each prediction have not seen."""
    raw, known = np.zeros(len(t)), y >= 0
    scored = np.zeros(len(t), dtype=bool)
    for g in sorted(set(groups)):
        held, rest = (groups == g) & known, (groups != g) & known
        if not held.any() or len(set(y[rest])) < 2:
            continue
        parts = trees.fit(head, t.of(head)[rest], y[rest], groups[rest], directions, bag=1)
        raw[held] = trees.predict(parts, t.of(head)[held])
        scored |= held
    w = trees.weights(groups)
    return trees.platt(raw[scored], y[scored], w[scored])


def train(t, directions):
    groups, heads = trees.group(t), {}
    for head, y in trees.targets(t).items():
        known = y >= 0
        parts = trees.fit(head, t.of(head)[known], y[known], groups[known], directions)
        scale, shift = calibrate(head, t, y, groups, directions)
        heads[head] = (parts, round(scale, 6), round(shift, 6))
        print(f"{head}: {known.sum()} rows, {int((y == 1).sum())} faults, scale {scale:.3f}, shift {shift:.3f}", file=sys.stderr)
    return heads


def fixture(t, heads):
    """Facts of calls spread over the table, with the predictions that Go has to reproduce."""
    rows = np.linspace(0, len(t) - 1, FIXTURE_ROWS).astype(int)
    facts = t.facts[rows]
    want = {name: trees.probability(name, b, scale, shift, t.names, facts).tolist() for name, (b, scale, shift) in heads.items()}
    return json.dumps({"facts": facts.tolist(), "want": want}, separators=(",", ":")) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", default="models/judge.json")
    arguments.add_argument("--fixture", default="internal/inference/judge/testdata/predictions.json")
    where = arguments.parse_args()
    facts = trees.catalog()
    t, excluded = trees.trainable(FILES)
    heads = train(t, [f["direction"] for f in facts])
    training = {"seed": trees.SEED, "rows": len(t), "excluded": excluded, "data": {f.split("/")[-1]: trees.digest(f) for f in FILES}}
    data = trees.export(heads, [f["name"] for f in facts], training)
    with open(where.model, "wb") as f:
        f.write(data)
    with open(where.model + ".sha256", "w") as f:
        f.write(hashlib.sha256(data).hexdigest() + "\n")
    with open(where.fixture, "w") as f:
        f.write(fixture(t, heads))
    print(hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
