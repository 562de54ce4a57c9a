"""GGUF files as the `gguf` package writes them, and what is in them.

checkpoints/gguf_types.gguf         a tensor of every type that is read, metadata of every type, a tokenizer
checkpoints/gguf_shapes.gguf        one to four dimensions, at an alignment of 64 bytes
checkpoints/gguf_unsupported.gguf   a type that is not read beside one that is
checkpoints/gguf_expected.safetensors   their tensors as `<file>/<key>`: integers and f64 as they are,
                                        all others as `gguf.quants.dequantize` gives them, in f32

Where the package can quantise, tensors are quantised normal numbers; the other block types are random
bytes with scales put in, so that every bit of a block counts.
"""

import tempfile
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Value

# Where the f16 scales of a block are, for types that the package only dequantises.
SCALES = {
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
}
QUANTISED = [Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.MXFP4]
PLAIN = [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64]

TOKENS = ["<unk>", "<s>", "</s>", "<0x0A>", "▁", "a", "b", "ab", "▁ab", "ü", "<pad>"]


class File:
    """A file on its way, with what a reader must find in it."""

    def __init__(self, alignment=None):
        self.writer = gguf.GGUFWriter(None, "golden")
        if alignment:
            self.writer.add_custom_alignment(alignment)
        self.expected = {}

    def plain(self, name, array):
        """A tensor of numpy's own type."""
        self.writer.add_tensor(name, array)
        self.expected[name] = array.astype(np.float32) if array.dtype == np.float16 else array

    def blocks(self, name, data, kind, supported=True):
        """A tensor of the bytes of `kind`, rows of which are rows of `data`."""
        self.writer.add_tensor(name, data, raw_dtype=kind)
        if supported:
            self.expected[name] = gguf.quants.dequantize(data, kind)

    def bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file.gguf"
            self.writer.write_header_to_file(path)
            self.writer.write_kv_data_to_file()
            self.writer.write_tensors_to_file()
            self.writer.close()
            return path.read_bytes()


def random_blocks(rng, kind, rows):
    """`rows` blocks of random bytes with scales that are finite and of both signs."""
    data = rng.integers(0, 256, (rows, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
    for at in SCALES[kind]:
        scales = (rng.uniform(0.01, 0.1, rows) * rng.choice([-1, 1], rows)).astype(np.float16)
        data[:, at : at + 2] = scales.view(np.uint8).reshape(rows, 2)
    return data


def add_metadata(writer):
    for kind, value in [
        (Value.UINT8, 200),
        (Value.INT8, -100),
        (Value.UINT16, 60_000),
        (Value.INT16, -30_000),
        (Value.UINT32, 4_000_000_000),
        (Value.INT32, -2_000_000_000),
        (Value.FLOAT32, 0.1),
        (Value.BOOL, True),
        (Value.STRING, "größe 大"),
        (Value.UINT64, 2**64 - 1),
        (Value.INT64, -(2**63)),
        (Value.FLOAT64, 0.1),
    ]:
        name = kind.name.lower()
        writer.add_key_value(f"golden.{name}", value, kind)
        values = [value, {bool: False, str: ""}.get(type(value), 1)]
        writer.add_key_value(f"golden.array.{name}", values, Value.ARRAY, sub_type=kind)
    writer.add_key_value("golden.array.array", [[1, -2], [3]], Value.ARRAY)


def add_tokenizer(writer):
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([-float(i) / 2 for i in range(len(TOKENS))])
    writer.add_token_types([2, 3, 3, 6, 1, 1, 1, 1, 4, 1, 5])
    writer.add_token_merges(["a b", "▁ ab"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(10)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def types(rng):
    file = File()
    add_metadata(file.writer)
    add_tokenizer(file.writer)
    for dtype in PLAIN:
        numbers = rng.standard_normal((3, 5)) * 40
        file.plain(np.dtype(dtype).name, numbers.astype(dtype))
    for kind in QUANTISED:
        numbers = rng.standard_normal((3, 64)).astype(np.float32)
        file.blocks(kind.name.lower(), gguf.quants.quantize(numbers, kind), kind)
    for kind in SCALES:
        file.blocks(kind.name.lower(), random_blocks(rng, kind, 2), kind)
    # The ends of the scale of MXFP4: two subnormal, the smallest normal, the largest that is finite.
    edges = rng.integers(0, 256, (4, 17), dtype=np.uint8)
    edges[:, 0] = [0, 1, 2, 252]
    file.blocks("mxfp4.edges", edges, Type.MXFP4)
    return file


def shapes(rng):
    file = File(alignment=64)
    for shape in [(5,), (3, 5), (2, 3, 5), (2, 1, 3, 5)]:
        file.plain(f"dims{len(shape)}", rng.standard_normal(shape).astype(np.float32))
    blocks = gguf.quants.quantize(rng.standard_normal((2, 3, 32)).astype(np.float32), Type.Q8_0)
    file.blocks("blocks", blocks, Type.Q8_0)
    return file


def unsupported(rng):
    file = File()
    numbers = rng.standard_normal((2, 256)).astype(np.float32)
    file.blocks("ternary", gguf.quants.quantize(numbers, Type.TQ1_0), Type.TQ1_0, supported=False)
    file.plain("plain", numbers[:, :3].copy())
    return file


def files():
    rng = np.random.default_rng(41)
    expected = {}
    for make in [types, shapes, unsupported]:
        file = make(rng)
        name = f"gguf_{make.__name__}"
        yield f"checkpoints/{name}.gguf", file.bytes()
        expected |= {f"{name}/{key}": torch.from_numpy(value) for key, value in file.expected.items()}
    yield "checkpoints/gguf_expected.safetensors", (expected, {"gguf": version("gguf")})
