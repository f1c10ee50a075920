"""Writes _types.py from the OpenAPI document of `tea serve`, and _sync.py from _async.py.

python generate.py DOCUMENT PACKAGE
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOTS = ["Run", "Node", "RunQuestion", "Source", "RunFile", "Workflow", "WorkflowList"]  # with what they refer to

SYNC = {
    r"async (def|with|for) ": r"\1 ", r"\bawait ": "", r"\bimport asyncio\n": "", r"\basyncio\.sleep": "time.sleep",
    r"AsyncGenerator\[(\w+), None\]": r"Generator[\1, None, None]", r"AsyncGenerator": "Generator", r"AsyncClient": "Client", r"AsyncHTTPTransport": "HTTPTransport", r"__a(enter|exit)__": r"__\1__",
    r"\ba(close|read|iter_bytes)\(": r"\1(", r"\baclosing\b": "closing",
}


class Types:
    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas
        self.written: dict[str, str] = {}

    def named(self, name: str) -> str:
        schema = self.schemas[name]
        if name not in self.written:
            self.written[name] = self.declare(name, schema) if "properties" in schema else f"{name} = {self.of(name, schema)}\n"
        return name

    def declare(self, name: str, schema: dict[str, Any]) -> str:
        lines = [f"class {name}(TypedDict):"]
        for key, member in schema["properties"].items():
            kind = self.of(name + key.title().replace("_", ""), member)
            lines.append(f"    {key}: {kind if key in schema.get('required', []) else f'NotRequired[{kind}]'}")
            if note := member.get("description"):
                lines.append(f'    """{note}"""')
        return "\n".join(lines) + "\n"

    def of(self, name: str, schema: dict[str, Any]) -> str:
        if ref := schema.get("$ref"):
            return self.named(ref.rpartition("/")[2])
        if values := schema.get("enum"):
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        if "properties" in schema:
            self.written[name] = self.declare(name, schema)
            return name
        match schema.get("type"):
            case "array":
                return f"list[{self.of(name.removesuffix('s'), schema['items'])}]"
            case "object":
                values = schema.get("additionalProperties")
                return f"dict[str, {self.of(name, values) if isinstance(values, dict) else 'Any'}]"
            case kind:
                return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(str(kind), "Any")


document, package = Path(sys.argv[1]), Path(sys.argv[2])
types = Types(json.loads(document.read_text())["components"]["schemas"])
for root in ROOTS:
    types.named(root)
imports = "from typing import Any, Literal, NotRequired, TypedDict"
(package / "_types.py").write_text("\n\n".join([imports, *types.written.values()]))
text = (package / "_async.py").read_text()
for old, new in SYNC.items():
    text = re.sub(old, new, text)
(package / "_sync.py").write_text(text)
