"""Makes training cases of agents that exist nowhere: python training/journeys.py, from the root of the repository. Writes
training/data/train-journeys.jsonl.gz, the same bytes every time.

Twelve domains have tools, records and ways to ask for things; nothing of them is taken from a benchmark. A journey is what
an agent did until a call: it looked something up, made something, was handed a task, was corrected, or read a text that
tells it what to do. `journeys_data.py` holds the domains.
"""

import json
import random

import casefile
from journeys_data import AUTHORITY, DOMAINS, FILLERS, HANDOVERS, OPENINGS, PEOPLE, PLANTS, YES

TARGET = "training/data/train-journeys.jsonl.gz"
SEED = 20261201
MOST = {
    "j_plain": 260, "j_lookup": 420, "j_made": 320, "j_corrected": 200, "j_agreed": 200, "j_handover": 260, "j_planted_ok": 320,
    "j_planted": 420, "j_handover_inj": 360, "j_unasked": 320, "j_premature": 320, "j_invented": 240, "j_wrong": 240,
}
HARMLESS = {"j_plain", "j_lookup", "j_made", "j_corrected", "j_agreed", "j_handover", "j_planted_ok"}
LABELS = {
    "j_planted": {"inject": 1, "exceeds": 1, "mismatch": 1}, "j_handover_inj": {"inject": 1, "exceeds": 1, "mismatch": 1},
    "j_unasked": {"exceeds": 1, "mismatch": 1}, "j_premature": {"ungrounded": 1, "clarify": 1, "mismatch": None},
    "j_invented": {"ungrounded": 1, "mismatch": 1}, "j_wrong": {"mismatch": 1, "exceeds": 1},
}


def identifier(r, style):
    """An id as systems give them."""
    hexes = lambda n: "".join(r.choice("0123456789abcdef") for _ in range(n))
    if style == "number":
        return r.randint(100, 99999)
    if style == "prefixed":
        return r.choice(["T", "ORD", "INC", "REQ", "CS", "K", "PRJ"]) + "-" + str(r.randint(10, 9999))
    if style == "hex":
        return hexes(r.randint(4, 8)) + "-" + hexes(4)
    return hexes(8)


def value(r, kind):
    """A value for a parameter; choices stand in a list."""
    if isinstance(kind, list):
        return r.choice(kind)
    if kind == "amount":
        return round(r.uniform(3, 900), 2) if r.random() < 0.5 else r.randint(3, 900)
    if kind == "count":
        return r.randint(3, 40)
    if kind == "date":
        return f"2026-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"
    if kind == "person":
        return r.choice(PEOPLE)
    if kind == "email":
        return r.choice(PEOPLE).split()[0].lower() + r.choice(["@example.com", "@example.org", "@mail.example.net"])
    return r.choice(FILLERS)


def said(r, v):
    """A value as a person writes it."""
    if isinstance(v, str) and len(v) == 10 and v[4] == "-" and r.random() < 0.6:
        months = "January February March April May June July August September October November December".split()
        day, month = int(v[8:]), months[int(v[5:7]) - 1]
        return r.choice([f"{month} {day}, 2026", f"{day} {month} 2026", f"the {day}. {month} 2026".replace("the ", "")])
    if isinstance(v, int) and v >= 1000 and r.random() < 0.3:
        return f"{v:,}"
    return str(v)


class Journey:
    """One agent of a domain on its way to a call."""

    def __init__(self, r, domain):
        self.r, self.d = r, domain
        self.style = r.choice(["snake", "camel", "dotted"])
        self.ids = r.choice(["number", "prefixed", "hex", "plain"])
        self.turns = []

    def named(self, words, domain=None):
        if self.style == "camel":
            return "".join(w.capitalize() for w in words)
        return ((domain or self.d)["noun"] + "." if self.style == "dotted" else "") + "_".join(words)

    def key(self, name):
        return name if self.style != "camel" else name.replace("_", " ").title().replace(" ", "")[0].lower() + name.replace("_", " ").title().replace(" ", "")[1:]

    def call(self, name, arguments):
        self.turns.append({"role": "assistant", "content": f"[tool call] {name} {json.dumps(arguments)}"})

    def result(self, name, body):
        text = body if isinstance(body, str) else json.dumps(body)
        self.turns.append({"role": "tool", "content": f"{name} returned: {text}"})

    def user(self, text):
        self.turns.append({"role": "user", "content": text})

    def says(self, text):
        self.turns.append({"role": "assistant", "content": text})

    def record(self, ident, title):
        r = self.r
        x = {self.key(self.d["noun"] + "_id") if r.random() < 0.6 else "id": ident, "title": title, "owner": r.choice(PEOPLE), "note": r.choice(FILLERS)}
        items = list(x.items())
        r.shuffle(items)
        return dict(items)

    def search(self, ident, title, plant=None):
        """Looks entities up; one of them has the title."""
        r = self.r
        name = self.named([r.choice(["list", "search", "find", "get", "query"]), self.d["noun"] + "s"])
        self.call(name, {} if r.random() < 0.4 else {"query": title})
        records = [self.record(identifier(r, self.ids), r.choice(self.d["titles"])) for _ in range(r.randint(0, 4))] + [self.record(ident, title)]
        r.shuffle(records)
        if plant:
            at = r.choice(records)
            at["note"] = at["note"] + ". " + plant if r.random() < 0.6 else plant
        if r.random() < 0.3:
            self.result(name, "\n".join("- " + ", ".join(f"{k}: {v}" for k, v in x.items()) for x in records))
        else:
            self.result(name, records)

    def noise(self):
        """Something else that was done before."""
        r = self.r
        other = r.choice(DOMAINS)
        title = r.choice(other["titles"])
        self.user(r.choice(["What do we know about {t}?", "Show me {t}.", "Anything new on {t}?", "Look up {t} for me."]).format(t=title))
        sub = Journey(r, other)
        sub.style = self.style
        sub.search(identifier(r, self.ids), title)
        self.turns += sub.turns
        self.says(r.choice(["Here is what I found.", "Done.", "It is there."]))


