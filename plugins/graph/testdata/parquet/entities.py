# Writes entities.parquet: uv run --with pyarrow==26.0.1 --with numpy entities.py
import datetime
import uuid

import numpy
import pyarrow
import pyarrow.parquet

day = datetime.time(12, 34, 56, 789012)
table = pyarrow.table(
    {
        "id": ["full", "null", "empty"],
        "scores": pyarrow.array([[1.5, None, 2.0], None, []], pyarrow.list_(pyarrow.float64())),
        "words": pyarrow.array([["a", None], None, []], pyarrow.list_(pyarrow.string())),
        "millis": pyarrow.array([day, None, datetime.time()], pyarrow.time32("ms")),
        "micros": pyarrow.array([day, None, datetime.time()], pyarrow.time64("us")),
        "half": pyarrow.array([numpy.float16(-1.5), None, numpy.float16(2**-24)], pyarrow.float16()),
        "largest": pyarrow.array([numpy.float16(65504), None, numpy.float16(0)], pyarrow.float16()),
        "uuid": pyarrow.array([uuid.UUID(int=258).bytes, None, bytes(16)], pyarrow.uuid()),
    }
)
pyarrow.parquet.write_table(table, __file__.replace(".py", ".parquet"))
