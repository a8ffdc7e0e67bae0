"""A model's fingerprint: the same for a copy, another one for another model."""

import shutil

from app.chat.loaded import fingerprint


def test_a_copy_is_the_same_model_and_a_change_makes_another(data_folder, tmp_path):
    first = fingerprint(data_folder / "tiny-llama")
    copy = tmp_path / "copy"
    shutil.copytree(data_folder / "tiny-llama", copy)
    (copy / "notes.txt").write_text("mine")
    assert fingerprint(copy) == first != fingerprint(data_folder / "tiny-llama-gqa")
    for name, change in (
        ("model.onnx", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ("tokenizer.json", lambda data: data + b" "),
        ("genai_config.json", lambda data: data + b" "),
    ):
        before = (copy / name).read_bytes()
        (copy / name).write_bytes(change(before))
        assert fingerprint(copy) != first
        (copy / name).write_bytes(before)
    assert fingerprint(copy) == first


def test_large_weights_are_told_apart_by_size_and_ends(tmp_path):
    path = tmp_path / "model.onnx.data"
    found = set()
    for size, place in ((3 << 20, 0), (3 << 20, (3 << 20) - 1), ((3 << 20) + 1, 0)):
        with path.open("wb") as file:
            file.truncate(size)
            file.seek(place)
            file.write(b"x")
        found.add(fingerprint(tmp_path))
    assert len(found) == 3


def test_what_cannot_be_read_is_left_out(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"x")
    first = fingerprint(tmp_path)
    (tmp_path / "tokenizer.json").mkdir()
    (tmp_path / "lost.bin").symlink_to(tmp_path / "nowhere")
    assert fingerprint(tmp_path) == first
