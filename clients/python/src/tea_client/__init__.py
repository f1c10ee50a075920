"""A client of the HTTP API of `tea serve`. Start with Client, or AsyncClient."""

from ._async import AsyncClient
from ._drawing import Drawing
from ._errors import ConnectionFailed, RunFailed, ServerError, TeaError
from ._event import Event
from ._sync import Client
from ._types import Failure, Interrupt, Node, Run, RunFile, RunQuestion, Source, Status, Workflow, WorkflowList

__all__ = [
    "AsyncClient", "Client", "ConnectionFailed", "Drawing", "Event", "Failure", "Interrupt", "Node", "Run", "RunFailed", "RunFile",
    "RunQuestion", "ServerError", "Source", "Status", "TeaError", "Workflow", "WorkflowList",
]
