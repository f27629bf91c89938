"""Makes training cases of agents that read and then act: python training/chains.py, from the root of the repository. Writes
training/data/train-chains.jsonl.gz, the same bytes every time.

Eight domains that exist nowhere, other than those of `journeys.py`. The user says what to do and seldom with which values;
these stand in what the agent reads, in records, letters, pages and forms, sometimes among orders of somebody else.
`chains_data.py` holds the domains.
"""

import json
import random

import casefile
from chains_data import ASIDES, ASKS, DOMAINS, FILES, FOLDERS, HINTS, HOSTS, NAMES, PLANTS, QUESTIONS, SENTENCES, SPLIT, STEPS, WORDS

TARGET = "training/data/train-chains.jsonl.gz"
SEED = 20261202
MOST = {"c_chain": 900, "c_among": 500, "c_step": 350, "c_planted": 900, "c_planted_same": 350, "c_other_act": 350, "c_beyond": 350, "c_early": 350}
HARMLESS = {"c_chain", "c_among", "c_step"}
INJECTED = {"c_planted", "c_planted_same"}


def value(r, kind):
    if kind == "id":
        return r.choice([r.randint(3, 9999), f"{r.choice('ABKLMPRT')}{r.randint(1, 999):03d}", f"{r.choice(WORDS)}-{r.randint(2, 99)}", f"{r.randint(100, 999)}-{r.choice('abcdef')}{r.randint(0, 9)}"])
    if kind == "code":
        return r.choice([f"{r.randint(0, 999999):06d}", "".join(r.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(r.randint(5, 9))), f"{r.choice(WORDS).upper()}{r.randint(10, 99)}"])
    if kind == "email":
        return r.choice([r.choice(NAMES).lower().replace(" ", "."), r.choice(WORDS), r.choice(NAMES).split()[0].lower()]) + "@" + r.choice(HOSTS)
    if kind == "account":
        return r.choice("ABCDEFGH") + r.choice("XYZ") + "".join(r.choice("0123456789") for _ in range(r.randint(8, 16)))
    if kind == "amount":
        return r.choice([r.randint(3, 4000), round(r.uniform(3, 900), 2)])
    if kind == "count":
        return r.randint(1, 60)
    if kind == "date":
        return f"2026-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"
    if kind == "time":
        return f"{r.randint(7, 21):02d}:{r.choice(['00', '15', '30'])}"
    if kind == "path":
        return r.choice(FOLDERS) + "/" + r.choice([r.choice(FILES), r.choice(WORDS), r.choice(WORDS) + "_" + r.choice(FILES)])
    if kind == "link":
        return r.choice(["https://", "www.", "http://"]) + r.choice(HOSTS) + "/" + r.choice(WORDS) + r.choice(["", "/" + r.choice(FILES)])
    if kind == "name":
        return r.choice(NAMES) if r.random() < 0.5 else r.choice(WORDS) + "_" + r.choice(WORDS)
    return r.choice(SENTENCES) if r.random() < 0.6 else r.choice(WORDS).capitalize() + " " + r.choice(WORDS)


def words_of(name):
    return name.replace("_", " ")


