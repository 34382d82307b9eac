"""Problems of an encoder's folder are errors of one line. Untrusted files cause no traceback and
cost no memory."""

import json
import os
import resource
import struct
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pretrained.tiny_families import FAMILIES, write_encoder
from thincdialog.errors import DialogError, MissingPackageError, ModelError
from thincdialog.pretrained.encoder import PretrainedTokens
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

FILES = ["config.json", "model.safetensors", "tokenizer.json"]


@pytest.fixture
def folder(tmp_path):
    write_encoder(tmp_path / "encoder", "bert")
    return tmp_path / "encoder"


def set_up(folder):
    """Read a folder as a training run does before its first step."""
    PretrainedTokenizer(str(folder)).encode("hello world")
    PretrainedTokens(str(folder)).initialize()


def message(folder):
    with pytest.raises(ModelError) as error:
        set_up(folder)
    text = str(error.value)
    assert "\n" not in text and len(text) < 600
    return text


def change_config(folder, **changes):
    config = {**json.loads((folder / "config.json").read_text()), **changes}
    (folder / "config.json").write_text(json.dumps(config))


def change_tensors(folder, change):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_folder_that_does_not_exist_is_one_line(tmp_path):
    for name in ("nowhere", "9" * 300):
        assert "is not a folder. Download an encoder first" in message(tmp_path / name)


@pytest.mark.parametrize("name", FILES)
def test_folder_without_a_file_is_one_line(name, folder):
    (folder / name).unlink()
    assert f"has no {name}. Needed: " in message(folder)


def test_folder_with_a_pickle_only_is_one_line(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "no model.safetensors. Needed: " in message(folder)
    assert "pytorch_model.bin is a pickle, which may run code" in message(folder)


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"model_type": "gpt2"}, f'"gpt2". Supported: {", ".join(sorted(FAMILIES))}'),
        ({"hidden_act": "gelu_new"}, 'activation = "gelu_new". Supported: gelu, relu.'),
        ({"position_embedding_type": "relative_key"}, "Supported: absolute"),
        ({"hidden_size": "16"}, "hidden_size = "),
        ({"num_hidden_layers": 3}, "has no parameter encoder.layer.2."),
        ({"num_hidden_layers": 1}, "bias, which config.json does not ask for. Download both"),
        ({"num_hidden_layers": 1 << 20}, "has no parameter encoder.layer.2."),
        ({"intermediate_size": 33}, "0.intermediate.dense.weight of the shape (33, 16) and"),
        ({"num_attention_heads": 3}, "is not a multiple of 3 heads"),
        (
            {"vocab_size": 13},
            "embeddings.weight of the shape (13, 16) and type F16, F32 or F64, which",
        ),
    ],
    ids=str,
)
def test_folder_that_is_not_supported_is_one_line(changes, expected, folder):
    change_config(folder, **changes)
    assert expected in message(folder)


def test_folder_that_is_wrong_is_described_with_the_names_of_its_family(tmp_path):
    write_encoder(tmp_path, "distilbert", n_heads="4")
    assert 'config.json  n_heads = "4", expected a whole number' in message(tmp_path)
    change_config(tmp_path, n_heads=4, hidden_dim=33)
    assert "transformer.layer.0.ffn.lin1.weight of the shape (33, 16)" in message(tmp_path)
    change_config(tmp_path, n_layers=1, hidden_dim=32)
    assert "the parameter transformer.layer.1." in message(tmp_path)


