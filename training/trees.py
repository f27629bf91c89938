"""Labels, heads, calibration and numbers that training and report share. Everything is seeded, and trees grow on one
thread, so that the same data gives the same bytes; additive.py says how sums do."""

import csv
import hashlib
import json
import subprocess

import lightgbm as lgb
import numpy as np

import additive

FORMAT, FACTS_VERSION, NAME = "gatewright-judge/2", "f5", "embedded-v1"
SEED = 20261130
META = 14  # columns before the facts
LABELS = ["block", "mismatch", "exceeds", "ungrounded", "clarify", "inject"]

# Files of generated cases; of all but the first, most values were looked up.
MADE = ("train-synthetic", "train-lookups", "train-journeys", "train-chains")
LOOKED_UP = ["train-lookups.jsonl.gz", "train-journeys.jsonl.gz", "train-chains.jsonl.gz"]

# How much a source weighs in all, whatever its number of rows: an agent with many calls is one agent.
BENCHMARK_WEIGHT, SYNTHETIC_WEIGHT = 300.0, 4000.0

# A head of trees is a mean of three boosters that differ in the rows and facts they drew.
BAG, ROUNDS, LEAVES = 3, 60, 15

PARAMETERS = {
    "objective": "binary", "learning_rate": 0.1, "num_leaves": LEAVES, "min_child_samples": 40, "feature_fraction": 0.35,
    "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 5.0, "max_bin": 63, "use_missing": False, "verbose": -1,
    "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": SEED,
    "monotone_constraints_method": "intermediate",
}
# Heads that are sums and no trees. What trees learn beyond a sum is how the agents of training differ.
ADDITIVE = {"risk"}

# Heads that go by the strict facts, to which the agent's own calls are no reason for anything.
STRICT = {"ungrounded", "clarify", "inject", "differs"}

# Facts about who else asked for a value, which only the heads in ORDERED see: the others ask what the user's words reach,
# and where values stand.
ORDERS, ORDERED = ["strange_ordered", "strange_spoken_of", "strange_urged", "strange_beside_urge"], {"risk", "inject"}


class Table:
    """Rows of facts, plain and strict, with what is known about each call."""

    def __init__(self, columns, rows, strict):
        self.names = columns[META:]
        self.meta = {name: np.array([r[i] for r in rows], dtype=object) for i, name in enumerate(columns[: META - len(LABELS)])}
        at = META - len(LABELS)
        self.labels = {name: np.array([int(r[at + i]) for r in rows]) for i, name in enumerate(LABELS)}
        self.facts, self.strict = (np.array([[float(x) for x in r[META:]] for r in each]) for each in (rows, strict))

    def of(self, head):
        """The facts that a head learns from; what it does not see is 0 everywhere, so that no tree asks for it."""
        facts = self.strict if head in STRICT else self.facts
        return facts if head in ORDERED else np.where(np.isin(self.names, ORDERS), 0.0, facts)

    def __len__(self):
        return len(self.facts)


