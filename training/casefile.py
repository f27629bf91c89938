"""Numbers and writes made cases: the same cases give the same bytes, whenever and wherever they are made."""

import gzip
import json


def of_kinds(most, make):
    """As many cases of each kind as `most` says, each by make(kind), numbered from 1."""
    return [{"id": f"trn-{kind}-{n + 1:04d}", **make(kind)} for kind, count in most.items() for n in range(count)]


def write(target, cases):
    with open(target, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        for case in cases:
            z.write(json.dumps(case, ensure_ascii=False).encode() + b"\n")