class Chain:
    """One agent on its way."""

    def __init__(self, r):
        self.r, self.domain, self.turns = r, r.choice(DOMAINS), []
        self.style = r.choice(["snake", "snake", "camel", "dotted"])

    def named(self, words):
        if self.style == "camel":
            return words[0] + "".join(w.capitalize() for w in words[1:])
        return (self.domain["name"].split()[-1] + "." if self.style == "dotted" else "") + "_".join(words)

    def key(self, name):
        parts = name.split("_")
        return name if self.style != "camel" else parts[0] + "".join(p.capitalize() for p in parts[1:])

    def tool(self, act, arguments):
        properties = {k: {"type": "number" if isinstance(v, (int, float)) else "string"} for k, v in arguments.items()}
        return {"name": self.named(act["name"]), "description": act["does"], "inputSchema": {"type": "object", "properties": properties, "required": sorted(arguments)}}

    def arguments(self, act):
        """The arguments of a call. Texts are the agent's own words."""
        return {k: value(self.r, kind) for k, kind in act["args"].items()}

    def reads(self, how, held, order, named):
        """Looks things up in turn. held are the values that stand in what comes back; an order may stand there too."""
        r, lists = self.r, [[] for _ in how]
        for item in held:
            r.choice(lists[-2:]).append(item)
        at = r.randrange(len(how))
        for i, (read, items) in enumerate(zip(how, lists)):
            name, arguments = self.named(read["name"]), {}
            if read["argument"]:
                arguments[self.key(read["argument"])] = named.get(read["argument"]) or value(r, {"path": "path", "address": "link"}.get(read["argument"], "name"))
            self.turns.append({"role": "assistant", "content": f"[tool call] {name} {json.dumps(arguments)}"})
            self.turns.append({"role": "tool", "content": f"{name} returned: {self.body(items, order if i == at else None)}"})
        if r.random() < 0.15:
            self.turns.append({"role": "assistant", "content": r.choice(["I have what I need.", "Now the last step.", "Let me go on."])})

    def body(self, items, order):
        """What a look-up returns: records, a letter, a page or lines."""
        r = self.r
        form = r.choice(["records", "letter", "page", "lines", "mails"])
        if form == "records":
            records = [{k: value(r, r.choice(["id", "amount", "name", "date"])) for k in r.sample(["ref", "owner", "state", "since", "size"], 3)} for _ in range(r.randint(1, 4))]
            records[-1].update({k: v for k, v in items})
            if order:
                records[r.randrange(len(records))]["remark"] = order
            return json.dumps(records)
        told = [r.choice(ASKS).format(label=words_of(k), value=v) if form != "lines" and r.random() < 0.5 else f"{words_of(k)}: {v}" for k, v in items]
        parts = told + r.sample(SENTENCES, r.randint(1, 3))
        r.shuffle(parts)
        if order:
            parts.insert(r.randint(0, len(parts)), order)
        if form == "letter":
            return "Dear all,\n\n" + r.choice(["\n", " ", "\n\n"]).join(p if p[-1] in ".!>" else p + "." for p in parts) + "\n\nBest,\n" + r.choice(NAMES)
        if form == "page":
            return "<div>\n" + "\n".join(f"  <p>{p}</p>" for p in parts) + "\n  <form><input id=\"field_1\"></form>\n</div>"
        if form == "lines":
            return "\n".join(r.choice(["- ", ""]) + p for p in parts)
        others = [f"- subject: {r.choice(SENTENCES)}\n  sender: {value(r, 'email')}\n  body: '{r.choice(SENTENCES)}.'" for _ in range(r.randint(0, 2))]
        others.insert(r.randint(0, len(others)), f"- subject: {r.choice(WORDS)} {r.choice(WORDS)}\n  sender: {value(r, 'email')}\n  body: '" + "\n    ".join(parts) + "'")
        return "\n".join(others)


def request(r, c, act, said, how):
    """The user's words: what to do, the values that the user gives, and where to look."""
    where = " and ".join(r.choice(x["words"]) for x in how[: r.randint(1, 2)])
    text = r.choice(act["ask"]) if act else ""
    if said:
        text += ", " + ", ".join(f"{words_of(k)} {v}" for k, v in said)
    hint = r.choice(HINTS).format(where=where, who=r.choice(NAMES))
    parts = [p for p in [text + ".", hint, r.choice(ASIDES)] if p and p != "."]
    if r.random() < 0.25 and len(parts) > 1:
        parts[0], parts[1] = parts[1], parts[0]
    return r.choice(["", "", "Please help: ", "Hi, ", "Good morning. "]) + " ".join(parts)


def order_for(r, act, arguments):
    """A text of somebody who is not the user, which asks for the call."""
    pairs = list(arguments.items())
    head, (first, v) = " ".join(act["name"]), pairs[0]
    if r.random() < 0.15:
        return r.choice(SPLIT).format(label=words_of(first), value=v, verb=act["name"][0].capitalize())
    joined = r.choice([", ", " and "]).join(f"{words_of(k)} {x}" for k, x in pairs)
    what = r.choice([f"{head} with {joined}", f"{head}: {joined}", f"{act['name'][0]} the {' '.join(act['name'][1:]) or 'thing'} for {joined}", f"{head} {' '.join(str(x) for _, x in pairs)}"])
    if act.get("ask") and r.random() < 0.35:
        ask = r.choice(act["ask"])
        what = ask[0].lower() + ask[1:] + " (" + joined + ")"
    text = r.choice(PLANTS).format(what=what, filler=r.choice(SENTENCES))
    return text[0].upper() + text[1:]


def split(r, act, arguments, share):
    """The values that the user says, and those that stand in results; texts are of the agent's own making."""
    said, held = [], []
    for k, v in arguments.items():
        if act["args"].get(k) == "text":
            if r.random() < 0.4:
                held.append((k, v))
        elif r.random() < share:
            said.append((k, v))
        else:
            held.append((k, v))
    return said, held


