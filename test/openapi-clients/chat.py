"""Sends every option of OpenAI's Python client to the workflow `options`, which answers with those that it gets.

Usage: chat.py URL OPTIONS, where OPTIONS is chat-options.json.
"""

import inspect
import json
import sys
from pathlib import Path

from openai import BadRequestError, InternalServerError, OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
create = client.chat.completions.create
options = json.loads(Path(sys.argv[2]).read_text())
chat = {"model": "options", "messages": [{"role": "user", "content": "hello"}]}

names = set(inspect.signature(create).parameters)
assert names - {"model", "messages", "stream", "stream_options", "extra_headers", "extra_query", "extra_body", "timeout"} == set(options), names ^ set(options)

for name, option in options.items():
    if "given" in option:
        answer = create(**chat, **{name: option["given"]}).choices[0].message.content
        assert json.loads(answer) == {name: option["given"]}, (name, answer)
        continue
    try:
        create(**chat, **{name: option["refused"]})
    except BadRequestError as e:
        assert e.body["message"].startswith(name + ": "), e.body
    else:
        raise AssertionError(f"{name} was accepted")

given = {name: option["given"] for name, option in options.items() if "given" in option}
chunks = list(create(**chat, **given, stream=True, stream_options={"include_usage": True, "include_obfuscation": False}))
assert json.loads("".join(c.choices[0].delta.content or "" for c in chunks if c.choices)) == given, chunks
assert [c.usage is not None for c in chunks] == [False] * (len(chunks) - 1) + [True] and chunks[-1].choices == [], chunks
assert json.loads(create(**chat, extra_body={"top_k": 40}).choices[0].message.content) == {"top_k": 40}
try:
    create(**chat, stream=True, stream_options={"include_obfuscation": True})
except BadRequestError as e:
    assert "include_obfuscation" in e.body["message"], e.body
else:
    raise AssertionError("include_obfuscation was accepted")
try:
    list(create(**{**chat, "model": "fail"}, stream=True))
except Exception as e:
    assert "no luck" in str(e), e
else:
    raise AssertionError("a failed run ended the stream without an error")
try:
    create(**{**chat, "model": "fail"})
except InternalServerError as e:
    assert "no luck" in e.body["message"], e.body
assert [m.id for m in client.models.list()] == ["fail", "options"] and client.models.retrieve("options").owned_by == "tea"
