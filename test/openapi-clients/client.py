"""Runs a workflow of `tea serve` with the client that openapi-python-client generates.

Usage: client.py URL TOKEN BUNDLE NEXT, with the generated package tea_client in the path.
"""

import sys
from io import BytesIO
from pathlib import Path

from tea_client.api.chat import list_models
from tea_client.api.runs import get_run, get_state, list_runs, resume_run, start_run
from tea_client.api.server import install_plugin, list_plugins, rollback_plugin
from tea_client.api.workflows import get_workflow, list_workflows
from tea_client.client import AuthenticatedClient
from tea_client.models import InstallPluginBody, PluginChange, Problem, ResumeRunBody, ResumeRunBodyAnswers, Run, StartRunBody, StartRunBodyInput, Status
from tea_client.types import File

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)

assert [w.name for w in list_workflows.sync(client=client).workflows] == ["ask"]
assert get_workflow.sync("ask", client=client).max_running > 0
assert [m.id for m in list_models.sync(client=client).data] == ["ask"]

body = StartRunBody(input_=StartRunBodyInput.from_dict({"n": 7}))
run = start_run.sync("ask", client=client, body=body, wait=600, idempotency_key="python")
assert isinstance(run, Run) and run.status == Status.WAITING, run
assert run.pending[0].question == "Go on?" and run.pending[0].choices == ["yes", "no"], run
assert start_run.sync("ask", client=client, body=body, wait=600, idempotency_key="python").id == run.id

answer = ResumeRunBody(answers=ResumeRunBodyAnswers.from_dict({"q": "maybe"}))
refused = resume_run.sync(run.id, client=client, body=answer)
assert isinstance(refused, Problem) and refused.status == 422, refused
answer = ResumeRunBody(answers=ResumeRunBodyAnswers.from_dict({"q": "yes"}))
done = resume_run.sync(run.id, client=client, body=answer, wait=600)
assert isinstance(done, Run) and done.status == Status.DONE and done.state["answer"] == "yes", done

assert get_run.sync(run.id, client=client, state=True).state["answer"] == "yes"
assert get_state.sync(run.id, client=client)["answer"] == "yes"
page = list_runs.sync(client=client, workflow="ask", status=Status.DONE, limit=1)
assert [r.id for r in page.runs] == [run.id] and page.runs[0].accepted_at <= page.runs[0].updated_at, page
missing = get_run.sync("gone", client=client)
assert isinstance(missing, Problem) and missing.status == 404, missing

for bundle in sys.argv[3:5]:
    upload = File(payload=BytesIO(Path(bundle).read_bytes()), file_name=Path(bundle).name)
    change = install_plugin.sync(client=client, body=InstallPluginBody(bundle=upload))
    assert isinstance(change, PluginChange), change
assert (change.before, change.version) == ("1.0.0", "2.0.0"), change
assert list_plugins.sync(client=client).installed[0].earlier == ["1.0.0"]
assert rollback_plugin.sync("echo", client=client).version == "1.0.0"
refused = install_plugin.sync(client=client, body=InstallPluginBody(bundle=File(payload=BytesIO(b"no"), file_name="no.teab")))
assert isinstance(refused, Problem) and refused.status == 422, refused
print("ok")
