from typing import Annotated

import pytest
from pydantic import Field

from actions import bundle
from tea_plugin import ActionError, Bundle, Call
from tea_plugin.testing import Host, call_action


def test_hello_greets():
    assert call_action(bundle, "greeter.hello", {"name": "Ada", "tone": "loud"}) == {"text": "HELLO, ADA!"}


def test_hello_fails():
    with pytest.raises(ActionError) as failure:
        call_action(bundle, "greeter.hello", {"name": "nobody"})
    assert failure.value.type == "not_found"


def test_hello_checks_its_parameters():
    with pytest.raises(ActionError) as failure:
        call_action(bundle, "greeter.hello", {"nmae": "Ada"})
    assert failure.value.type == "validation_error"


def test_the_manifest_says_what_an_action_promises():
    declared = {a.name: (a.idempotent, a.once, a.reads) for a in bundle.manifest().actions}
    assert declared["greeter.hello"] == (True, False, True)
    assert declared["greeter.relay"] == (False, False, False)


def test_spell_emits_tokens():
    host = Host()
    assert call_action(bundle, "greeter.spell", {"text": "olá"}, host=host) == {"letters": 3}
    assert host.tokens == ["o", "l", "á"]


def test_spell_stops_when_it_is_canceled():
    with pytest.raises(ActionError) as failure:
        call_action(bundle, "greeter.spell", {"text": "tea"}, canceled=True)
    assert failure.value.type == "canceled"


def test_relay_calls_another_action():
    host = Host(actions={"text.upper": lambda params: params["text"].upper()})
    result = call_action(bundle, "greeter.relay", {"action": "text.upper", "params": {"text": "tea"}}, host=host)
    assert result == {"result": "TEA"}


def test_a_function_with_named_parameters_is_an_action():
    named = Bundle("named", "0.1.0")

    @named.action("named.repeat")
    def repeat(text: Annotated[str, Field(description="the text")], call: Call, times: int = 2) -> list[str]:
        """Repeats a text."""
        call.token(text)
        return [text] * times

    host = Host()
    assert call_action(named, "named.repeat", {"text": "tea"}, host=host) == ["tea", "tea"]
    assert host.tokens == ["tea"]
    assert repeat.__name__ == "repeat"
    with pytest.raises(ActionError) as failure:
        call_action(named, "named.repeat", {"times": 1, "word": "tea"})
    assert failure.value.message == "parameters of named.repeat: text: Field required; word: Extra inputs are not permitted"
    (action,) = named.manifest().actions
    assert action.summary == "Repeats a text." and b'"description":"the text"' in action.params_schema_json
