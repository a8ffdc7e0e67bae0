"""What the published page of the Generator shows, in our own words, on tiny models."""

import numpy as np
import pytest

from app import engine as og

FOLDERS = ["tiny-llama", "tiny-llama-gqa", "tiny-spm"]


@pytest.fixture(params=FOLDERS)
def model(request, open_model):
    return open_model(request.param)


def test_a_prompt_is_continued_until_the_length_asked_for(model):
    tokenizer = og.Tokenizer(model)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=40, temperature=0.7)
    generator = og.Generator(model, params)
    prompt = tokenizer.encode("Pack my box with")
    generator.append_tokens(prompt)

    while not generator.is_done():
        generator.generate_next_token()

    sequence = generator.get_sequence(0)
    assert sequence.dtype == np.int32
    assert sequence[: len(prompt)].tolist() == prompt.tolist()
    assert len(sequence) == generator.token_count() <= 40
    assert tokenizer.decode(sequence).startswith("Pack my box with")


def test_a_tensor_and_a_list_are_as_good_as_an_array(model, generator_for):
    ids = og.Tokenizer(model).encode("A language model")
    answers = []
    for given in (ids, og.Tensor(ids), ids.tolist(), og.Tensor(ids.astype(np.int64))):
        generator = generator_for(model, max_length=20)
        generator.append_tokens(given)
        generator.generate_next_token()
        answers.append(generator.get_sequence(0).tolist())
    assert answers == [answers[0]] * 4


def test_streamed_text_is_the_decoded_sequence(model, generator_for):
    tokenizer = og.Tokenizer(model)
    stream = tokenizer.create_stream()
    generator = generator_for(model, max_length=60)
    prompt = tokenizer.encode("Tell me a story")
    generator.append_tokens(prompt)
    text = "".join(stream.decode(token) for token in prompt)
    while not generator.is_done():
        generator.generate_next_token()
        text += stream.decode(generator.get_next_tokens()[0])
    text += stream.flush()
    assert text == tokenizer.decode(generator.get_sequence(0))


def test_several_prompts_at_once_give_what_each_gives_alone(model, generator_for):
    tokenizer = og.Tokenizer(model)
    prompts = ["The first digits of pi are", "Hello world!", "What is the capital of France? The"]
    batch = tokenizer.encode_batch(prompts)
    width = batch.shape()[1]
    generator = generator_for(model, batch_size=len(prompts), max_length=width + 12)
    generator.append_tokens(batch)
    for _ in range(8):
        if not generator.is_done():
            generator.generate_next_token()

    for index, prompt in enumerate(prompts):
        alone = generator_for(model, max_length=width + 12)
        ids = tokenizer.encode(prompt)
        alone.append_tokens(ids)
        for _ in range(8):
            if not alone.is_done():
                alone.generate_next_token()
        mine = alone.get_sequence(0)[len(ids) :].tolist()
        in_batch = generator.get_sequence(index)[width:].tolist()
        assert in_batch[: len(mine)] == mine


def test_a_token_with_banned_logits_is_never_chosen(model, generator_for):
    tokenizer = og.Tokenizer(model)
    free = generator_for(model, max_length=40)
    free.append_tokens(tokenizer.encode("Once upon a time"))
    free.generate_next_token()
    banned = [int(free.get_next_tokens()[0]), tokenizer.to_token_id("a")]

    generator = generator_for(model, max_length=40)
    generator.append_tokens(tokenizer.encode("Once upon a time"))
    start = generator.token_count()
    while not generator.is_done():
        logits = generator.get_logits()
        assert logits.shape == (1, model.config.model.vocab_size)
        assert logits.dtype == np.float32
        for token_id in banned:
            logits[:, token_id] = -float("inf")
        generator.set_logits(logits)
        generator.generate_next_token()
    assert not set(banned) & set(generator.get_sequence(0)[start:].tolist())


