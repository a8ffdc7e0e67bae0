"""What users of onnxruntime-genai stumble over, each as the behaviour that they would expect.

Only what no other test states; docs/engine.md lists all of it with the tests.
"""

import gc
import json
import shutil
import weakref

import numpy as np
import onnxruntime
import pytest
import tokenizers

from app import engine as og


def copied(folder, to, **settings):
    """The folder again, with values of its genai_config.json's model changed."""
    shutil.copytree(folder, to)
    path = to / "genai_config.json"
    document = json.loads(path.read_text())
    document["model"].update(settings)
    path.write_text(json.dumps(document))
    return to


def continued(generator, count):
    for _ in range(count):
        if not generator.is_done():
            generator.generate_next_token()
    return generator.get_sequence(0).tolist()


# ---------------------------------------------------------------- a conversation


def test_a_turn_that_is_appended_equals_the_whole_talk_read_afresh(
    open_model, generator_for, reference, data_folder
):
    """The template's text so far, then only what the next turn adds to it: one BOS at most."""
    model = open_model("tiny-llama")
    tokenizer = og.Tokenizer(model)
    generator = generator_for(model)
    messages, known = [], ""
    for question in ("Hello", "What is a house?", "Why?"):
        messages.append({"role": "user", "content": question})
        whole = tokenizer.apply_chat_template(messages)
        assert whole.startswith(known)
        generator.append_tokens(tokenizer.encode(whole[len(known) :]))
        start = generator.token_count()
        answer = tokenizer.decode(continued(generator, 5)[start:])
        generator.rewind_to(start)  # the template writes the answer its own way
        messages.append({"role": "assistant", "content": answer})
        known = whole
    text = tokenizer.encode(known).tolist()
    assert generator.get_sequence(0).tolist() == text
    expected = reference(data_folder / "tiny-llama", text)
    np.testing.assert_allclose(generator.get_logits()[0], expected, atol=2e-4)


def test_each_row_of_a_batch_says_why_it_ended(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"), batch_size=2, max_length=6)
    generator.append_tokens([[40, 41], [42, 43]])
    assert generator.get_finish_reasons() == ["", ""]
    logits = generator.get_logits()
    logits[0, 5] = 1e4  # an end of text
    logits[1, 77] = 1e4
    generator.set_logits(logits)
    generator.generate_next_token()
    assert generator.get_finish_reasons() == ["eos", ""]
    pad = open_model("tiny-llama").config.model.pad_token_id
    while not generator.is_done():
        generator.generate_next_token()
        assert generator.get_next_tokens()[0] == pad
    assert generator.get_finish_reasons() == ["eos", "length"]
    generator.rewind_to(0)
    assert generator.get_finish_reasons() == ["", ""]


def test_end_of_text_can_be_held_back(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"), min_length=20, max_length=20)
    generator.append_tokens([40, 41])
    while not generator.is_done():
        logits = generator.get_logits()
        logits[0, [0, 5]] = 1e4  # both ends of text
        generator.set_logits(logits)
        generator.generate_next_token()
    assert not {0, 5} & set(generator.get_sequence(0).tolist())
    assert generator.get_finish_reasons() == ["length"]


@pytest.mark.parametrize("length", [0, 3, 9, 11])
def test_a_talk_with_pictures_features_may_be_rewound(length, open_model, generator_for):
    """Before the features, among them, behind them: what is read anew is given anew."""
    model = open_model("tiny-gemma3")
    image_id = og.Tokenizer(model).to_token_id("<image_soft_token>")
    features = np.random.default_rng(2).standard_normal((6, 32)).astype(np.float32)
    text = [40, 41, *[image_id] * 6, 42, 43, 44, 45]

    def read(generator, ids):
        count = ids.count(image_id)
        if count:
            generator.set_model_input("image_features", features[6 - count :])
        generator.append_tokens(ids)

    subject, fresh = (generator_for(model, max_length=60) for _ in range(2))
    read(subject, text)
    continued(subject, 5)
    subject.rewind_to(length)
    read(subject, text[length:])
    read(fresh, text)
    np.testing.assert_allclose(subject.get_logits(), fresh.get_logits(), atol=2e-4)
    assert continued(subject, 5) == continued(fresh, 5)


def test_a_later_turn_may_bring_features_of_its_own(open_model, generator_for):
    model = open_model("tiny-gemma3")
    image_id = og.Tokenizer(model).to_token_id("<image_soft_token>")
    features = np.random.default_rng(3).standard_normal((8, 32)).astype(np.float32)
    turns = [[40, *[image_id] * 5, 41], [42, *[image_id] * 3, 43]]
    subject, fresh = (generator_for(model, max_length=60) for _ in range(2))
    for turn, part in zip(turns, (features[:5], features[5:]), strict=True):
        inputs = og.NamedTensors()
        inputs["input_ids"] = np.array(turn)
        inputs["image_features"] = part
        subject.set_inputs(inputs)
    fresh.set_model_input("image_features", features)
    fresh.append_tokens(turns[0] + turns[1])
    np.testing.assert_allclose(subject.get_logits(), fresh.get_logits(), atol=2e-4)


# ---------------------------------------------------------------- memory and lengths


def test_closing_frees_the_weights_and_the_cache_at_once(data_folder):
    model = og.Model(data_folder / "tiny-llama-gqa")
    generator = og.Generator(model, og.GeneratorParams(model))
    generator.append_tokens([40, 41])
    weights = weakref.ref(model.session)
    cache = weakref.ref(generator._decoder)
    gc.disable()
    try:
        generator.close()
        assert cache() is None
        model.close()
        assert weights() is None
    finally:
        gc.enable()


def test_hundreds_of_equal_tokens_are_a_text_like_any_other(
    open_model, generator_for, reference, data_folder
):
    for name in ("tiny-llama", "tiny-llama-gqa"):
        generator = generator_for(open_model(name))
        generator.append_tokens([77] * 250)
        expected = reference(data_folder / name, [77] * 250)
        np.testing.assert_allclose(generator.get_logits()[0], expected, atol=2e-4)


# ---------------------------------------------------------------- tokenizer


def test_added_tokens_take_the_white_space_beside_them_as_the_library_does(data_folder, tmp_path):
    folder = copied(data_folder / "tiny-llama", tmp_path / "m")
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    ids = {token["id"] for token in document["added_tokens"]} | set(range(512, 520))
    for index, flags in enumerate(({"lstrip": True}, {"rstrip": True}, {"single_word": True})):
        token = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
        token |= {"id": max(ids) + 1 + index, "content": f"<|{index}|>", "special": True, **flags}
        document["added_tokens"].append(token)
    path.write_text(json.dumps(document))
    ours, library = og.Tokenizer(folder), tokenizers.Tokenizer.from_file(str(path))
    for text in ("a <|0|> b", "a  <|1|>  b", "a<|2|>b <|2|> c", "<|0|><|1|>\n <|0|>"):
        expected = library.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).tolist() == expected


def test_any_class_name_of_a_tokenizer_will_do(data_folder, tmp_path):
    folder = copied(data_folder / "tiny-llama", tmp_path / "m")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"tokenizer_class": "TokenizerOfTomorrow"}))
    plain = og.Tokenizer(data_folder / "tiny-llama")
    assert og.Tokenizer(folder).encode("Hello").tolist() == plain.encode("Hello").tolist()


