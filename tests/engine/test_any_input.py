"""Every public method with anything at all: it works, or raises one of ours with a sentence.

Afterwards the generator's next logits and token are those of a fresh one over the same text.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from app import engine as og

SENTENCE = (og.EngineError, og.Stopped, ValueError, TypeError, KeyError)

relaxed = settings(
    deadline=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TYPES = [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float16, np.float32,
         np.float64, np.complex64, "U1", "O", "M8[s]", "S1"]  # fmt: skip
NAMES = ["input_ids", "attention_mask", "position_ids", "logits", "lora_A", "lora_B",
         "present.0.key", "past_key_values.0.key", "hidden_states", "logits_positions"]  # fmt: skip
texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", "\0", "\ud800", "a", "cpu", "json_schema", "regex", "x" * 5000, *NAMES]),
)
numbers = st.one_of(
    st.sampled_from([-1, 0, 1, 2, 5, 255, 256, 511, 512, 2**31, -(2**31), 2**63, 2**70, -(2**70)]),
    st.integers(0, 60),
    st.floats(),
    st.booleans(),
    st.sampled_from([np.int64(3), np.float32(0.5), np.bool_(True), np.int8(-1), 1 + 2j]),
)


@st.composite
def arrays(draw):
    """Of any type, shape and order, views too."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3)) if draw(st.booleans()) else [512]
    array = np.zeros(shape, draw(st.sampled_from(TYPES)))
    if array.dtype.kind in "biuf" and array.size:
        array.flat[0] = draw(st.sampled_from([0, 1, 7]))
    if array.dtype.kind == "f" and array.size and draw(st.booleans()):
        array.flat[-1] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return draw(st.sampled_from([array, array.T, array[::2] if array.ndim else array]))


def named_tensors(pairs):
    found = og.NamedTensors()
    for name, array in pairs:
        if array.dtype.kind in "biuf":
            found[name] = array
    return found


anything = st.one_of(
    st.none(),
    numbers,
    texts,
    st.binary(max_size=4),
    arrays(),
    st.lists(numbers, max_size=4),
    st.lists(texts, max_size=3),
    st.lists(st.lists(st.integers(0, 600), max_size=3), max_size=3),
    st.dictionaries(numbers.filter(lambda n: n == n), numbers, max_size=3),
    st.lists(st.tuples(st.sampled_from(NAMES), arrays()), max_size=3).map(named_tensors),
    st.builds(object),
    arrays().filter(lambda a: a.dtype.kind in "biuf").map(og.Tensor),
)
options = st.dictionaries(
    st.sampled_from(
        ["max_length", "min_length", "top_k", "top_p", "temperature", "repetition_penalty",
         "do_sample", "batch_size", "num_beams", "random_seed", "no_repeat_ngram_size", "min_p",
         "num_return_sequences", "chunk_size", "ngram_size", "max_draft_tokens", "nonsense"]
    ),
    anything,
    max_size=3,
)  # fmt: skip

METHODS = [
    ("append_tokens", 1), ("prefill", 1), ("generate_next_token", 0), ("get_next_tokens", 0),
    ("get_sequence", 1), ("get_logits", 0), ("set_logits", 1), ("rewind_to", 1), ("get_input", 1),
    ("get_output", 1), ("set_model_input", 2), ("set_inputs", 1), ("set_hidden_states", 1),
    ("set_active_adapter", 2), ("set_runtime_option", 2), ("snapshot_state", 0), ("is_done", 0),
    ("token_count", 0), ("set_logit_bias", 1), ("set_banned_tokens", 1),
    ("get_speculative_stats", 0),
]  # fmt: skip


@st.composite
def calls(draw):
    name, count = draw(st.sampled_from(METHODS))
    first = texts if name in ("get_input", "get_output", "set_model_input") else anything
    return name, tuple(draw(first if index == 0 else anything) for index in range(count))


def attempt(call, *arguments, **named):
    """The result, or None where it was refused; a refusal is one line of text."""
    try:
        result = call(*arguments, **named)
        return list(result) if hasattr(result, "__next__") else result
    except SENTENCE as error:
        refusal = error
    assert str(refusal).strip()
    assert not isinstance(refusal, og.EngineError) or len(str(refusal)) < 1000
    return None


def reset(generator, adapters):
    """Everything that may rightly change what comes next."""
    generator.set_runtime_option("terminate_session", "0")
    generator.set_logit_bias({})
    generator.set_banned_tokens(())
    generator.set_active_adapter(adapters, None)
    if generator.token_count() > 200:
        generator.rewind_to(200)
    if generator.token_count() == 0:
        generator.append_tokens([40, 41])


