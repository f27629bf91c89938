"""What a trial is measured by: public cases, the calls of the standard set that rules leave open, and a held-out file, each
scored by the sum, by the trial, and by both stacked, with what separates them from the sum."""

import json

import numpy as np

import additive
import report
import trees
from train import FILES

MODEL = "models/judge.json"
STANDARD = "testdata/evalsets/standard-240.jsonl"
SUM = "the sum"
# What the rules of the standard set settle, by the end of the kind.
SETTLED = ("path", "unknown", "scope", "host")


class Sets:
    """Tables of facts, the rows of each that count, and what the sum says where it has not seen the source."""

    def __init__(self, held=None):
        self.files = {"public": trees.PUBLIC, "standard": STANDARD} | ({"held-out": held} if held else {})
        self.tables = {n: trees.table([f]) for n, f in self.files.items()}
        self.training, self.excluded = trees.trainable(FILES)
        self.masks = {n: self.counted(n) for n in self.files}
        with open(MODEL, encoding="utf-8") as f:
            head = json.load(f)["heads"]["risk"]
        self.curve = head["scale"], head["shift"]
        self.directions = [f["direction"] for f in trees.catalog()]
        self.sum = self.unseen({}, [])

    def counted(self, name):
        t = self.tables[name]
        changes = t.meta["class"] != "read-only"
        if name == "standard":
            changes &= np.array([not any(s in k for s in SETTLED) for k in t.meta["kind"]])
        # Of R-Judge's calls the judge knows nothing; the model card says why they are left out.
        return changes & (t.meta["source"] != "R-Judge")

    def unseen(self, more, ways):
        """Log odds of risk by a sum over the facts and more of them: of public cases by one that has seen none of their
        source, of the others by one that has seen no public case. more: name of a set, or "training", to columns."""
        wide = lambda n, t: np.hstack([t.of("risk"), more[n]]) if more else t.of("risk")
        t, y, groups = self.training, trees.targets(self.training)["risk"], trees.group(self.training)
        facts, directions = wide("training", t), self.directions + ways
        fit = lambda rows: trees.fit("risk", facts[rows], y[rows], groups[rows], directions)[0]
        out = {n: np.zeros(len(each)) for n, each in self.tables.items()}
        public = self.tables["public"]
        for source in sorted(set(public.meta["source"])):
            held = public.meta["source"] == source
            out["public"][held] = fit(report.unseen(t, public, source) & (y >= 0)).predict(wide("public", public)[held])
        whole = fit(y >= 0)
        for n, each in self.tables.items():
            out[n] = self.curve[0] * (out[n] if n == "public" else whole.predict(wide(n, each))) + self.curve[1]
        return out

    def doubted(self, odds):
        """Log odds of each set with the judge's doubt about conditions that it cannot read: a rule, not learnt, so it is put
        on whatever is compared."""
        floor = np.log(trees.DOUBT["risk"] / (1 - trees.DOUBT["risk"]))
        open_to_doubt = {n: t.facts[:, t.names.index(trees.CONDITIONS)] >= 1 for n, t in self.tables.items()}
        return {n: np.where(open_to_doubt[n], np.maximum(odds[n], floor), odds[n]) for n in self.tables}


def stacked(sets, trial):
    """A logistic of both. Its weights come from public cases of other sources, each scored unseen; for the other sets from
    all public cases. No weight may be negative."""
    both = {n: np.stack([sets.sum[n], trial[n]], 1) for n in sets.tables}
    public = sets.tables["public"]
    source, y, use = public.meta["source"], public.labels["block"].astype(float), sets.masks["public"]
    fit = lambda rows: additive.fit(both["public"][rows], y[rows], np.ones(rows.sum()), [1, 1])
    out = {}
    for n in sets.tables:
        if n == "public":
            out[n] = np.zeros(len(y))
            for s in sorted(set(source)):
                out[n][source == s] = fit(use & (source != s)).predict(both[n][source == s])
        else:
            out[n] = fit(use).predict(both[n])
    return out


def difference(y, a, b, requests, of):
    """How much more b has than a: the 95 % interval by drawing user requests anew, and the share of draws with more."""
    draws = report.redrawn(requests, lambda rows: of(y[rows], b[rows]) - of(y[rows], a[rows]))
    return np.percentile(draws, 2.5), np.percentile(draws, 97.5), float((draws > 0).mean())


def lines(sets, name, scored):
    """Rows of a table: each way to score, each measure, what separates it from the sum."""
    t, m = sets.tables[name], sets.masks[name]
    y, requests, base = t.labels["block"][m], t.meta["request"][m], scored[SUM][name][m]
    for label, s in scored.items():
        cells = []
        for _, of in report.MEASURES:
            value = f"{of(y, s[name][m]):.3f}"
            if label != SUM:
                low, high, more = difference(y, base, s[name][m], requests, of)
                value += f" ({low:+.3f} to {high:+.3f}, {more:.0%})"
            cells.append(value)
        yield f"| {name} | {m.sum()} | {y.sum()} | {label} | " + " | ".join(cells) + " |"


def write(path, sets, scored):
    """Writes and prints the table. scored: what a way to score is called, to a score for each case of each set."""
    head = ["| cases | n | dangerous | scored by | " + " | ".join(n for n, _ in report.MEASURES) + " |", "| --- |" + " --- |" * 6]
    scored = {k: sets.doubted(s) for k, s in ({SUM: sets.sum} | scored).items()}
    body = [line for n in sets.tables for line in lines(sets, n, scored)]
    text = "\n".join(head + body) + "\n"
    print(text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
