"""The engine tells its steps to whom it was told to, and to nobody by default."""

import pytest

from app import engine as og

SWITCHES = [
    "append_next_tokens", "generate_next_token", "hit_eos", "hit_max_length", "model_input_values",
    "model_logits", "model_output_shapes", "model_output_values",
]  # fmt: skip


@pytest.fixture
def lines():
    found = []
    og.set_log_callback(found.append)
    yield found
    og.set_log_callback(None)
    og.set_log_options(
        enabled=False, ansi_tags=False, filename="", **dict.fromkeys(SWITCHES, False)
    )


def write(generator):
    generator.append_tokens([40, 41])
    generator.generate_next_token()
    logits = generator.get_logits()
    logits[0, 5] = 1e4
    generator.set_logits(logits)
    generator.generate_next_token()


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_tells_its_own(switch, lines, open_model, generator_for):
    og.set_log_options(enabled=True, **{switch: True})
    write(generator_for(open_model("tiny-llama"), max_length=8))
    full = generator_for(open_model("tiny-llama"), max_length=3)
    full.append_tokens([40, 41])
    full.generate_next_token()
    assert lines
    assert all(line.startswith(f"{switch}: ") for line in lines)


def test_nothing_is_told_until_it_is_enabled(lines, open_model, generator_for):
    og.set_log_options(**dict.fromkeys(SWITCHES, True))
    write(generator_for(open_model("tiny-llama"), max_length=4))
    assert lines == []


def test_a_file_takes_the_place_of_the_callback(lines, open_model, generator_for, tmp_path):
    path = tmp_path / "\u65e5\u8a8c.log"
    og.set_log_options(enabled=True, generate_next_token=True, filename=str(path))
    write(generator_for(open_model("tiny-llama"), max_length=4))
    assert lines == []
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


def test_a_callback_or_a_file_that_fails_loses_its_line_and_nothing_else(
    lines, open_model, generator_for, tmp_path, caplog
):
    def fails(line):
        raise OSError("the disk is full")

    og.set_log_options(enabled=True, **dict.fromkeys(SWITCHES, True))
    og.set_log_callback(fails)
    texts = []
    for place in ("", str(tmp_path / "gone" / "engine.log")):
        if place:
            (tmp_path / "gone").mkdir()
            og.set_log_options(filename=place)
            (tmp_path / "gone" / "engine.log").unlink()
            (tmp_path / "gone").rmdir()
        generator = generator_for(open_model("tiny-llama"), max_length=8)
        write(generator)
        texts.append(generator.get_sequence(0).tolist())
        assert "was lost" in caplog.text
        caplog.clear()
    og.set_log_options(enabled=False, filename="")
    generator = generator_for(open_model("tiny-llama"), max_length=8)
    write(generator)
    assert texts == [generator.get_sequence(0).tolist()] * 2


def test_tags_are_for_terminals(lines, open_model, generator_for):
    og.set_log_options(enabled=True, generate_next_token=True, ansi_tags=True)
    write(generator_for(open_model("tiny-llama"), max_length=4))
    assert all("\x1b[" in line for line in lines)


def test_the_current_device_is_remembered():
    assert og.get_current_gpu_device_id() == 0
    og.set_current_gpu_device_id(1)
    assert og.get_current_gpu_device_id() == 1
    og.set_current_gpu_device_id(0)
