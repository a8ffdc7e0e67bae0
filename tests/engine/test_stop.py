"""Stop from another thread: at every point, and the generator is as good as before."""

import threading

import numpy as np
import pytest

from app import engine as og

FOLDERS = ["tiny-llama", "tiny-llama-gqa"]


@pytest.fixture(params=FOLDERS)
def model(request, open_model):
    return open_model(request.param)


def equals_fresh(generator, model, generator_for):
    text = generator.get_sequence(0).tolist()
    fresh = generator_for(model)
    fresh.append_tokens(text)
    np.testing.assert_allclose(generator.get_logits(), fresh.get_logits(), atol=2e-4)


def test_a_stop_before_the_first_run_is_not_lost(model, generator_for):
    generator = generator_for(model)
    stop = og.Stop()
    stop.set()
    generator.use_stop(stop)
    with pytest.raises(og.Stopped):
        generator.append_tokens([40, 41])
    assert generator.token_count() == 0
    generator.use_stop(None)
    generator.append_tokens([40, 41])
    equals_fresh(generator, model, generator_for)


def test_a_stop_between_chunks_keeps_what_was_read(model, generator_for):
    generator = generator_for(model, chunk_size=8)
    stop = og.Stop()
    generator.use_stop(stop)
    text = list(range(100, 150))
    steps = generator.prefill(text)
    assert [next(steps), next(steps)] == [8, 16]
    stop.set()
    with pytest.raises(og.Stopped):
        next(steps)
    assert generator.get_sequence(0).tolist() == text[:16]
    generator.use_stop(None)
    equals_fresh(generator, model, generator_for)
    generator.append_tokens(text[16:])
    equals_fresh(generator, model, generator_for)


def test_a_stop_within_append_takes_all_of_it_back(model, generator_for):
    generator = generator_for(model, chunk_size=4)
    generator.append_tokens([40, 41, 42])
    generator.generate_next_token()
    before = generator.get_sequence(0).tolist()
    stop = og.Stop()
    generator.use_stop(stop)
    plain = generator._run

    def stops_in_the_third_chunk(tokens, **options):
        if generator.token_count() >= len(before) + 8:
            stop.set()
        plain(tokens, **options)

    generator._run = stops_in_the_third_chunk
    with pytest.raises(og.Stopped):
        generator.append_tokens(list(range(100, 130)))
    assert generator.get_sequence(0).tolist() == before
    generator._run = plain
    generator.use_stop(None)
    equals_fresh(generator, model, generator_for)


def test_a_stop_while_decoding_keeps_the_text(model, generator_for):
    generator = generator_for(model)
    generator.append_tokens([40, 41, 42])
    stop = og.Stop()
    generator.use_stop(stop)
    for _ in range(5):
        generator.generate_next_token()
    before = generator.get_sequence(0).tolist()
    stop.set()
    with pytest.raises(og.Stopped):
        generator.generate_next_token()
    assert generator.get_sequence(0).tolist() == before
    with pytest.raises(og.Stopped):
        generator.generate_next_token()
    generator.use_stop(og.Stop())
    equals_fresh(generator, model, generator_for)
    generator.generate_next_token()
    assert generator.token_count() == len(before) + 1


@pytest.mark.parametrize("after", range(1, 40, 6))
def test_a_stop_from_another_thread_at_any_token(after, model, generator_for):
    """The other thread waits for a count of tokens; where the run is then, is luck."""
    generator = generator_for(model, chunk_size=3)
    stop = og.Stop()
    generator.use_stop(stop)
    reached = threading.Event()

    def wait_and_stop():
        reached.wait()
        stop.set()

    other = threading.Thread(target=wait_and_stop)
    other.start()
    count = 0
    try:
        for _ in generator.prefill(list(range(100, 160))):
            count += 3
            if count >= after:
                reached.set()
        while not generator.is_done():
            generator.generate_next_token()
        generator.rewind_to(0)
        generator.append_tokens([40])
    except og.Stopped:
        pass
    reached.set()
    other.join()
    generator.use_stop(None)
    assert generator.get_sequence(0).tolist()[:60] == [
        *range(100, 100 + min(60, generator.token_count()))
    ]
    if generator.token_count():
        equals_fresh(generator, model, generator_for)


def test_a_run_in_flight_is_ended(generator_for, data_folder):
    """Set from another thread while session.run is inside a prompt of quadratic cost."""
    model = og.Model(data_folder / "tiny-llama")
    generator = generator_for(model, chunk_size=256)
    text = [40 + i % 400 for i in range(255)]
    stopped = 0
    for delay in range(40):
        stop = og.Stop()
        generator.use_stop(stop)
        started = threading.Barrier(2)

        def other(started=started, stop=stop, delay=delay):
            started.wait()
            for _ in range(delay * 50):
                pass
            stop.set()

        thread = threading.Thread(target=other)
        thread.start()
        started.wait()
        try:
            generator.append_tokens(text)
        except og.Stopped:
            stopped += 1
            assert generator.token_count() == 0
        else:
            generator.rewind_to(0)
        thread.join()
    generator.use_stop(None)
    generator.append_tokens(text)
    equals_fresh(generator, model, generator_for)
    assert stopped  # most of them, wherever the run was