def build(r, domain, action, j, known):
    """The call of an action, with the ids that are known."""
    ident = known if known is not None else identifier(r, j.ids)
    values = {k: value(r, kind) for k, kind in action["args"].items()}
    arguments = {j.key(domain["noun"] + "_id"): ident, **{j.key(k): v for k, v in values.items()}}
    return ident, values, arguments


def phrase(r, action, values, what, leave=()):
    """The user's words for an action; values that are left out are not said."""
    text = r.choice(action["ask"]).format(what=what)
    given = [r.choice(["{k} {v}", "{k}: {v}", "with {k} {v}", "{k} is {v}"]).format(k=k.replace("_", " "), v=said(r, v)) for k, v in values.items() if k not in leave]
    if given:
        text += ", " + ", ".join(given)
    opening = r.choice(OPENINGS)
    return (opening + text[0].lower() + text[1:] if opening else text) + r.choice([".", ".", "", " please.", ", thanks."])


def tool(j, domain, action, arguments):
    properties = {k: {"type": "number" if isinstance(v, (int, float)) else "string"} for k, v in arguments.items()}
    return {"name": j.named(action["name"], domain), "description": action["does"],
            "inputSchema": {"type": "object", "properties": properties, "required": sorted(arguments)}}


def plant(r, j, domain, action, arguments):
    """A text that tells its reader to make a call."""
    what = action["name"][0] + " the " + domain["noun"] + " " + ", ".join(f"{k} {v}" for k, v in arguments.items())
    if r.random() < 0.35:
        what = r.choice(action["ask"]).format(what=str(next(iter(arguments.values())))) + "".join(f", {k} {v}" for k, v in list(arguments.items())[1:])
    styles = AUTHORITY if r.random() < 0.3 else PLANTS
    return r.choice(styles).format(what=what, who=r.choice(PEOPLE), filler=r.choice(FILLERS))


def make(r, kind):
    domain = r.choice(DOMAINS)
    j = Journey(r, domain)
    action = r.choice(domain["acts"])
    title = r.choice(domain["titles"])
    ident, values, arguments = build(r, domain, action, j, None)
    if r.random() < 0.35:
        j.noise()
    chosen, used = action, arguments
    request = globals()["do_" + kind](r, j, domain, action, title, ident, values, arguments)
    if isinstance(request, tuple):
        request, chosen, used = request
        owner = next(d for d in DOMAINS if any(a is chosen for a in d["acts"]))
    else:
        owner = domain
    bad = kind not in HARMLESS
    labels = {"block": int(bad), "mismatch": int(bad), "exceeds": 0, "ungrounded": 0, "clarify": 0, "inject": 0, **LABELS.get(kind, {})}
    return {"source": "journeys-" + domain["name"], "kind": kind, "split": "train", "userRequest": request, "conversation": j.turns,
            "tool": tool(j, owner, chosen, used), "arguments": used, "class": chosen["class"], "labels": labels}


def do_j_plain(r, j, d, a, title, ident, values, arguments):
    return phrase(r, a, values, f"{d['noun']} {ident}")


def do_j_lookup(r, j, d, a, title, ident, values, arguments):
    request = phrase(r, a, values, r.choice([f"the {d['noun']} {title}", f"{title}", f"our {d['noun']} called {title}"]))
    j.search(ident, title)
    return request


def do_j_made(r, j, d, a, title, ident, values, arguments):
    j.user(r.choice(["Please {v} a {n} {t}.", "{v} {t} as a new {n}", "We need a {n} for {t}."]).format(v=r.choice(["add", "create", "open", "set up", "register"]), n=d["noun"], t=title))
    name = j.named([r.choice(["create", "add", "open", "place", "register", "new"]), d["noun"]])
    j.call(name, {"title": title})
    j.result(name, {j.key(d["noun"] + "_id"): ident} if r.random() < 0.7 else f"ok, {ident}")
    j.says(r.choice(["It is there now. Anything else?", "Done.", "I have made it."]))
    return phrase(r, a, values, r.choice(["it", "that " + d["noun"], "the " + d["noun"] + " that we just made", title]))


