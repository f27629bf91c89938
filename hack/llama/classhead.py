"""Makes two small encoders out of MiniLM: one with a class head and one without.

The head's weights are random with a fixed seed. The file is a fixture that exercises loading and reading; its answers
mean nothing. The bytes are the same on each run, so the result can be pinned.

usage: classhead.py MODEL_DIRECTORY WITH_HEAD.gguf WITHOUT_HEAD.gguf
"""

import array
import json
import random
import struct
import sys
from pathlib import Path

# Built-in questions with yes or no as their answer, in the order of the head's outputs.
LABELS = [
    "asked", "matches_request", "exceeds_scope", "declined", "same_item", "deletes_data", "moves_money", "leaves_the_system",
]

NAMES = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


# Numbers of the file format: types of values, of tensors and of tokens.
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
F32, F16 = 0, 1
NORMAL, CONTROL, UNUSED = 1, 3, 5
POOLING_MEAN, POOLING_RANK = 1, 4
ALIGNMENT = 32


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    if kind == STRING:
        return text(value)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)


class Writer:
    """Collects values and tensors and writes them as GGUF version 3."""

    def __init__(self):
        self.values, self.tensors = [], []

    def add(self, key, kind, value):
        self.values.append(text(key) + struct.pack("<I", kind) + scalar(kind, value))

    def add_list(self, key, kind, items):
        head = text(key) + struct.pack("<IIQ", ARRAY, kind, len(items))
        self.values.append(head + b"".join(scalar(kind, item) for item in items))

    def add_tensor(self, name, shape, kind, raw):
        self.tensors.append((name, shape, kind, raw))

    def write(self, target):
        head = struct.pack("<IIQQ", 0x46554747, 3, len(self.tensors), len(self.values)) + b"".join(self.values)
        offset = 0
        for name, shape, kind, raw in self.tensors:
            head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
            offset += len(padded(raw))
        with target.open("wb") as out:
            out.write(padded(head))
            for *_, raw in self.tensors:
                out.write(padded(raw))


def padded(raw):
    return raw + bytes(-len(raw) % ALIGNMENT)


def tensors(path):
    """Reads a safetensors file: a length, a JSON header, and the numbers."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    data = memoryview(raw)[8 + length :]
    for name in sorted(header):
        if name != "__metadata__" and header[name]["dtype"] == "F32":
            begin, end = header[name]["data_offsets"]
            yield name, header[name]["shape"], data[begin:end]


def halved(raw):
    """Turns 32-bit numbers into 16-bit ones."""
    numbers = array.array("f")
    numbers.frombytes(raw)
    return struct.pack(f"<{len(numbers)}e", *numbers)


def gguf_name(name):
    if name in NAMES:
        return NAMES[name]
    if name.startswith("encoder.layer."):
        _, _, number, rest = name.split(".", 3)
        part, kind = rest.rsplit(".", 1)
        return f"blk.{number}.{NAMES[part]}.{kind}"
    part, _, kind = name.rpartition(".")
    return f"{NAMES[part]}.{kind}" if part in NAMES else None


def vocabulary(directory):
    """Writes the beginning of a word with the mark that the engine's tokenizer looks for, and its rest without."""
    for word in (directory / "vocab.txt").read_text(encoding="utf-8").splitlines():
        if word.startswith("[") and word.endswith("]"):
            kind = UNUSED if word.startswith("[unused") else CONTROL
            yield word, kind
        elif word.startswith("##"):
            yield word[2:], NORMAL
        else:
            yield "\u2581" + word, NORMAL


def describe(w, config, head):
    w.add("general.architecture", STRING, "bert")
    w.add("general.name", STRING, "MiniLM L6, class head of random weights" if head else "MiniLM L6")
    for key, value in {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "block_count": config["num_hidden_layers"],
        "attention.head_count": config["num_attention_heads"],
        "pooling_type": POOLING_RANK if head else POOLING_MEAN,
    }.items():
        w.add("bert." + key, UINT32, value)
    w.add("bert.attention.layer_norm_epsilon", FLOAT32, config["layer_norm_eps"])
    w.add("bert.attention.causal", BOOL, False)
    if head:
        w.add_list("bert.classifier.output_labels", STRING, LABELS)


def tokenizer(w, config, directory):
    words, kinds = zip(*vocabulary(directory))
    w.add("tokenizer.ggml.model", STRING, "bert")
    w.add("tokenizer.ggml.pre", STRING, "default")
    w.add_list("tokenizer.ggml.tokens", STRING, words)
    w.add_list("tokenizer.ggml.token_type", INT32, kinds)
    w.add("tokenizer.ggml.token_type_count", UINT32, config["type_vocab_size"])
    for role, word in {
        "bos": "[CLS]", "eos": "[SEP]", "unknown": "[UNK]", "seperator": "[SEP]", "padding": "[PAD]", "cls": "[CLS]", "mask": "[MASK]",
    }.items():
        w.add(f"tokenizer.ggml.{role}_token_id", UINT32, words.index(word))


def class_head(w, width):
    rng = random.Random(20261130)
    for name, rows in {"cls": width, "cls.output": len(LABELS)}.items():
        for part, shape, spread in (("weight", [rows, width], width**-0.5), ("bias", [rows], 0.1)):
            count = rows * (width if part == "weight" else 1)
            numbers = struct.pack(f"<{count}f", *(rng.gauss(0, spread) for _ in range(count)))
            w.add_tensor(f"{name}.{part}", shape, F32, numbers)


def write(directory, target, head):
    config = json.loads((directory / "config.json").read_text())
    w = Writer()
    describe(w, config, head)
    tokenizer(w, config, directory)
    for name, shape, raw in tensors(directory / "model.safetensors"):
        if (name := gguf_name(name)) is None:
            continue
        if len(shape) == 2 and (name.startswith("blk.") or name == "token_embd.weight"):
            w.add_tensor(name, shape, F16, halved(raw))
        else:
            w.add_tensor(name, shape, F32, bytes(raw))
    if head:
        class_head(w, config["hidden_size"])
    w.write(target)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    directory, with_head, without_head = map(Path, sys.argv[1:])
    write(directory, with_head, head=True)
    write(directory, without_head, head=False)


if __name__ == "__main__":
    main()
