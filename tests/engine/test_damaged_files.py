"""Files with any damage are refused with a sentence or used; none ends the process.

Each case prints its seed first, so that the last one shows even where the process ended.
"""

import copy
import json
import random
import shutil

import pytest

from app import engine as og

VALUES = [
    None, -1, 0, 1, 3, 2**31, 2**63, 2**70, 1.5, "", "x", "\0", "../x", "/etc/passwd", "%d",
    "a" * 300, [], {}, True, False, ["a", "b"], [[]], [1], {"a": 1}, [{}], [None], "input_ids",
    "logits", {"type": "Sequence"}, {"type": "ByteLevel"}, [{"cuda": {}}],
]  # fmt: skip
WORDS = [
    "sliding_window", "pipeline", "run_options", "encoder", "embedding", "tokenizer_dir",
    "past_names", "pad_token_id", "eos_token_id", "chat_template", "head_size", "seqlens_k",
    "hidden_states", "graph_optimization_level", "custom_ops_library", "intra_op_num_threads",
    "added_tokens", "normalizer", "decoder", "speculative",
]  # fmt: skip


def use(folder):
    """Everything that reads the folder's files, once."""
    with og.Model(folder) as model:
        tokenizer = og.Tokenizer(model)
        params = og.GeneratorParams(model)
        with og.Generator(model, params) as generator:
            rows = params.get_search_options()["batch_size"]
            generator.append_tokens([[40, 41]] * rows if rows > 1 else [40, 41])
            for _ in range(3):
                if not generator.is_done():
                    generator.generate_next_token()
            generator.get_sequence(0)
        for text in ("Hello <|user|> world", "", "\u4e2d\0\U0001f600"):
            for ids in (tokenizer.encode(text), tokenizer.encode_plain(text)):
                tokenizer.decode(ids)
            stream = tokenizer.create_stream()
            for token in ids:
                stream.decode(token)
            stream.flush()
        tokenizer.decode(list(range(520)))
        tokenizer.apply_chat_template([{"role": "user", "content": "x"}])


def attempt(folder):
    try:
        use(folder)
    except og.EngineError as error:
        refusal = str(error)
    else:
        return
    assert refusal.strip()
    assert len(refusal) < 1200


@pytest.fixture
def folder(data_folder, tmp_path):
    copied = tmp_path / "m"
    shutil.copytree(data_folder / "tiny-llama", copied)
    return copied


@pytest.mark.parametrize("name", ["model.onnx", "genai_config.json", "tokenizer.json"])
@pytest.mark.parametrize("seed", range(25))
def test_bytes_that_have_changed(name, seed, folder):
    print(f"seed {seed}")
    chance = random.Random(seed)
    data = bytearray((folder / name).read_bytes())
    for _ in range(chance.randint(1, 4)):
        end = chance.choice([400, 4000, len(data)])
        data[chance.randrange(min(end, len(data)))] = chance.randrange(256)
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    (folder / name).write_bytes(data)
    attempt(folder)


def objects(value):
    """Every dict in a JSON document."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from objects(part)


@pytest.mark.parametrize("name", ["genai_config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("seed", range(40))
def test_values_that_have_changed(name, seed, folder):
    print(f"seed {seed}")
    chance = random.Random(seed)
    document = json.loads((folder / name).read_text())
    for _ in range(chance.choice([1, 1, 2, 3])):
        section = chance.choice(list(objects(document)))
        key = chance.choice([*section, *WORDS])
        if chance.random() < 0.15:
            section.pop(key, None)
        else:
            section[key] = copy.deepcopy(chance.choice(VALUES))
    (folder / name).write_text(json.dumps(document))
    attempt(folder)