def test_nothing_is_cut_at_a_nul(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    assert tokenizer.decode(tokenizer.encode("before\0after")) == "before\0after"


def test_an_unknown_piece_can_ban_no_token(open_model):
    model = open_model("tiny-llama")
    unknown = og.Tokenizer(model).to_token_id("no such piece")
    assert unknown == -1
    params = og.GeneratorParams(model)
    with pytest.raises(og.EngineError, match="Token -1"):
        params.set_banned_tokens([unknown])


# ---------------------------------------------------------------- choosing


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_k": 40, "temperature": 0.0}], ids=str)
def test_sampling_that_cannot_act_is_told(options, open_model, generator_for):
    lines = []
    og.set_log_options(enabled=True, warning=True)
    og.set_log_callback(lines.append)
    try:
        generator_for(open_model("tiny-llama"), do_sample=True, **options)
        assert len(lines) == 1
        assert "no effect" in lines[0]
        generator_for(open_model("tiny-llama"), do_sample=True, top_k=40)
        assert len(lines) == 1
    finally:
        og.set_log_callback(None)
        og.set_log_options(enabled=False, warning=False)


def test_options_that_act_can_be_read(open_model):
    """Exporters write top_k 1 into the config, and users wonder: it is there to be seen."""
    params = og.GeneratorParams(open_model("tiny-llama"))
    assert params.get_search_options()["top_k"] == 1
    params.set_search_options(top_k=40)
    assert params.get_search_options()["top_k"] == 40


def test_hidden_states_of_a_prompt_are_read_by_name(open_model, generator_for, data_folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        str(data_folder / "tiny-llama-gqa" / "model.onnx"),
        options,
        providers=["CPUExecutionProvider"],
    )
    feeds = {"input_ids": np.array([[40, 41, 42]]), "attention_mask": np.ones((1, 3), np.int64)}
    for info in session.get_inputs():
        if info.name.startswith("past"):
            feeds[info.name] = np.zeros((1, 2, 0, 16), np.float32)
    expected = session.run(["hidden_states"], feeds)[0]
    generator = generator_for(open_model("tiny-llama-gqa"))
    generator.append_tokens([40, 41, 42])
    np.testing.assert_allclose(generator.get_output("hidden_states"), expected, atol=1e-4)


# ---------------------------------------------------------------- opening


@pytest.mark.parametrize("ids", [5, [5], [5, 0]])
def test_end_of_text_is_one_id_or_a_list(ids, data_folder, tmp_path):
    folder = copied(data_folder / "tiny-llama", tmp_path / "m", eos_token_id=ids)
    expected = [ids] if isinstance(ids, int) else ids
    assert og.Tokenizer(folder).eos_token_ids.tolist() == expected


@pytest.mark.parametrize("kind", ["olmo2", "qwen3_moe", "falcon", "something new", ""])
def test_the_graph_decides_and_not_the_models_type(
    kind, data_folder, tmp_path, open_model, generator_for
):
    folder = copied(data_folder / "tiny-llama", tmp_path / "m", type=kind)
    plain = generator_for(open_model("tiny-llama"), max_length=30)
    plain.append_tokens([40, 41])
    with og.Model(folder) as model:
        subject = generator_for(model, max_length=30)
        subject.append_tokens([40, 41])
        assert continued(subject, 30) == continued(plain, 30)
