"""Texts for graphs that take a fixed number of tokens a run, or that want long ones in parts.

Pads fill a run up. They stand before its text, masked, or after it, where they are read like text
that is taken back at once: attention only looks back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.config import ModelConfig
from app.engine.errors import EngineError, ModelError
from app.engine.feeds import Span, Tokens


@dataclass(frozen=True)
class InputWindows:
    """`width` tokens in a run of a prompt, `token_width` (1 or the same) in one of a single token.
    `past` is what a prompt's run can look back on besides itself; 0: everything."""

    width: int
    token_width: int
    is_fixed: bool
    pads_before: bool
    past: int = 0

    def check(self, rows: int, *, has_positions: bool) -> None:
        """What cannot be filled up with pads is refused."""
        if self.is_fixed and rows > 1:
            raise EngineError(
                "This model reads one text at a time: batch_size and num_beams must be 1."
            )
        if self.is_fixed and self.width > 1 and not has_positions:
            raise EngineError(
                f"A model with recurrent layers cannot be run by a graph that takes {self.width} "
                "tokens at a time: its state would remember the pads."
            )

    def spans(self, tokens: Tokens, start: int, pad_id: int) -> Iterator[Span]:
        """One for each run; what stands after its text is to be taken back."""
        done, count = 0, tokens.shape[1]
        while done < count:
            size = self._size(count - done, start + done)
            text = tokens[:, done : done + size]
            width = self.token_width if size == 1 and start + done else self.width
            pads = max(0, width - size) if self.is_fixed else 0
            before = pads if self.pads_before else 0
            after = pads - before
            padded = np.pad(text, ((0, 0), (before, after)), constant_values=pad_id)
            yield Span(padded, start + done, before, after)
            done += size

    def _size(self, left: int, start: int) -> int:
        """Of the next run. Where pads stand before the text, the first run is the short one."""
        if start and self.past and start > self.past and self.token_width == 1:
            return 1
        return (left - 1) % self.width + 1 if self.pads_before else min(left, self.width)


def input_windows(
    readers: Sequence[tuple[tuple[int, ...], bool, bool]], model: ModelConfig, *, slides: bool
) -> InputWindows | None:
    """`readers` are the graphs that read ids: (shape of the ids, runs on prompts, on tokens);
    `slides`: what they give of a cache is what is new of it."""
    window = model.decoder.sliding_window
    sizes = [(s[1], prompt, token) for s, prompt, token in readers if len(s) == 2 and s[1] > 0]
    of_prompt = max((size for size, prompt, _ in sizes if prompt), default=0)
    of_token = max((size for size, _, token in sizes if token), default=1)
    wanted = window.window_size if window is not None and window.slide_inputs else 0
    if of_prompt and wanted and of_prompt != wanted:
        raise ModelError(
            f"genai_config.json: model.decoder.sliding_window.window_size is {wanted}, "
            f"but the graph takes {of_prompt} tokens a run."
        )
    width = of_prompt or wanted
    if not width:
        return None
    return InputWindows(
        width=width,
        token_width=of_token,
        is_fixed=bool(of_prompt),
        pads_before=slides and (window is None or window.alignment == "right"),
        past=max(1, model.context_length - width) if slides else 0,
    )