def test_each_turn_starts_again_from_the_system_prompt(model, generator_for):
    tokenizer = og.Tokenizer(model)
    generator = generator_for(model, max_length=128)
    generator.append_tokens(tokenizer.encode("You are a helpful assistant."))
    system_length = generator.token_count()
    answers = []
    for question in ("Hello world!", "What is a house?", "Hello world!"):
        generator.append_tokens(tokenizer.encode(question))
        start = generator.token_count()
        for _ in range(10):
            if not generator.is_done():
                generator.generate_next_token()
        answers.append(generator.get_sequence(0)[start:].tolist())
        generator.rewind_to(system_length)
        assert generator.token_count() == system_length
    assert answers[0] == answers[2]


def test_inputs_and_outputs_are_read_by_name(model, generator_for):
    generator = generator_for(model, max_length=40)
    prompt = og.Tokenizer(model).encode("Hello world")
    generator.append_tokens(prompt)
    assert generator.get_input("input_ids").ravel().tolist() == prompt.tolist()
    assert generator.get_input("attention_mask").tolist() == [[1] * len(prompt)]
    logits = generator.get_output("logits")
    assert logits.shape == (1, len(prompt), model.config.model.vocab_size)
    np.testing.assert_allclose(logits[0, -1], generator.get_logits()[0], atol=1e-4)
    assert generator.get_output("present.0.key").shape[2] == len(prompt)
    generator.generate_next_token()
    generator.get_logits()
    assert generator.get_output("logits").shape[1] == 1


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_a_mask_of_ones_set_by_hand_changes_nothing(model, generator_for, kind):
    prompt = og.Tokenizer(model).encode("Hello world")
    plain, masked = (generator_for(model, max_length=30) for _ in range(2))
    plain.append_tokens(prompt)
    masked.set_model_input("attention_mask", np.ones((1, len(prompt)), kind))
    masked.append_tokens(prompt)
    for generator in (plain, masked):
        while not generator.is_done():
            generator.generate_next_token()
    assert plain.get_sequence(0).tolist() == masked.get_sequence(0).tolist()


def test_named_tensors_are_appended(model, generator_for):
    prompt = og.Tokenizer(model).encode("Hello world")
    tensors = og.NamedTensors()
    tensors["input_ids"] = prompt
    generator = generator_for(model, max_length=30)
    generator.set_inputs(tensors)
    assert generator.get_sequence(0).tolist() == prompt.tolist()


def test_runtime_options_are_taken_and_termination_can_be_undone(model, generator_for):
    generator = generator_for(model, max_length=30)
    generator.set_runtime_option("cuda_graph", "1")
    generator.append_tokens(og.Tokenizer(model).encode("Hello"))
    generator.set_runtime_option("terminate_session", "1")
    with pytest.raises(og.Stopped):
        generator.append_tokens([10])
    generator.set_runtime_option("terminate_session", "0")
    generator.append_tokens([10])
    generator.generate_next_token()


def test_search_options_change_between_tokens(model, generator_for):
    generator = generator_for(model, max_length=6)
    generator.append_tokens([40, 41, 42, 43, 44])
    generator.generate_next_token()
    assert generator.is_done()
    generator.set_search_options(max_length=12, do_sample=True, top_k=5, random_seed=3)
    while not generator.is_done():
        generator.generate_next_token()
    assert generator.token_count() > 6


def test_numbers_come_back_and_the_generator_keeps_its_own(model):
    params = og.GeneratorParams(model)
    params.set_search_options(
        max_length=np.int64(8), temperature=np.float32(0.5), do_sample=np.bool_(False)
    )
    assert params.get_search_options()["max_length"] == 8
    generator = og.Generator(model, params)
    params.set_search_options(max_length=4)
    generator.append_tokens([10, 11, 12, 13, 14])
    assert not generator.is_done()


def test_preferences_act_from_the_next_token_on(model, generator_for):
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=20)
    params.set_logit_bias({77: 1e4})
    generator = og.Generator(model, params)
    generator.append_tokens([40, 41])
    generator.generate_next_token()
    generator.set_banned_tokens([77])
    generator.set_logit_bias({78: 1e4})
    generator.generate_next_token()
    assert generator.get_sequence(0).tolist() == [40, 41, 77, 78]
    for wrong in (lambda: params.set_banned_tokens([-1]), lambda: params.set_logit_bias({1: "x"})):
        with pytest.raises((og.EngineError, ValueError)):
            wrong()