def test_folder_of_a_static_sentence_transformer_is_one_line(folder):
    static = [{"type": "sentence_transformers.models.StaticEmbedding", "path": "0_StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(static))
    assert "has the modules StaticEmbedding. Supported, in this order: Tr" in message(folder)


def test_folder_without_the_file_of_a_module_is_one_line(folder):
    modules = [{"type": "models.Transformer", "path": ""}, {"type": "models.Pooling", "path": "1"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    file = folder / "1" / "config.json"
    assert f'{file}  pooling_mode = "". Supported: cls, mean, max.' in message(folder)


@pytest.mark.parametrize("package", ["safetensors", "tokenizers"])
def test_folder_without_the_extra_is_one_line(package, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[pretrained\]'"):
        PretrainedTokenizer(str(folder))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_folder_with_numbers_that_are_not_finite_is_one_line(value, folder):
    def change(tensors):
        tensors["encoder.layer.1.output.dense.bias"][3] = value

    change_tensors(folder, change)
    assert "encoder.layer.1.output.dense.bias holds NaN or infinity" in message(folder)


@pytest.mark.parametrize("dtype", ["i4", "u1", "?"])
def test_folder_with_weights_that_are_no_floats_is_one_line(dtype, folder):
    name = "embeddings.LayerNorm.bias"
    change_tensors(folder, lambda tensors: tensors.update({name: tensors[name].astype(dtype)}))
    assert f"has no parameter {name} of the shape (16,) and type F16, F32 or" in message(folder)


def test_folder_with_half_precision_is_read_as_float32(folder):
    whole = read_folder(str(folder)).tensors()
    change_tensors(
        folder, lambda tensors: tensors.update({k: v.astype("f2") for k, v in tensors.items()})
    )
    for name, half in read_folder(str(folder)).tensors().items():
        assert half.dtype == np.float32
        np.testing.assert_allclose(half, whole[name], atol=1e-3)


def test_folder_checksum_depends_on_contents_and_not_on_the_path(folder, tmp_path):
    write_encoder(tmp_path / "other", "bert")
    first, other = (read_folder(str(place)).checksum for place in (folder, tmp_path / "other"))
    assert first == other
    change_tensors(folder, lambda tensors: tensors["embeddings.LayerNorm.bias"].fill(2))
    assert read_folder(str(folder)).checksum != first


def with_header(folder, header, n_bytes=None):
    """Write another header before the old data."""
    path = folder / "model.safetensors"
    old = path.read_bytes()
    (n_old,) = struct.unpack("<Q", old[:8])
    text = header(old[8 : 8 + n_old])
    size = len(text) if n_bytes is None else n_bytes
    path.write_bytes(struct.pack("<Q", size) + text + old[8 + n_old :])


def edited(change):
    def edit(text):
        header = json.loads(text)
        change(header, header["embeddings.LayerNorm.bias"])
        return json.dumps(header).encode()

    return edit


DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE = {
    "terabytes": edited(lambda h, t: t.update(shape=[1 << 42], data_offsets=[0, 1 << 44])),
    "overflow": edited(lambda h, t: t.update(shape=[1 << 62, 1 << 62])),
    "negative": edited(lambda h, t: t.update(shape=[-16])),
    "backwards": edited(lambda h, t: t.update(data_offsets=t["data_offsets"][::-1])),
    "overlap": edited(lambda h, t: t.update(data_offsets=[4, 68])),
    "type": edited(lambda h, t: t.update(dtype="PICKLE")),
    "no type": edited(lambda h, t: t.pop("dtype")),
    "deep": lambda text: DEEP,
    "deep in it": edited(lambda h, t: h.update(__metadata__=json.loads("[" * 90 + "]" * 90))),
    "no JSON": lambda text: b"x" * 100,
    "no object": lambda text: b"[1, 2]",
    "nothing": lambda text: b"",
}


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE)
def test_folder_with_a_hostile_header_is_one_line(header, folder):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with_header(folder, header)
    assert "model.safetensors" in message(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize("n_bytes", [0, 7, 1 << 27, 1 << 40, (1 << 64) - 1])
def test_folder_with_a_header_of_another_size_is_one_line(n_bytes, folder):
    with_header(folder, lambda text: text, n_bytes)
    assert "is damaged" in message(folder)


def test_folder_with_weights_that_end_in_a_hole_is_one_line(folder):
    os.truncate(folder / "model.safetensors", 1 << 40)
    assert "is damaged" in message(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", DEEP], ids=repr)
def test_folder_with_invalid_json_is_one_line(name, content, folder):
    (folder / name).write_bytes(content)
    assert name in message(folder)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_folder_with_changed_bytes_is_read_or_refused(folder, data):
    path = folder / data.draw(st.sampled_from(FILES))
    whole = path.read_bytes()
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        # Mostly change the header.
        place = data.draw(st.integers(0, min(len(whole), 3000) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(whole), len(whole) // 2, 9]))
    path.write_bytes(changed[:cut])
    try:
        set_up(folder)
    except DialogError as error:
        assert "\n" not in str(error)
    finally:
        path.write_bytes(whole)
