"""A mail server for tests.

server.py none
server.py starttls|tls CERTIFICATE KEY

It prints one line: {"port": N} once it listens, then one line with the envelope and the
text of each message. With encryption it needs the user name pump and the password
open-sesame. It refuses recipients whose names begin with "nobody", and with "later" it
asks to come back.
"""

import asyncio
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 no such user"
        if address.startswith("later"):
            return "451 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = {"from": envelope.mail_from, "to": envelope.rcpt_tos, "text": envelope.content.decode(), "tls": session.ssl is not None}
        print(json.dumps(message), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.login == b"pump" and data.password == b"open-sesame", handled=False)


async def main():
    mode, context = sys.argv[1], None
    if mode != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sys.argv[2], sys.argv[3])

    def protocol():
        return SMTP(Handler(), tls_context=context if mode == "starttls" else None, require_starttls=mode == "starttls",
                    authenticator=authenticate, auth_required=mode != "none", auth_require_tls=mode == "starttls")

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=context if mode == "tls" else None)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.get_running_loop().create_future()


logging.disable()  # tests break off handshakes
warnings.simplefilter("ignore")
asyncio.run(main())
