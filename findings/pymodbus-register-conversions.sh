#!/bin/sh
# pymodbus 3.16.1: bit 0 of a register is at index 8, and word_order="little" reverses
# the words of a string.
#
# convert_from_registers with DATATYPE.BITS takes the upper byte of a register first,
# and in each byte the lowest bit first. word_order is for numbers of several registers;
# a string is reversed with it, too, word by word, so it comes out garbled from a device
# whose 32-bit numbers need the option. convert_to_registers does the same, so a round
# trip with the library itself does not show it.
#
# A good guess: the bits of a register are in the order of their values, 0 to 15, and
# the order of words does not concern a string.
#
# Seen on 28 November 2026:
#   register 0x0001: bit at index 8
#   register 0x8000: bit at index 7
#   "abcdef", word_order big: abcdef
#   "abcdef", word_order little: efcdab
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q pymodbus==3.16.1 >&2
cat >finding.py <<'PY'
from pymodbus.client.mixin import ModbusClientMixin

convert = ModbusClientMixin.convert_from_registers
for register in (0x0001, 0x8000):
    bits = convert([register], ModbusClientMixin.DATATYPE.BITS)
    print(f"register {register:#06x}: bit at index {bits.index(True)}")
for order in ("big", "little"):
    text = convert([0x6162, 0x6364, 0x6566], ModbusClientMixin.DATATYPE.STRING, word_order=order)
    print(f'"abcdef", word_order {order}: {text}')
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
