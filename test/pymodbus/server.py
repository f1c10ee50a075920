"""A Modbus server for tests and examples.

server.py tcp [PORT]           Modbus TCP; without PORT at a free one
server.py rtuovertcp [PORT]    frames of the serial line over TCP
server.py rtu DEVICE           a serial line
server.py count                Modbus TCP; prints a line {"write": ADDRESS} for each write of
                               holding registers

It prints one line: {"port": N} once it listens. Holding register 0 and coil 0 count
nothing and can be written; input registers from 100 have one value of each type in both
word orders, as pymodbus encodes them. Unit 1 answers.
"""

import asyncio
import json
import struct
import sys

from pymodbus import FramerType
from pymodbus.client.mixin import ModbusClientMixin as Mixin
from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext
from pymodbus.server import ModbusSerialServer, ModbusTcpServer

VALUES = [
    ("INT16", -32768), ("UINT16", 65535), ("INT32", -2147483648), ("UINT32", 4294967295),
    ("INT64", -9223372036854775808), ("UINT64", 18446744073709551615),
    ("FLOAT32", 3.4028234663852886e38), ("FLOAT64", -1.7976931348623157e308), ("FLOAT32", 0.1),
]


def inputs():
    registers = [0] * 100
    for order in ("big", "little"):
        for name, value in VALUES:
            registers += Mixin.convert_to_registers(value, Mixin.DATATYPE[name], word_order=order)
    return registers + [struct.unpack(">H", b"\x7f\xc0")[0], 0] + [0] * 500


def report(sending, pdu):
    """Reports each write, for trace_pdu. pymodbus ignores the methods of a derived data block."""
    if not sending and pdu.function_code in (6, 16):
        print(json.dumps({"write": pdu.address}), flush=True)
    return pdu


async def main():
    kind, where = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0"
    # The context adds 1 to addresses.
    device = ModbusDeviceContext(
        di=ModbusSequentialDataBlock(1, [True, False] * 1000), co=ModbusSequentialDataBlock(1, [False] * 2000),
        ir=ModbusSequentialDataBlock(1, inputs()), hr=ModbusSequentialDataBlock(1, [0] * 2000))
    context = ModbusServerContext(devices={1: device}, single=False)
    if kind == "rtu":
        server = ModbusSerialServer(context, framer=FramerType.RTU, port=where, baudrate=19200)
        await server.listen()
        port = 0
    else:
        framer = FramerType.RTU if kind == "rtuovertcp" else FramerType.SOCKET
        server = ModbusTcpServer(context, framer=framer, address=("127.0.0.1", int(where)),
                                 trace_pdu=report if kind == "count" else None)
        await server.listen()
        port = server.transport.sockets[0].getsockname()[1]
    print(json.dumps({"port": port}), flush=True)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
