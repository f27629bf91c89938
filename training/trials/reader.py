"""A reader over frozen layers against the sum: python training/trials/reader.py, from the root of the repository.

The first layers of MiniLM run once over each generated case; copies of the last two, and a head, are trained on what they
gave. No benchmark trains the reader, so that it has seen none. The table goes to training/trials/reader.md."""

import argparse
import json
import os
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import jax
import jax.numpy as jnp
import numpy as np

import compare
import minilm
import report
import trees
import wording
from train import FILES

FROZEN, TRAINED = 4, (4, 5)
EPOCHS, BATCH, RATE, WARM, DECAY, CLIP = 3, 32, 3e-4, 100, 0.01, 1.0
BETAS, TINY = (0.9, 0.98), 1e-8
WEIGHTS = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0], np.float32)  # of the labels, in the order of trees.LABELS
STORE = ".cache/trials/reader.npz"  # what the last run said


def generated(t, public):
    """Rows that train the reader: made ones, none that report.unseen keeps from what scores any source of the public cases."""
    rows = np.array([f.startswith(trees.MADE) for f in t.meta["file"]])
    for source in sorted(set(public.meta["source"])):
        rows &= report.unseen(t, public, source)
    return rows & (labels(t) >= 0).any(1)


def about(sets):
    """What trained the reader, and what of the generated cases is a public one and was left out; trials_test.go checks both."""
    made = [f for f in FILES if os.path.basename(f).startswith(trees.MADE)]
    ids = {c["id"] for f in made for c in wording.cases(f)}
    return {
        "rows": int(generated(sets.training, sets.tables["public"]).sum()), "excluded": [i for i in sets.excluded if i in ids],
        "data": {os.path.basename(f): trees.digest(f) for f in made},
    }


def labels(t):
    return np.stack([t.labels[name] for name in trees.LABELS], 1)


class Frozen:
    """What the frozen layers give for each token of each case, in half precision."""

    def __init__(self, rows, w):
        self.lengths = np.array([len(r) for r in rows])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.out = np.zeros((self.starts[-1], minilm.WIDTH), np.float16)
        run, start, done = jax.jit(self.layers), time.time(), 0
        for k, some in enumerate(minilm.batches(self.lengths, np.argsort(self.lengths, kind="stable"), 2 * BATCH)):
            ids, mask = minilm.padded([rows[i] for i in some], minilm.rounded(self.lengths[some].max()))
            x = np.asarray(run(w, ids, mask))
            for r, i in enumerate(some):
                self.out[self.starts[i] : self.starts[i + 1]] = x[r, : self.lengths[i]]
            done += len(some)
            if k % 20 == 0:
                minilm.progress("frozen layers", done, len(rows), start)

    @staticmethod
    def layers(w, ids, mask):
        x = minilm.embedded(w, ids)
        for i in range(FROZEN):
            x = minilm.block(minilm.layer(w, i), x, mask)
        return x

    def batch(self, some, size):
        """Activations and mask of some rows, filled up to a fixed number of rows, so that few shapes are compiled."""
        length = minilm.rounded(self.lengths[some].max())
        x, mask = np.zeros((size, length, minilm.WIDTH), np.float16), np.zeros((size, length), np.float32)
        mask[:, 0] = 1
        for r, i in enumerate(some):
            n = self.lengths[i]
            x[r, :n], mask[r, :n] = self.out[self.starts[i] : self.starts[i] + n], 1
        return x, mask


def beginning(w):
    """What is trained: the last layers and the pooler as they come, and an output for each label."""
    p = {f"{i}.{k}": v for i in TRAINED for k, v in minilm.layer(w, i).items()}
    p |= {k: w[k] for k in ("pooler.dense.weight", "pooler.dense.bias")}
    out = np.random.default_rng(trees.SEED).normal(0, 0.02, (len(trees.LABELS), minilm.WIDTH)).astype(np.float32)
    return p | {"out.weight": jnp.asarray(out), "out.bias": jnp.zeros(len(trees.LABELS))}


def logits(p, x, mask):
    x = x.astype(jnp.float32)
    for i in TRAINED:
        part = {k[2:]: v for k, v in p.items() if k.startswith(f"{i}.")}
        x = minilm.block(part, x, mask, 1 if i == TRAINED[-1] else None)
    return minilm.linear(jnp.tanh(minilm.linear(x[:, 0], p, "pooler.dense")), p, "out")


def loss(p, x, mask, y):
    """Mean over the labels that are known."""
    z, known = logits(p, x, mask), (y >= 0) * WEIGHTS
    each = jax.nn.softplus(z) - z * jnp.maximum(y, 0)
    return (each * known).sum() / jnp.maximum(known.sum(), 1.0)


