import json
import logging
import os
import sys
from datetime import datetime, timezone

from .call import current_call

# The attributes of every record; the others are the fields of the message.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class HostHandler(logging.Handler):
    """Sends log records to the host.

    A record of a handler goes to the run's log. Others are written to stderr,
    where the host reads each line as a record.
    """

    def emit(self, record):
        try:
            fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
            message = record.getMessage()
            if record.exc_info:
                message += "\n" + logging.Formatter().formatException(record.exc_info)
            call = current_call.get()
            if call:
                call.log(_level(record), message, **json.loads(json.dumps(fields, default=str)))
            else:
                write(_level(record), message, fields)
        except Exception:
            self.handleError(record)


def write(level, message, fields):
    now = datetime.now(timezone.utc).isoformat()
    record = {"@level": level, "@message": message, "@timestamp": now, **fields}
    print(json.dumps(record, default=str), file=sys.stderr, flush=True)


def _level(record):
    if record.levelno >= logging.ERROR:
        return "error"
    if record.levelno >= logging.WARNING:
        return "warn"
    return "info" if record.levelno >= logging.INFO else "debug"


def send_logs_to_host():
    """Makes `logging` send its records to the host."""
    lowest = logging.DEBUG if os.environ.get("TEA_LOG_LEVEL", "").upper() == "DEBUG" else logging.INFO
    logging.basicConfig(level=lowest, handlers=[HostHandler()], force=True)
