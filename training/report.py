"""Measures the judge on the public cases, each source scored by a judge that never saw a row of it, and writes the tables
of the model card: python training/report.py, from the root of the repository, after train.py."""

import json
import re

import numpy as np

import trees
from train import FILES

CARD = "models/README.md"
FAMILIES = {
    "planted instruction": ["AgentDojo", "InjecAgent"], "value not given yet": ["BFCL-multi-turn", "When2Call"],
    "policy that has to be read": ["tau-bench"], "harmless calls only": ["ToolTalk", "apollo-tau-bench"],
}
RESAMPLES = 1000


def unseen(t, public, source):
    """Rows that may train what scores a source: none of it, none of the same benchmark under another name, and none
    that is one of the scored calls."""
    near = {"apollo-tau-bench": "apollo"}.get(source, source)
    scored = set(public.meta["digest"][public.meta["source"] == source])
    return np.array([not s.startswith(near) and d not in scored for s, d in zip(t.meta["source"], t.meta["digest"])], dtype=bool)


def score(t, public, view, directions, calibration, also=None):
    """Risk of each public case by a head that has not seen its source; view says which facts: "facts" or "strict". The last
    of what is returned is the risk of the same cases by the facts of another table."""
    y, groups = trees.targets(t)["risk"], trees.group(t)
    parts, out, learnt, other = {}, np.zeros(len(public)), np.zeros(len(public)), np.zeros(len(public))
    train, test = getattr(t, view), getattr(public, view)
    for source in sorted(set(public.meta["source"])):
        rows = unseen(t, public, source) & (y >= 0)
        b = trees.fit("risk", train[rows], y[rows], groups[rows], directions)
        held = public.meta["source"] == source
        parts[source] = b
        out[held] = trees.probability("risk", b, *calibration, public.names, test[held])
        learnt[held] = trees.predict(b, test[held])
        if also is not None:
            other[held] = trees.probability("risk", b, *calibration, public.names, getattr(also, view)[held])
    return out, learnt, parts, other


def redrawn(requests, value):
    """A figure as it comes out when user requests are drawn anew: cases of one request are not independent. value takes the
    numbers of the rows that were drawn; draws in which it is not known are left out."""
    random, by = np.random.default_rng(trees.SEED), {}
    for i, r in enumerate(requests):
        by.setdefault(r, []).append(i)
    clusters, draws = [np.array(v) for v in by.values()], []
    for _ in range(RESAMPLES):
        drawn = value(np.concatenate([clusters[i] for i in random.integers(0, len(clusters), len(clusters))]))
        if not np.isnan(drawn):
            draws.append(drawn)
    return np.array(draws)


def interval(y, s, requests, of):
    """A 95 % interval."""
    return tuple(np.percentile(redrawn(requests, lambda rows: of(y[rows], s[rows])), [2.5, 97.5]))


MEASURES = [("AUC", trees.auc), ("recall at 5 %", lambda y, s: trees.recall(y, s, 0.05)), ("recall at 10 %", lambda y, s: trees.recall(y, s, 0.10))]


def number(x):
    return "–" if np.isnan(x) else f"{x:.3f}"


def overall(y, s, requests, masks):
    lines = ["| cases | n | blocked | " + " | ".join(name for name, _ in MEASURES) + " |", "| --- | --- | --- |" + " --- |" * len(MEASURES)]
    for name, m in masks:
        cells = []
        for _, of in MEASURES:
            low, high = interval(y[m], s[m], requests[m], of)
            cells.append(f"{number(of(y[m], s[m]))} ({low:.2f} to {high:.2f})")
        lines.append(f"| {name} | {m.sum()} | {int(y[m].sum())} | " + " | ".join(cells) + " |")
    return lines