@jax.jit
def update(p, first, second, n, rate, x, mask, y):
    """One step of AdamW, the gradient held to a length of at most CLIP."""
    value, g = jax.value_and_grad(loss)(p, x, mask, y)
    length = jnp.sqrt(sum((v**2).sum() for v in g.values()))
    g = {k: v * jnp.minimum(1.0, CLIP / (length + TINY)) for k, v in g.items()}
    first = {k: BETAS[0] * first[k] + (1 - BETAS[0]) * g[k] for k in p}
    second = {k: BETAS[1] * second[k] + (1 - BETAS[1]) * g[k] ** 2 for k in p}
    move = lambda k: first[k] / (1 - BETAS[0] ** n) / (jnp.sqrt(second[k] / (1 - BETAS[1] ** n)) + TINY)
    pull = lambda k: DECAY * p[k] if p[k].ndim > 1 else 0.0
    return {k: p[k] - rate * (move(k) + pull(k)) for k in p}, first, second, value


def trained(frozen, y, w, after):
    """The weights after all epochs; after(weights, epoch) is called behind each."""
    p, random = beginning(w), np.random.default_rng(trees.SEED)
    first = second = {k: jnp.zeros_like(v) for k, v in p.items()}
    whole = -(-len(y) // minilm.WINDOW) + len(y) // BATCH  # no more than so many batches an epoch
    start, n, seen = time.time(), 0, []
    for epoch in range(EPOCHS):
        todo = minilm.batches(frozen.lengths, random.permutation(len(y)), BATCH)
        random.shuffle(todo)
        for some in todo:
            n += 1
            rate = RATE * min(1.0, n / WARM) * max(0.0, 1 - n / (whole * EPOCHS))
            target = np.full((BATCH, y.shape[1]), -1)
            target[: len(some)] = y[some]
            p, first, second, value = update(p, first, second, float(n), rate, *frozen.batch(some, BATCH), target)
            seen.append(value)
            if n % 50 == 0:
                minilm.progress(f"step {n}, loss {np.mean([float(v) for v in seen[-50:]]):.4f}, rows", n * BATCH, EPOCHS * len(y), start)
        after(p, epoch)
    return p


def scores(p, frozen):
    run, out = jax.jit(logits), np.zeros((len(frozen.lengths), len(trees.LABELS)))
    for some in minilm.batches(frozen.lengths, np.arange(len(frozen.lengths)), BATCH):
        out[some] = np.asarray(run(p, *frozen.batch(some, BATCH)))[: len(some)]
    return out


def read(t, files, tokenizer, keep=None):
    """Token ids of the rows of a table, or of those kept, in its order."""
    return [wording.tokens(c, tokenizer) for i, c in enumerate(wording.of(t, files)) if keep is None or keep[i]]


def run(sets):
    """Log odds of each label for each case of each set, by a reader trained on generated cases."""
    t, public, tokenizer, w = sets.training, sets.tables["public"], minilm.tokenizer(), minilm.weights()
    keep = generated(t, public)
    assert not set(t.meta["digest"][keep]) & set(public.meta["digest"]), "a public case is among what trains the reader"
    print(f"{keep.sum()} rows train the reader", file=sys.stderr, flush=True)
    scored = {n: Frozen(read(each, [sets.files[n]], tokenizer), w) for n, each in sets.tables.items()}

    def after(p, epoch):
        for n, each in sets.tables.items():
            m = sets.masks[n]
            value = trees.auc(each.labels["block"][m], scores(p, scored[n])[m, 0])
            print(f"after epoch {epoch + 1}, {n}: AUC {value:.3f}", file=sys.stderr, flush=True)

    p = trained(Frozen(read(t, FILES, tokenizer, keep), w), labels(t)[keep], w, after)
    return {n: scores(p, each) for n, each in scored.items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--held", help="a case file of agents that nothing was chosen by, measured too")
    arguments.add_argument("--kept", action="store_true", help="do not train: make the table from what the last run said")
    where = arguments.parse_args()
    sets = compare.Sets(where.held)
    if not where.kept:
        z = run(sets)
        os.makedirs(os.path.dirname(STORE), exist_ok=True)
        np.savez(STORE, **z)
    z = np.load(STORE)
    alone = {n: z[n][:, 0] for n in sets.tables}
    with open("training/trials/reader.json", "w", encoding="utf-8") as f:
        f.write(json.dumps(about(sets), indent=2, sort_keys=True) + "\n")
    compare.write("training/trials/reader.md", sets, {"the reader": alone, "both": compare.stacked(sets, alone)})


if __name__ == "__main__":
    main()
