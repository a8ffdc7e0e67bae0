"""What an answer costs with its tokens watched, with banned words, with guesses: beside none.

    python tests/bench/chat_tokens.py MODEL_FOLDER [--tokens 96] [--rounds 5]

The ways take turns, so that whatever else the machine does falls on all; a ratio is of one round.
Prints figures, asserts nothing.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from app.chat.events import Count, Finished, Inspect, Load, Reply  # noqa: E402
from app.chat.messages import Message, Options  # noqa: E402
from app.chat.session import ChatSession  # noqa: E402
from app.engine.stop import Stop  # noqa: E402

QUESTION = (Message.of("user", "Write a long story about a lighthouse and the people in it."),)
WAYS: dict[str, tuple[dict[str, object], bool]] = {
    "plain": ({}, False),
    "watched": ({}, True),
    "20 banned words": ({"banned": tuple(f"zebra{n} crossing" for n in range(20))}, False),
    "guesses": ({"guesses_ahead": True}, False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    session = ChatSession()
    list(session.handle(Load(0, str(given.model)), Stop()))
    speeds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(given.rounds):
        for name, (options, watches) in WAYS.items():
            chosen = Options(temperature=0.0, longest_answer=given.tokens, **options)  # type: ignore[arg-type]
            *_, end = session.handle(Reply(1, QUESTION, chosen, watches_tokens=watches), Stop())
            assert isinstance(end, Finished)
            speeds[name].append(end.stats.tokens_per_second)
    for name, found in speeds.items():
        pairs = zip(found, speeds["plain"], strict=True)
        ratio = statistics.median(one / plain for one, plain in pairs)
        print(f"{name:16}  {statistics.median(found):7.1f} tokens a second  {ratio:.3f} of plain")
    ids = tuple(session._loaded.tokenizer.encode_plain("a lighthouse keeper " * 64).tolist())  # type: ignore[union-attr]
    for name, request in {
        f"looking at {len(ids)} tokens": Inspect(2, QUESTION, Options(), ids),
        "counting 1,000 messages": Count(3, QUESTION * 1000, Options()),
        "counting them again": Count(4, QUESTION * 1000, Options()),
    }.items():
        start = time.perf_counter()
        list(session.handle(request, Stop()))
        print(f"{name}: {time.perf_counter() - start:.2f} s")
    session.close()


if __name__ == "__main__":
    main()
