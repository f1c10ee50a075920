import json

from pydantic import BaseModel

# The largest JSON text of parameters or a result.
MAX_PAYLOAD = 64 << 20


class TooLarge(ValueError):
    """A value whose JSON text is larger than MAX_PAYLOAD."""


def encode(value, what):
    """Returns a value as JSON text; what names it in errors. NaN and infinity are errors."""
    try:
        text = json.dumps(value, default=_to_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what}: {error}") from error
    if len(text) > MAX_PAYLOAD:
        raise TooLarge(f"{what}: {len(text)} bytes exceed the limit of {MAX_PAYLOAD} (64 MiB)")
    return text


def _to_plain(value):
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"JSON has no {type(value).__name__}")