def check_fresh(generator, fresh):
    """Set logits are part of the state, and set inputs of what was read: read again without."""
    text = generator.get_sequence(0).tolist()
    generator.rewind_to(0)
    for one in (generator, fresh):
        one.append_tokens(text)
    np.testing.assert_allclose(generator.get_logits(), fresh.get_logits(), atol=2e-4)
    for one in (generator, fresh):
        one.generate_next_token()
    assert generator.get_next_tokens().tolist() == fresh.get_next_tokens().tolist()


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
@relaxed
@given(made=st.lists(calls(), max_size=8))
def test_any_calls_of_a_generator(name, made, open_model, generator_for):
    model = open_model(name)
    generator = generator_for(model)
    adapters = og.Adapters(model)
    generator.append_tokens([40, 41, 42])
    for method, arguments in made:
        note(f"{method} {arguments!r:.200}")
        attempt(getattr(generator, method), *arguments)
    reset(generator, adapters)
    attempt(generator.generate_next_token)  # inputs that were set for one run are used up
    check_fresh(generator, generator_for(model))


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
@relaxed
@given(refused=st.lists(st.tuples(st.sampled_from(METHODS), st.lists(anything, max_size=2))))
def test_what_is_refused_changes_nothing(name, refused, open_model, generator_for):
    """Only calls that raised are kept, so that not even the logits may differ."""
    model = open_model(name)
    subject, fresh = generator_for(model), generator_for(model)
    for generator in (subject, fresh):
        generator.append_tokens([40, 41, 42])
    for (method, _), arguments in refused:
        if method in ("append_tokens", "prefill", "generate_next_token", "set_model_input"):
            arguments = [object(), *arguments]  # all others change nothing when they succeed, or
        elif method in ("set_logits", "rewind_to", "set_inputs", "set_logit_bias"):
            arguments = [object()]
        elif method in ("set_banned_tokens", "set_runtime_option", "set_active_adapter"):
            arguments = [object()] * (1 if method == "set_banned_tokens" else 2)
        elif method == "set_hidden_states":
            arguments = [object()]
        note(f"{method} {arguments!r:.200}")
        attempt(getattr(subject, method), *arguments)
    for _ in range(3):
        np.testing.assert_array_equal(subject.get_logits(), fresh.get_logits())
        for generator in (subject, fresh):
            generator.generate_next_token()
        assert subject.get_sequence(0).tolist() == fresh.get_sequence(0).tolist()


@relaxed
@given(changes=options, speculative=options, bias=anything, banned=anything, words=anything)
def test_any_options_of_parameters(
    changes, speculative, bias, banned, words, open_model, generator_for
):
    model = open_model("tiny-llama")
    params = og.GeneratorParams(model)
    before = params.get_search_options()
    if attempt(lambda: params.set_search_options(**changes) or True) is None:
        assert params.get_search_options() == before
    attempt(params.set_speculative_options, **speculative)
    attempt(params.set_logit_bias, bias)
    attempt(params.set_banned_tokens, banned)
    attempt(params.set_guidance, words, words)
    attempt(params.set_guidance, "regex", words)
    generator = attempt(og.Generator, model, params)
    if generator is not None:
        attempt(generator.append_tokens, np.full((params.get_search_options()["batch_size"], 2), 9))
        attempt(generator.generate_next_token)
    live = generator_for(model)
    live.append_tokens([40, 41, 42])
    attempt(live.set_search_options, **changes)
    attempt(live.generate_next_token)
    for kind in (og.GeneratorParams, og.Adapters, og.Model, og.Config, og.Tokenizer):
        attempt(kind, words)
    attempt(og.Generator, words, params)
    attempt(og.Generator, model, words)


@relaxed
@given(one=anything, two=anything, named=options)
def test_any_calls_of_a_tokenizer(one, two, named, data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    for method in ("encode", "encode_plain", "encode_batch", "decode", "decode_batch",
                   "to_token_id", "apply_chat_template"):  # fmt: skip
        attempt(getattr(tokenizer, method), one)
    attempt(tokenizer.apply_chat_template, "[]", template_str=one, tools=two)
    attempt(tokenizer.apply_chat_template, one, template_str="{{ messages[0].content }}")
    attempt(tokenizer.update_options, **named)
    attempt(tokenizer.update_options, add_special_tokens=one)
    attempt(tokenizer.update_options, add_special_tokens=False, skip_special_tokens=True)
    stream = tokenizer.create_stream()
    attempt(stream.decode, one)
    attempt(stream.decode, two)
    stream.flush()
    ids = tokenizer.encode("What is left works")
    text = "".join(stream.decode(i) for i in ids) + stream.flush()
    assert text == tokenizer.decode(ids) == "What is left works"


@relaxed
@given(one=anything, two=anything, three=anything)
def test_any_calls_of_everything_else(one, two, three, data_folder, open_model, tmp_path):
    attempt(og.Tensor, one)
    named = og.NamedTensors()
    attempt(named.__setitem__, one, two)
    attempt(named.__getitem__, one)
    attempt(named.__delitem__, one)
    assert (one in named) in (True, False)
    adapters = og.Adapters(open_model("tiny-llama"))
    attempt(adapters.load, one, two)
    attempt(adapters.unload, one)
    config = og.Config(data_folder / "tiny-llama")
    for method in ("overlay", "append_provider", "remove_model_data",
                   "clear_decoder_provider_options_hardware_device_type"):  # fmt: skip
        attempt(getattr(config, method), one)
    for method in ("add_model_data", "set_decoder_provider_options_hardware_device_type",
                   "set_decoder_provider_options_hardware_device_id",
                   "set_decoder_provider_options_hardware_vendor_id"):  # fmt: skip
        attempt(getattr(config, method), one, two)
    attempt(config.set_provider_option, one, two, three)
    attempt(og.Config.from_package_ep, one, two)
    attempt(og.set_log_callback, one)
    og.set_log_callback(None)
    attempt(og.set_log_options, enabled=one)
    attempt(og.set_log_options, **{"nothing": one})
    og.set_log_options(enabled=False)
    attempt(og.set_current_gpu_device_id, one)
    og.set_current_gpu_device_id(0)
    attempt(og.register_execution_provider_library, one, two)
    attempt(og.unregister_execution_provider_library, one)
