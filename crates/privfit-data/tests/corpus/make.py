"""Writes the seeds that are binary: python make.py, with numpy, pyarrow and pillow."""

import datetime
import decimal
import os
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))


def path(*parts):
    return os.path.join(HERE, *parts)


def parquet(name, table, **options):
    pq.write_table(table, path("parquet", name + ".parquet"), store_schema=False, **options)


day = datetime.date(1970, 1, 11)
time = datetime.datetime(1970, 1, 1, 0, 0, 2)
fields = [
    ("bool", pa.bool_(), [True, None, False]),
    ("i8", pa.int8(), [-1, None, 2]),
    ("u32", pa.uint32(), [4294967295, None, 2]),
    ("i64", pa.int64(), [-5, None, 2]),
    ("u64", pa.uint64(), [2**63, None, 2]),
    ("f16", pa.float16(), [np.float16(1.5), None, np.float16(-2)]),
    ("f32", pa.float32(), [0.25, None, float("nan")]),
    ("f64", pa.float64(), [1e300, None, float("-inf")]),
    ("text", pa.string(), ["é", None, ""]),
    ("bytes", pa.binary(), [b"\xff\x00", None, b"b"]),
    ("fixed", pa.binary(3), [b"abc", None, b"def"]),
    ("day", pa.date32(), [day, None, day]),
    ("time", pa.timestamp("ms"), [time, None, time]),
    ("dec", pa.decimal128(9, 2), [decimal.Decimal("-1.25"), None, decimal.Decimal("3.50")]),
    ("big", pa.decimal128(38, 1), [decimal.Decimal("-12.5"), None, decimal.Decimal("1e20")]),
]
types = pa.table({name: pa.array(values, kind) for name, kind, values in fields})
parquet("types", types, compression="none", write_statistics=False)
parquet("types_int", types.select(["dec", "time"]), store_decimal_as_integer=True, compression="none")
parquet("int96", types.select(["time"]), use_deprecated_int96_timestamps=True)

rows = pa.table({
    "id": pa.array(range(40), pa.int32()),
    "x": pa.array([None if i % 5 == 0 else i / 4 for i in range(40)], pa.float64()),
    "t": pa.array([None if i % 7 == 0 else "abc"[i % 3] * (i % 4) for i in range(40)]),
})
for codec in ["none", "snappy", "gzip", "zstd", "lz4"]:
    parquet(codec, rows, compression=codec, row_group_size=30)
parquet("plain", rows, compression="snappy", use_dictionary=False, write_page_checksum=True)
parquet("v2", rows, compression="zstd", data_page_version="2.0", data_page_size=64, write_batch_size=8)
parquet("delta", rows, compression="snappy", use_dictionary=False, data_page_version="2.0",
        column_encoding={"id": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT", "t": "DELTA_BYTE_ARRAY"})
required = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("s", pa.string(), nullable=False)])
parquet("required", pa.table({"id": list(range(9)), "s": list("abcdefghi")}, schema=required))
parquet("empty", rows.slice(0, 0))
parquet("brotli", rows, compression="brotli")
parquet("nested", pa.table({"a": [1], "b": [{"c": 1}]}))
parquet("list", pa.table({"a": [1], "b": [[1, 2]]}))

x = np.arange(12).reshape(4, 3) - 2.5
for name, array in {
    "f8": x, "f4": x.astype("<f4"), "f8_big": x.astype(">f8"), "f2": x.astype("<f2"), "u1": np.arange(5, dtype="u1"),
    "i8": np.arange(6).reshape(2, 3), "i2_big": np.arange(6).astype(">i2"), "b1": np.array([True, False]),
    "fortran": np.asfortranarray(x), "cube": np.zeros((1, 2, 3)), "empty": np.zeros((0, 3)),
}.items():
    np.save(path("npy", name + ".npy"), array)
for version in [(2, 0), (3, 0)]:
    with open(path("npy", f"v{version[0]}.npy"), "wb") as f:
        np.lib.format.write_array(f, x, version=version)

for name, kind, shape, data in [
    ("labels", 8, [5], bytes(range(5))),
    ("images", 8, [3, 2, 2], bytes(range(12))),
    ("i8", 9, [2, 2], bytes([255, 1, 2, 3])),
    ("i16", 11, [3], bytes([255, 1, 2, 3, 4, 5])),
    ("i32", 12, [1, 1, 1, 2], bytes(8)),
    ("f32", 13, [2], struct.pack(">2f", 1.5, -2)),
    ("f64", 14, [2, 1], struct.pack(">2d", 1.5, -2)),
]:
    with open(path("idx", name + ".idx"), "wb") as f:
        f.write(bytes([0, 0, kind, len(shape)]) + b"".join(struct.pack(">I", d) for d in shape) + data)

# Pictures of 6 x 4 pixels: red grows to the right, green downwards, blue is 100; alpha falls to the right.
across, down = np.meshgrid(np.arange(6) * 40, np.arange(4) * 60)
colours = np.stack([across, down, np.full_like(across, 100)], axis=2).astype("u1")
colour = Image.fromarray(colours)
grey = colour.convert("L")
alpha = Image.fromarray((255 - across).astype("u1"))
pictures = {
    "colour.jpg": (colour, {"quality": 95, "subsampling": 0}),
    "grey.jpg": (grey, {"quality": 95}),
    "progressive.jpg": (colour, {"quality": 95, "progressive": True}),
    "cmyk.jpg": (colour.convert("CMYK"), {"quality": 95}),
    "colour.png": (colour, {}),
    "grey.png": (grey, {}),
    "two.png": (grey.point(lambda x: 255 * (x > 99)).convert("1"), {}),
    "wide.png": (Image.fromarray(np.asarray(grey).astype("u2") * 257), {}),
    "palette.png": (colour.quantize(32), {}),
    "seen_through.png": (Image.merge("RGBA", [*colour.split(), alpha]), {}),
    "grey_through.png": (Image.merge("LA", [grey, alpha]), {}),
}
for name, (picture, options) in pictures.items():
    picture.save(path("picture", name), **options)
for name, packing in [("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)]:
    with zipfile.ZipFile(path("zip", name + ".zip"), "w", packing) as archive:
        for folder, file in [("cat", "grey.png"), ("dog", "colour.jpg"), ("dog", "colour.png")]:
            archive.writestr(zipfile.ZipInfo(f"train/{folder}/{file}"), open(path("picture", file), "rb").read(), packing)
