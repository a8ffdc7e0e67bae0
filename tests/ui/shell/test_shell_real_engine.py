"""The window with the real session on a small real model: no part is a stand-in."""

from collections.abc import Callable
from typing import Any

import pytest

from app.__main__ import real_loop
from app.paths import Folders


@pytest.fixture
def real_desk(open_desk: Callable[..., Any], folders: Folders) -> Any:
    from app.chat.session import ChatSession

    return open_desk(folders, ChatSession())


def ask_greedily(desk: Any, text: str, tokens: int) -> Any:
    options = desk.window.inspector.options.numbers
    options["temperature"].field.setValue(0)
    options["repetition_penalty"].field.setValue(1)
    options["longest_answer"].field.setValue(tokens)
    desk.ask(text)
    return desk.store.messages(desk.chat.state.conversation_id)[-1]


def engine_alone(folder: Any, record: Any, text: str) -> tuple[int, ...]:
    """The tokens that the engine writes for the same question, without chat and window."""
    import json

    from app import engine as og

    model = og.Model(str(folder))
    tokenizer = og.Tokenizer(model)
    params = og.GeneratorParams(model)
    params.set_search_options(**record.details["stats"]["options"])
    question = json.dumps([{"role": "user", "content": text}])
    with og.Generator(model, params) as generator:
        prompt = tokenizer.encode(tokenizer.apply_chat_template(question))
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        written = generator.get_sequence(0).tolist()[len(prompt) :]
    model.close()
    return tuple(token for token in written if token not in tokenizer.eos_token_ids)


def test_the_window_stores_what_the_engine_alone_writes(real_desk: Any, folders: Folders) -> None:
    record = ask_greedily(real_desk, "Hello there", 12)
    assert record.token_ids
    assert record.token_ids == engine_alone(folders.models / "tiny-llama", record, "Hello there")
    assert record.details["stats"]["new_tokens"] == len(record.token_ids)
    assert real_desk.chat.state.model.device.upper() == "CPU"


def test_writing_again_reads_nothing_anew(real_desk: Any) -> None:
    first = ask_greedily(real_desk, "Hello", 6)
    real_desk.chat.write_last_again()
    real_desk.until_written()
    second = real_desk.store.messages(real_desk.chat.state.conversation_id)[-1]
    stats = second.details["stats"]
    assert second.id != first.id
    assert second.token_ids == first.token_ids
    assert stats["kept_tokens"] == stats["prompt_tokens"] - 1


def test_a_prompt_that_does_not_fit_is_said_by_how_much(real_desk: Any) -> None:
    length = real_desk.chat.state.model.context_length
    real_desk.say("word " * length)
    real_desk.until(lambda: real_desk.notice() is not None)
    real_desk.until_written()
    assert real_desk.notice().title == "Your message is longer than the model can read"
    assert f"more than fit into {length:,}" in real_desk.notice().text
    assert real_desk.composer.text().startswith("word word")


def test_the_engine_is_made_on_its_own_thread() -> None:
    loop = real_loop(lambda: None)
    loop.close()
    loop.run()  # closed: it returns