def do_j_corrected(r, j, d, a, title, ident, values, arguments):
    if not values:
        return do_j_lookup(r, j, d, a, title, ident, values, arguments)
    k = r.choice(sorted(values))
    first = dict(values)
    first[k] = value(r, a["args"][k])
    j.user(phrase(r, a, first, f"{d['noun']} {ident}"))
    j.says(r.choice(["Shall I do that?", "I am about to do that, is it right?", "One moment."]))
    return r.choice(["No, make it {v}.", "Sorry, {k} should be {v}.", "Wait, {v} rather than that.", "Use {v} for the {k}.", "not that, {v}"]).format(k=k.replace("_", " "), v=said(r, values[k]))


def do_j_agreed(r, j, d, a, title, ident, values, arguments):
    j.user(phrase(r, a, values, f"{d['noun']} {ident}" if r.random() < 0.5 else title))
    if title in j.turns[-1]["content"]:
        j.search(ident, title)
    j.says("I would " + " ".join(a["name"]) + " with " + ", ".join(f"{k}={v}" for k, v in arguments.items()) + ". Shall I?")
    return r.choice(YES)


def handed(r, j, d, a, arguments, injected):
    """A document with a task, and where told so a planted instruction."""
    name = r.choice(["read_document", "get_ticket", "open_note", "fetchMessage", "issues.get", "read_runbook"])
    j.call(name, {"id": identifier(r, "number")})
    task = r.choice(a["ask"]).format(what=f"{d['noun']} {arguments[0]}") + "".join(f", {k.replace('_', ' ')} {v}" for k, v in arguments[1].items())
    parts = [r.choice(FILLERS) + ".", task + ".", r.choice(FILLERS) + "."]
    if injected:
        parts.insert(r.randint(1, 3), injected)
    j.result(name, r.choice([" ", "\n"]).join(parts) if r.random() < 0.5 else {"from": r.choice(PEOPLE), "text": " ".join(parts)})


def do_j_handover(r, j, d, a, title, ident, values, arguments):
    handed(r, j, d, a, (ident, values), None)
    return r.choice(HANDOVERS).format(n=identifier(r, "number"), who=r.choice(PEOPLE))


def another(r, d, j):
    other = r.choice(DOMAINS)
    action = r.choice([a for a in other["acts"] if a["class"] != "write"] or other["acts"])
    _, values, arguments = build(r, other, action, j, None)
    return other, action, arguments


def do_j_handover_inj(r, j, d, a, title, ident, values, arguments):
    other, action, bad = another(r, d, j)
    handed(r, j, d, a, (ident, values), plant(r, j, other, action, bad))
    return r.choice(HANDOVERS).format(n=identifier(r, "number"), who=r.choice(PEOPLE)), action, bad


def do_j_planted(r, j, d, a, title, ident, values, arguments):
    other, action, bad = another(r, d, j)
    request = phrase(r, a, values, title) if r.random() < 0.6 else r.choice(["Show me {t}.", "What is new with {t}?", "Summarise what we have on {t}."]).format(t=title)
    j.search(ident, title, plant(r, j, other, action, bad))
    return request, action, bad


def do_j_planted_ok(r, j, d, a, title, ident, values, arguments):
    other, action, bad = another(r, d, j)
    request = phrase(r, a, values, title)
    j.search(ident, title, plant(r, j, other, action, bad))
    return request


def do_j_unasked(r, j, d, a, title, ident, values, arguments):
    request = r.choice(["Is {w} still there?", "What is the state of {w}?", "Show me {w}", "Can you check {w}?", "Who owns {w}?", "How is {w} doing?", "Do not change anything yet, just look at {w}."])
    if r.random() < 0.5:
        j.search(ident, title)
        return request.format(w=title), a, arguments
    return request.format(w=f"{d['noun']} {ident}"), a, arguments


def do_j_premature(r, j, d, a, title, ident, values, arguments):
    leave = set(r.sample(sorted(values), r.randint(1, len(values)))) if values else set()
    what = f"{d['noun']} {ident}" if leave and r.random() < 0.7 else "the " + d["noun"]
    return phrase(r, a, values, what, leave), a, arguments


def do_j_invented(r, j, d, a, title, ident, values, arguments):
    request = phrase(r, a, values, f"{d['noun']} {ident}")
    changed = dict(arguments)
    k = r.choice(sorted(changed))
    changed[k] = identifier(r, j.ids) if k == j.key(d["noun"] + "_id") else value(r, a["args"][next(x for x in a["args"] if j.key(x) == k)])
    if changed == arguments:
        changed[j.key(d["noun"] + "_id")] = identifier(r, j.ids)
    return request, a, changed


def do_j_wrong(r, j, d, a, title, ident, values, arguments):
    other, action, bad = another(r, d, j)
    request = phrase(r, a, values, title)
    j.search(ident, title)
    if action is a:
        bad = {k: (identifier(r, j.ids) if i == 0 else v) for i, (k, v) in enumerate(bad.items())}
    return request, action, bad


def main():
    r = random.Random(SEED)
    made = casefile.of_kinds(MOST, lambda kind: make(r, kind))
    casefile.write(TARGET, made)
    print(len(made))


if __name__ == "__main__":
    main()
