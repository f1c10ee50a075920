# Writes texts.json: generated templates with the texts that Jinja2 makes of
# them. Run it with jinja2 3.1.6 installed: python3 texts.py > texts.json
import json
import random

import jinja2

STATE = {"n": 5, "s": "word", "r": {"a": [1, "x"]}, "lines": "one\ntwo\n", "yes": True, "no": False, "list": [1, 2]}
TEXTS = ["", " ", "\n", "\n\n", "\n \n", "  ", "\t", "a", " b ", "c\n", "\nd", "é", "\u2028", "\u00a0", "{", "}", "%", "#", '"', "- "]
VALUES = ["state.n", "state.s", "state.lines", "state.r | tojson", "state.nope", "state.n + 1", "'}}'", '"\\n"']


def enclosed(rng, opening, code, closing):
    return opening + rng.choice(["", "", "", "-"]) + f" {code} " + rng.choice(["", "", "", "-"]) + closing


def piece(rng, depth=0):
    kind = rng.randrange(12)
    if kind < 4:
        return rng.choice(TEXTS)
    if kind < 9 or depth > 1:
        return enclosed(rng, "{{", rng.choice(VALUES), "}}")
    if kind == 9:
        return enclosed(rng, "{#", "note", "#}")
    inner = "".join(piece(rng, depth + 1) for _ in range(rng.randrange(4)))
    if kind == 10:
        condition = rng.choice(["state.yes", "state.no"])
        return enclosed(rng, "{%", "if " + condition, "%}") + inner + enclosed(rng, "{%", "endif", "%}")
    return enclosed(rng, "{%", "for i in state.list", "%}") + inner + enclosed(rng, "{%", "endfor", "%}")


def text(rng):
    out = "".join(piece(rng) for _ in range(rng.randrange(1, 5))) + rng.choice(["", "\n", "\n", "\n\n", " ", " \n"])
    # Jinja2 writes all line ends of a template in one way.
    return out.replace("\n", "\r\n") if rng.randrange(4) == 0 else out


def main():
    rng, cases = random.Random(1), {}
    while len(cases) < 200:
        template = text(rng)
        if "{{" not in template and "{%" not in template and "{#" not in template:
            continue
        env = jinja2.Environment(keep_trailing_newline=True, newline_sequence="\r\n" if "\r" in template else "\n")
        env.filters["tojson"] = lambda v: json.dumps(v, separators=(",", ":"), sort_keys=True)
        try:
            body = env.parse(template).body
        except jinja2.TemplateSyntaxError:
            continue
        nodes = body[0].nodes if len(body) == 1 and isinstance(body[0], jinja2.nodes.Output) else []
        single = len(nodes) == 1 and not isinstance(nodes[0], jinja2.nodes.TemplateData)
        cases[template] = {"template": template, "text": env.from_string(template).render(state=STATE), "single": single}
    print("[\n" + ",\n".join(json.dumps(c) for c in cases.values()) + "\n]")


if __name__ == "__main__":
    main()
