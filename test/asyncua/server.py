"""An OPC UA server for tests.

server.py [CERTIFICATE KEY]

It listens on a free port of 127.0.0.1 and prints one line: {"port": N}. With a
certificate it offers security policies, and accepts the user "tea" with the password
"secret" and every user certificate except "other"; the certificate "user" may write
everything. The namespace urn:tea:test has a writable variable of each type, whose value
is at the limit of the type, and a list with the suffix "-list". The object "machine" has
the methods add, count, fail and slow; count returns how often it was called.
"""

import asyncio
import json
import sys
import uuid
from datetime import datetime, timezone

from cryptography import x509

from asyncua import Server, ua
from asyncua.common.methods import uamethod
from asyncua.server.user_managers import UserManager
from asyncua.crypto.permission_rules import User, UserRole

VALUES = {
    "Boolean": True, "SByte": -128, "Byte": 255, "Int16": -32768, "UInt16": 65535, "Int32": -(2**31), "UInt32": 2**32 - 1,
    "Int64": -(2**63), "UInt64": 2**64 - 1, "Float": 3.4028234663852886e38, "Double": -1.7976931348623157e308,
    "String": "größer", "DateTime": datetime(2026, 11, 28, 5, 0, 0, 123456, tzinfo=timezone.utc),
    "Guid": uuid.UUID("12345678-9abc-def0-1234-56789abcdef0"), "ByteString": b"\x00\xff", "LocalizedText": ua.LocalizedText("offen"),
}


class Users(UserManager):
    def get_user(self, iserver, username=None, password=None, certificate=None):
        if username is None and certificate:  # the user certificate, or else the client certificate
            name = x509.load_der_x509_certificate(certificate).subject.rfc4514_string()
            if name == "CN=other":
                return None
            if name == "CN=user":
                return User(role=UserRole.Admin)
        if username is None or (username == "tea" and password == "secret"):
            return User(role=UserRole.User)
        return None


async def main():
    server = Server(user_manager=Users() if len(sys.argv) > 1 else None)
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0/tea")
    if len(sys.argv) > 1:
        kinds = ua.SecurityPolicyType
        server.set_security_policy([
            kinds.NoSecurity, kinds.Basic256Sha256_Sign, kinds.Basic256Sha256_SignAndEncrypt,
            kinds.Aes128Sha256RsaOaep_SignAndEncrypt, kinds.Aes256Sha256RsaPss_SignAndEncrypt])
        await server.load_certificate(sys.argv[1])
        await server.load_private_key(sys.argv[2])
    ns = await server.register_namespace("urn:tea:test")
    machine = await server.nodes.objects.add_object(ua.NodeId("machine", ns), "machine")

    async def add(name, value, kind, writable=True):
        node = await machine.add_variable(ua.NodeId(name, ns), name, value, varianttype=kind)
        if writable:
            await node.set_writable()
        return node

    for name, value in VALUES.items():
        kind = ua.VariantType[name]
        await add(name, value, kind)
        await add(name + "-list", [value, value], kind)
    await add("fixed", 1.5, ua.VariantType.Double, writable=False)
    for year in (1601, 9999):
        await add(f"year{year}", datetime(year, 12, 31, 23, 59, 58, 123456), ua.VariantType.DateTime)
    await add("nan", float("nan"), ua.VariantType.Double)
    await add("argument", ua.Argument(Name="a"), ua.VariantType.ExtensionObject)
    await add("watched", 0, ua.VariantType.Int32)
    short = await add("short", [1, 2], ua.VariantType.Int32)
    await short.write_attribute(ua.AttributeIds.ArrayDimensions, ua.DataValue(ua.Variant([2], ua.VariantType.UInt32)))
    anything = await add("any", 7, ua.VariantType.Int16)
    await anything.write_attribute(ua.AttributeIds.DataType, ua.DataValue(ua.NodeId(24)))
    broken = await add("broken", 1.0, ua.VariantType.Double)
    await broken.write_value(ua.DataValue(ua.Variant(1.0, ua.VariantType.Double), ua.StatusCode(ua.StatusCodes.BadSensorFailure)))
    many = await machine.add_folder(ua.NodeId("many", ns), "many")
    for i in range(1100):
        await many.add_object(ua.NodeId(f"many{i}", ns), f"many{i}")
    calls = 0

    @uamethod
    def plus(parent, a, b):
        return a + b

    @uamethod
    def count(parent):
        nonlocal calls
        calls += 1
        return calls

    @uamethod
    def fail(parent):
        raise RuntimeError("it broke halfway")

    @uamethod
    async def slow(parent):
        await asyncio.sleep(3600)

    double = ua.VariantType.Double
    await machine.add_method(ua.NodeId("add", ns), "add", plus, [double, double], [double])
    await machine.add_method(ua.NodeId("count", ns), "count", count, [], [ua.VariantType.Int64])
    await machine.add_method(ua.NodeId("fail", ns), "fail", fail, [], [])
    await machine.add_method(ua.NodeId("slow", ns), "slow", slow, [], [])
    async with server:
        print(json.dumps({"port": server.bserver._server.sockets[0].getsockname()[1]}), flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
