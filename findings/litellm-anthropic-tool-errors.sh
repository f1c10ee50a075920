#!/bin/sh
# LiteLLM 1.108.7 (Python): its adapter from Anthropic's Messages API to chat completions
# loses that a tool failed, and loses documents of plain text.
#
# A tool_result with is_error becomes a tool message that does not say so; without content,
# which Anthropic permits, the model of the other vendor gets an empty result, as from a
# tool that succeeded. A document whose source is text is dropped without an error, while
# one in base64 is passed on as an image_url, whatever its type. disable_parallel_tool_use
# is dropped although chat completions have parallel_tool_calls.
#
# A good guess: the error is in the text of the tool message; a text document becomes text.
#
# Seen on 29 November 2026:
#   failed tool: {"content": "", "role": "tool", "tool_call_id": "a"}
#   successful tool: {"content": "", "role": "tool", "tool_call_id": "a"}
#   text document beside a text: text
#   PDF beside a text: image_url, text
#   parallel_tool_calls: None
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
import json

from litellm.llms.anthropic.pass_through.adapters.transformation import LiteLLMAnthropicMessagesAdapter


def translated(messages, **more):
    request = {"model": "gpt-5", "max_tokens": 5, "messages": messages, **more}
    answer = LiteLLMAnthropicMessagesAdapter().translate_anthropic_to_openai(request)
    return answer[0] if isinstance(answer, tuple) else answer


def result(**more):
    return translated([
        {"role": "user", "content": "Stop the pump."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "stop", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **more}]},
    ])["messages"][-1]


def document(**source):
    parts = [{"type": "document", "source": source}, {"type": "text", "text": "What is this?"}]
    content = translated([{"role": "user", "content": parts}])["messages"][0]["content"]
    return "text" if isinstance(content, str) else ", ".join(p["type"] for p in content)


print("failed tool:", json.dumps(result(is_error=True), sort_keys=True))
print("successful tool:", json.dumps(result(), sort_keys=True))
print("text document beside a text:", document(type="text", media_type="text/plain", data="A pump."))
print("PDF beside a text:", document(type="base64", media_type="application/pdf", data="AAAA"))
tools = {"tools": [{"name": "stop", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
print("parallel_tool_calls:", translated([{"role": "user", "content": "a"}], **tools).get("parallel_tool_calls"))
PY
LITELLM_LOCAL_MODEL_COST_MAP=True python/bin/python ask.py 2>err >seen || { cat err; exit 1; }
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