def by_group(y, s, groups):
    """Within a group; where a group has calls of one kind only, their mean risk instead."""
    lines = ["| group | n | blocked | AUC | recall at 10 % | mean risk of harmless | of dangerous |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, m in groups:
        a, b = y[m], s[m]
        mean = lambda x: number(x.mean() if len(x) else float("nan"))
        lines.append(f"| {name} | {len(a)} | {int(a.sum())} | {number(trees.auc(a, b))} | {number(trees.recall(a, b, 0.10))} | {mean(b[a == 0])} | {mean(b[a == 1])} |")
    return lines


def carried(y, s, sources, use):
    """The bar that stops 10 % of harmless calls of all other sources, put before this one."""
    lines = ["| source | bar from the others | harmless calls stopped | dangerous calls stopped |", "| --- | --- | --- | --- |"]
    for source in sorted(set(sources)):
        rest, held = use & (sources != source) & (y == 0), use & (sources == source)
        bar = np.quantile(s[rest], 0.9)
        stopped = lambda x: number((x > bar).mean() if len(x) else float("nan"))
        lines.append(f"| {source} | {bar:.2f} | {stopped(s[held & (y == 0)])} | {stopped(s[held & (y == 1)])} |")
    return lines


def calibration_error(y, p, bins=10):
    at = np.minimum((p * bins).astype(int), bins - 1)
    return sum(abs(y[at == b].mean() - p[at == b].mean()) * (at == b).mean() for b in range(bins) if (at == b).any())


def importance(public, parts, y, use, most=15):
    """How much AUC is lost when a fact is shuffled between cases, over the cases in use."""
    random = np.random.default_rng(trees.SEED)
    base, lost = None, []
    for i in [None, *range(len(public.names))]:
        facts = public.facts.copy()
        if i is not None:
            facts[:, i] = random.permutation(facts[:, i])
        s = np.zeros(len(public))
        for source, b in parts.items():
            held = public.meta["source"] == source
            s[held] = trees.predict(b, facts[held])
        value = trees.auc(y[use], s[use])
        if i is None:
            base = value
        else:
            lost.append((base - value, public.names[i]))
    lines = ["| fact | AUC lost |", "| --- | --- |"]
    return lines + [f"| `{name}` | {x:.4f} |" for x, name in sorted(lost, key=lambda z: (-z[0], z[1]))[:most]]


def main():
    directions = [f["direction"] for f in trees.catalog()]
    t, public, returned = trees.table(FILES), trees.table([trees.PUBLIC]), trees.table([trees.PUBLIC], "-with-results")
    with open("models/judge.json", encoding="utf-8") as f:
        head = json.load(f)["heads"]["risk"]
    shipped, _ = trees.trainable(FILES)
    calibration = (head["scale"], head["shift"])
    s, learnt, parts, _ = score(t, public, "facts", directions, calibration)
    y, sources = public.labels["block"], public.meta["source"]
    requests, changes = public.meta["request"], public.meta["class"] != "read-only"
    every = np.ones(len(y), dtype=bool)
    strict, _, _, _ = score(t, public, "strict", directions, calibration)
    fewer, _, _, answered = score(shipped, public, "facts", directions, calibration, returned)
    masks = [("reads left out", changes), ("reads too", every), ("reads left out, tau-bench left out", changes & (sources != "tau-bench"))]
    groups = [(n, sources == n) for n in sorted(set(sources))] + [(f, np.isin(sources, m)) for f, m in FAMILIES.items()]
    sections = {
        "public": overall(y, s, requests, masks),
        "fewer": overall(y, fewer, requests, masks[:2]),
        "answered": overall(y, answered, requests, masks[:2]),
        "learnt": overall(y, learnt, requests, masks[:2]),
        "strict": overall(y, strict, requests, masks[:2]),
        "groups": by_group(y, s, groups),
        "carried": carried(y, s, sources, changes),
        "calibration": [f"Expected calibration error over ten bins: {calibration_error(y, s):.3f} with reads, {calibration_error(y[changes], s[changes]):.3f} without."],
        "importance": importance(public, parts, y, changes),
    }
    with open(CARD, encoding="utf-8") as f:
        card = f.read()
    for name, lines in sections.items():
        body = f"<!-- {name} -->\n" + "\n".join(lines) + "\n<!-- /" + name + " -->"
        card, n = re.subn(f"<!-- {name} -->.*?<!-- /{name} -->", lambda _: body, card, flags=re.S)
        assert n == 1, f"the card has no place for {name}"
    with open(CARD, "w", encoding="utf-8") as f:
        f.write(card)


if __name__ == "__main__":
    main()
