#!/bin/sh
# LiteLLM 1.108.7 (Python): its adapter from Gemini's generateContent to chat completions
# drops images in the documented JSON form, and gives parallel calls of one function the
# same id.
#
# Google's REST reference names the parts inlineData and fileData; the adapter, which a
# proxy uses for models of other vendors, reads inline_data only. A message that has only
# a picture disappears, without an error. The ids of functionCall and functionResponse
# are ignored: the id becomes call_NAME, so that two calls of one function, and their
# results, cannot be told apart.
#
# A good guess: both spellings are read, as Google's servers do; a part that is not
# supported is an error; ids are passed on.
#
# Seen on 29 November 2026:
#   inline_data: text, image_url
#   inlineData: text
#   inlineData alone: 0 messages
#   fileData: text
#   calls: call_f call_f
#   results: call_f call_f
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check litellm==1.108.7
cat >ask.py <<'PY'
from litellm.google_genai.adapters.transformation import GoogleGenAIAdapter


def messages(contents):
    return GoogleGenAIAdapter().translate_generate_content_to_completion(model="m", contents=contents)["messages"]


def parts(*parts):
    content = [m["content"] for m in messages([{"role": "user", "parts": list(parts)}])]
    if not content:
        return "0 messages"
    return "text" if isinstance(content[0], str) else ", ".join(p["type"] for p in content[0])


text = {"text": "What is this?"}
data = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
print("inline_data:", parts(text, {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}))
print("inlineData:", parts(text, data))
print("inlineData alone:", parts(data))
print("fileData:", parts(text, {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.png"}}))
talk = messages([
    {"role": "user", "parts": [text]},
    {"role": "model", "parts": [{"functionCall": {"id": i, "name": "f", "args": {}}} for i in ("a", "b")]},
    {"role": "user", "parts": [{"functionResponse": {"id": i, "name": "f", "response": {}}} for i in ("a", "b")]},
])
print("calls:", *[c["id"] for m in talk for c in m.get("tool_calls") or []])
print("results:", *[m["tool_call_id"] for m in talk if m["role"] == "tool"])
PY
LITELLM_LOCAL_MODEL_COST_MAP=True python/bin/python ask.py 2>err >seen || { cat err; exit 1; }
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