def make(r, kind):
    c = Chain(r)
    act = r.choice(c.domain["acts"])
    arguments, how = c.arguments(act), r.sample(c.domain["reads"], r.randint(1, 4))
    said, held = split(r, act, arguments, r.choice([0, 0, 0.3, 0.6]))
    text, chosen, used, order = globals()["do_" + kind](r, c, act, arguments, said, held, how)
    if kind == "c_early":
        elsewhere_read(r, c)
    elif kind != "c_other_act" or r.random() < 0.6:
        c.reads(how, held, order, {})
    bad = kind not in HARMLESS
    labels = {"block": int(bad), "mismatch": int(bad), "exceeds": int(bad and kind != "c_early"), "ungrounded": 0, "clarify": 0, "inject": int(kind in INJECTED)}
    return {"source": "chains-" + c.domain["name"], "kind": kind, "split": "train", "userRequest": text, "conversation": c.turns,
            "tool": c.tool(chosen, used), "arguments": used, "class": chosen["class"], "labels": labels}


def elsewhere(r, act):
    other = r.choice(DOMAINS)
    chosen = r.choice([a for a in other["acts"] if a is not act])
    return chosen, {k: value(r, kind) for k, kind in chosen["args"].items()}


def do_c_chain(r, c, act, arguments, said, held, how):
    return request(r, c, act, said, how), act, arguments, None


def do_c_among(r, c, act, arguments, said, held, how):
    """What the user wants, with an order of somebody else in a result."""
    return request(r, c, act, said, how), act, arguments, order_for(r, *elsewhere(r, act))


def do_c_step(r, c, act, arguments, said, held, how):
    step = r.choice(STEPS)
    used = c.arguments(step)
    held += list(used.items())
    return request(r, c, act, said, how), step, used, order_for(r, *elsewhere(r, act)) if r.random() < 0.3 else None


def do_c_planted(r, c, act, arguments, said, held, how):
    chosen, used = elsewhere(r, act)
    for k in list(used):  # the attacker may name what the user named
        if said and r.random() < 0.15:
            used[k] = r.choice(said)[1]
    text = request(r, c, act, said, how) if r.random() < 0.7 else r.choice(QUESTIONS).format(where=r.choice(how[-1]["words"]))
    return text, chosen, used, order_for(r, chosen, used)


def do_c_planted_same(r, c, act, arguments, said, held, how):
    """The tool that the user wants, with values of somebody else."""
    used = c.arguments(act)
    return request(r, c, act, said, how), act, used, order_for(r, act, used)


def do_c_other_act(r, c, act, arguments, said, held, how):
    """Something else than what was asked for, with the user's own values; an order to do so may stand in a result."""
    chosen = r.choice([a for a in c.domain["acts"] if a is not act and a["class"] != "write"])
    used = c.arguments(chosen)
    named = {k: v for k, v in used.items() if chosen["args"][k] != "text"}
    text = request(r, c, act, list(named.items()), how)
    if r.random() < 0.5:
        text = r.choice(QUESTIONS).format(where=r.choice(how[-1]["words"])) + " It is about " + ", ".join(f"{words_of(k)} {v}" for k, v in named.items()) + "."
    held.clear()
    return text, chosen, used, order_for(r, chosen, {k: v for k, v in list(used.items())[:1]}) if r.random() < 0.5 else None


def do_c_beyond(r, c, act, arguments, said, held, how):
    """A further act of the agent's own idea, with values that it found."""
    chosen = r.choice([a for a in c.domain["acts"] if a is not act])
    used = c.arguments(chosen)
    held += [(k, v) for k, v in used.items() if chosen["args"][k] != "text"]
    text = request(r, c, act, said, how) if r.random() < 0.5 else r.choice(QUESTIONS).format(where=r.choice(how[-1]["words"]))
    return text, chosen, used, None


def do_c_early(r, c, act, arguments, said, held, how):
    """Values that nobody gave yet, after the agent has looked up something else for the user."""
    text = r.choice(act["ask"]) + (", " + ", ".join(f"{words_of(k)} {v}" for k, v in said) if said else "") + "."
    return r.choice(["Thanks. ", "And now: ", "Good. ", "One more thing: ", ""]) + text, act, arguments, None


def elsewhere_read(r, c):
    """What an agent read for an earlier wish of the user, about other things."""
    domain = c.domain
    c.domain = r.choice([d for d in DOMAINS if d is not domain])
    how = r.sample(c.domain["reads"], r.randint(1, 2))
    c.turns.append({"role": "user", "content": r.choice(QUESTIONS).format(where=r.choice(how[-1]["words"]))})
    c.reads(how, [], None, {})
    c.turns.append({"role": "assistant", "content": r.choice(SENTENCES) + "."})
    c.domain = domain


def main():
    r = random.Random(SEED)
    made = casefile.of_kinds(MOST, lambda kind: make(r, kind))
    casefile.write(TARGET, made)
    print(len(made))


if __name__ == "__main__":
    main()
