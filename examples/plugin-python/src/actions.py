"""The actions of the plugin."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from tea_plugin import ActionError, Bundle, Call, Params

bundle = Bundle(name="greeter", version="0.1.0", description="Greets people.")


# tea checks parameters with the model, in workflows before they run and in each
# call.
class Hello(Params):
    name: str = Field(min_length=1, max_length=100, description="who is greeted")
    tone: Literal["plain", "loud"] = Field("plain", description="how")


class Greeting(BaseModel):
    text: str = Field(description="the greeting")


@bundle.action("greeter.hello", idempotent=True, reads=True)
def hello(params: Hello, call: Call) -> Greeting:
    """Greets a person."""
    # The type of an error determines how the workflow can handle it.
    if params.name.lower() == "nobody":
        raise ActionError("not_found", f'there is no person called "{params.name}"')
    text = f"Hello, {params.name}!"
    return Greeting(text=text.upper() if params.tone == "loud" else text)


class Spell(Params):
    text: str = Field(description="the text to spell")


class Spelled(BaseModel):
    letters: int = Field(description="the number of letters")


@bundle.action("greeter.spell", streaming=True)
def spell(params: Spell, call: Call) -> Spelled:
    """Spells a text, letter by letter."""
    for i, letter in enumerate(params.text, start=1):
        call.check()  # ends the action when the call is canceled
        call.token(letter)
        call.progress(i / len(params.text), "spelling")
    return Spelled(letters=len(params.text))


class Relay(Params):
    action: str = Field(description="the name of the action")
    params: dict[str, Any] = Field(default_factory=dict, description="its parameters")


class Relayed(BaseModel):
    result: Any = Field(description="its result")


@bundle.action("greeter.relay")
def relay(params: Relay, call: Call) -> Relayed:
    """Calls another action and returns its result."""
    # The host finds it: in another plugin, a Lua module or the host itself.
    return Relayed(result=call.invoke(params.action, params.params))