def catalog():
    out = subprocess.run(["go", "run", "./training/facts", "-catalog"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


PUBLIC = "testdata/evalsets/public.jsonl"


def trainable(files):
    """The training rows without those that are public cases too, and the ids of the latter: what scores is not trained on."""
    t, public = table(files), set(table([PUBLIC]).meta["digest"])
    scored = np.array([d in public for d in t.meta["digest"]], dtype=bool)
    excluded = sorted(t.meta["id"][scored])
    t.meta = {k: v[~scored] for k, v in t.meta.items()}
    t.labels = {k: v[~scored] for k, v in t.labels.items()}
    t.facts, t.strict = t.facts[~scored], t.strict[~scored]
    return t, excluded


def table(files, *flags):
    read = []
    for strict in [[], ["-strict"]]:
        out = subprocess.run(["go", "run", "./training/facts", *strict, *flags, *files], check=True, capture_output=True, text=True).stdout
        read.append(list(csv.reader(out.splitlines(keepends=True))))
    return Table(read[0][0], read[0][1:], read[1][1:])


def group(t):
    """The agent that a row comes from. Rows that were made from one benchmark's tools are one agent."""
    out = []
    for file, source in zip(t.meta["file"], t.meta["source"]):
        out.append("synthetic:" + source.split("-")[0] if file.startswith(MADE) else source)
    return np.array(out, dtype=object)


def targets(t):
    """What each head learns: 1, 0, or -1 where a row says nothing about it."""
    kind, source = t.meta["kind"], t.meta["source"]
    exceeds, block = t.labels["exceeds"], t.labels["block"]
    risk = block.copy()
    # Of these one has to read a page of policy to see what is wrong. Nothing that code computes shows it, so they would
    # only teach the judge to distrust an agent that is like this one.
    risk[(source == "tau-bench") & (kind == "asis") & (block == 1)] = -1
    # Which of several records was meant is not to be seen either, because what a result holds is not looked at.
    risk[kind == "lookup_other"] = -1
    # Nor is a value that was invented after a look-up: it looks like one that was found, and most of these were.
    risk[kind == "lookup_drop"] = -1
    unasked = np.where((exceeds == 1) & (kind != "extra"), 1, np.where(exceeds == 0, 0, -1))
    swapped = np.isin(kind, ["swap", "swapinj", "real_swap", "lookup_inj", "lookup_other"]) | ((kind == "datatool") & (block == 1))
    differs = np.where(swapped, 1, np.where(block == 0, 0, -1))
    out = {
        "risk": risk, "unasked": unasked, "exceeds": exceeds, "ungrounded": t.labels["ungrounded"],
        "clarify": t.labels["clarify"], "inject": t.labels["inject"], "differs": differs,
    }
    # To these heads a value that was looked up stands nowhere, right or wrong.
    for head in ("ungrounded", "clarify", "differs"):
        out[head] = np.where(np.isin(t.meta["file"], LOOKED_UP), -1, out[head])
    # Journeys and chains were made for calls that must not run; what reaches too far, or was not asked for, they label too
    # coarsely.
    for head in ("unasked", "exceeds"):
        out[head] = np.where(np.isin(t.meta["file"], ["train-journeys.jsonl.gz", "train-chains.jsonl.gz"]), -1, out[head])
    return out


def weights(groups):
    w = np.ones(len(groups))
    synthetic = np.array([g.startswith("synthetic:") for g in groups], dtype=bool)
    if synthetic.any():
        w[synthetic] = SYNTHETIC_WEIGHT / synthetic.sum()
    for g in sorted(set(groups[~synthetic])):
        w[groups == g] = BENCHMARK_WEIGHT / (groups == g).sum()
    return w


def fit(head, facts, y, groups, directions, bag=None):
    """The parts of a head; their outputs add up. Leaves and weights have six digits, in the parts themselves, so that they
    predict what is written."""
    if head in ADDITIVE:
        return [additive.fit(facts, y.astype(float), weights(groups), directions)]
    size = bag or BAG
    boosters = []
    for k in range(size):
        parameters = dict(PARAMETERS, monotone_constraints=directions, seed=SEED + k)
        data = lgb.Dataset(facts, y.astype(float), weight=weights(groups), free_raw_data=True)
        booster = lgb.train(parameters, data, ROUNDS)
        for i, info in enumerate(booster.dump_model()["tree_info"]):
            for leaf in range(info["num_leaves"]):
                booster.set_leaf_output(i, leaf, round(booster.get_leaf_output(i, leaf) / size, 6))
        boosters.append(booster)
    return boosters


def predict(parts, facts):
    return sum(p.predict(facts, raw_score=True) for p in parts)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def platt(raw, y, w):
    """Scale and shift of a logistic curve, by Newton's method with a little pull towards 1 and 0."""
    a, b, pull = 1.0, 0.0, 1.0
    for _ in range(50):
        p = sigmoid(a * raw + b)
        g = np.array([(w * (p - y) * raw).sum() + pull * (a - 1), (w * (p - y)).sum() + pull * b])
        s = w * p * (1 - p)
        h = np.array([[(s * raw * raw).sum() + pull, (s * raw).sum()], [(s * raw).sum(), s.sum() + pull]])
        a, b = np.array([a, b]) - np.linalg.solve(h, g)
    return max(float(a), 0.05), float(b)


def tree(node):
    """One tree as arrays; nodes in the order of a walk from the root, left first."""
    out = {"feature": [], "threshold": [], "left": [], "right": [], "leaf": []}

    def walk(n):
        if "leaf_value" in n:
            out["leaf"].append(n["leaf_value"])
            return -len(out["leaf"])
        assert n["decision_type"] == "<="
        i = len(out["feature"])
        out["feature"].append(n["split_feature"])
        out["threshold"].append(n["threshold"])
        out["left"].append(0)
        out["right"].append(0)
        out["left"][i] = walk(n["left_child"])
        out["right"][i] = walk(n["right_child"])
        return i

    walk(node)
    return out


# Where the agent's instructions hold conditions for what the tool does, the judge cannot know whether they are met: it
# then takes a call for no less risky than this, above most harmless calls and below the bars that policies set.
DOUBT = {"risk": 0.3}
CONDITIONS = "conditions"


def probability(head, parts, scale, shift, names, facts):
    """What the judge says: the curve over the parts, and the doubt."""
    p = sigmoid(scale * predict(parts, facts) + shift)
    return np.where(facts[:, names.index(CONDITIONS)] >= 1, np.maximum(p, DOUBT.get(head, 0.0)), p)


def learnt(head, parts):
    """The members of a head in the model file that hold what was learnt."""
    if head in ADDITIVE:
        return {"base": parts[0].base, "weights": parts[0].weights.tolist()}
    return {"trees": [tree(x["tree_structure"]) for b in parts for x in b.dump_model()["tree_info"]]}


def export(heads, names, training):
    """The bytes of a model file. heads: name -> (parts, scale, shift)."""
    body = {
        "format": FORMAT, "name": NAME, "facts": FACTS_VERSION, "names": names, "training": training,
        "heads": {
            name: {"scale": scale, "shift": shift, "doubt": DOUBT.get(name, 0.0), "strict": name in STRICT, **learnt(name, parts)}
            for name, (parts, scale, shift) in heads.items()
        },
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def auc(y, s):
    """Area under the curve by ranks, ties shared."""
    order = np.argsort(s, kind="stable")
    _, inverse, counts = np.unique(s[order], return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    ranks = np.empty(len(s))
    ranks[order] = ((upper - counts + 1 + upper) / 2.0)[inverse]
    n1 = int((y == 1).sum())
    n0 = len(y) - n1
    if n1 == 0 or n0 == 0:
        return float("nan")
    return float((ranks[y == 1].sum() - n1 * (n1 + 1) / 2.0) / (n1 * n0))


def recall(y, s, stopped):
    """Share of dangerous calls stopped by the lowest bar that stops at most this share of harmless calls."""
    harmless = np.sort(s[y == 0])
    if len(harmless) == 0 or (y == 1).sum() == 0:
        return float("nan")
    bar = harmless[min(int(np.floor(len(harmless) * (1 - stopped))), len(harmless) - 1)]
    return float((s[y == 1] > bar).mean())
