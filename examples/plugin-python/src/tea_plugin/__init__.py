"""The library part of the plugin: it implements tea's plugin protocol (proto/plugin.proto)."""

from .bundle import Bundle, Params
from .call import Call
from .errors import ActionError
from .server import serve

__all__ = ["ActionError", "Bundle", "Call", "Params", "serve"]
