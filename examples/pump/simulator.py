"""A pump as a Modbus server: python3 simulator.py [PORT]

Input register 0 is the pressure in tenths of a bar, holding register 0 the speed in
percent. Needs pymodbus 3.
"""

import asyncio
import sys

from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext
from pymodbus.server import ModbusTcpServer


async def main():
    # The context adds 1 to addresses.
    pump = ModbusDeviceContext(ir=ModbusSequentialDataBlock(1, [87] * 10), hr=ModbusSequentialDataBlock(1, [40] * 10))
    server = ModbusTcpServer(
        ModbusServerContext(devices={1: pump}, single=False),
        address=("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 5020))
    await server.listen()
    print("listening at port", server.transport.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
