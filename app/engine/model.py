"""Model: a folder opened for use. Its graphs, in the order in which a run goes through them.

Any number of Generators may share one. What a graph is for is told by its inputs and outputs, not
by the name of the model's type.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.engine import graph
from app.engine.caches.window import capacity_of
from app.engine.config import Configuration, ModelConfig
from app.engine.config_file import Config
from app.engine.errors import EngineError, ModelError
from app.engine.input_windows import InputWindows, input_windows
from app.engine.session import BFLOAT16, FLOAT, FLOAT16, Session
from app.engine.slots import Slot, find_slots
from app.engine.window_edits import Way

# From this length on these models turn positions by other factors, also those read before.
_SWITCH_LENGTHS = {"phi3": 4097, "phimoe": 4097, "phi3small": 8193}


@dataclass(frozen=True)
class Part:
    """One graph, opened: when it runs, and what later graphs call its outputs."""

    name: str
    session: Session
    renamed: Mapping[str, str] = field(default_factory=dict)
    runs_on_prompt: bool = True
    runs_on_token: bool = True
    runs_once: bool = False  # an encoder: again only when its inputs change
    is_lm_head: bool = False  # left out where nobody wants the logits


@dataclass(frozen=True)
class _Plan:
    """A Part before it is opened."""

    name: str
    filename: str
    session_options: Mapping[str, Any]
    renamed: Mapping[str, str] = field(default_factory=dict)
    runs_on_prompt: bool = True
    runs_on_token: bool = True
    runs_once: bool = False
    is_lm_head: bool = False


class Model:
    """Opened from the folder, the .onnx file in it, or a Config with changes."""

    def __init__(self, source: str | os.PathLike[str] | Config) -> None:
        config = source if isinstance(source, Config) else Config(source)
        self.config: Configuration = config.freeze()
        model = self.config.model
        self.type = model.type
        shares: list[bool] = []
        self._parts = [_open(plan, self.config, shares) for plan in _plans(model)]
        _check(self._parts, self.config)
        self.slots: list[Slot] = find_slots(
            (p.session for p in self._parts), model.decoder, model.context_length
        )
        self.shares_cache = all(shares) if shares else self.config.search.past_present_share_buffer
        self.input_names = _input_names(model)
        ids = self.input_names["input_ids"]
        self.input_windows: InputWindows | None = input_windows(
            [
                (p.session.inputs[ids].shape, p.runs_on_prompt, p.runs_on_token)
                for p in self._parts
                if ids in p.session.inputs and not p.runs_once
            ],
            model,
            slides=any(slot.gives_new_only for slot in self.slots),
        )
        switch = _SWITCH_LENGTHS.get(model.type, 0)
        self.switch_length = switch if switch <= model.context_length else 0
        self.device_type = self._parts[-1].session.device_type

    @property
    def parts(self) -> list[Part]:
        if not self._parts:
            raise EngineError("This model is closed.")
        return self._parts

    @property
    def session(self) -> Session:
        """That of the last graph, which gives the logits."""
        return self.parts[-1].session

    def close(self) -> None:
        """Give the weights' memory back, as soon as the model's generators are closed too."""
        self._parts = []
        self.slots = []

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _input_names(model: ModelConfig) -> dict[str, str]:
    """Our word -> name in the graphs. The embedding reads the same ids as the decoder."""
    names = dict(model.decoder.inputs)
    if model.embedding is not None:
        names |= model.embedding.inputs
    elif model.encoder is not None:
        names["audio_features"] = ""  # the encoder's own, to be set
    return names


def _plans(model: ModelConfig) -> list[_Plan]:
    decoder, encoder, embedding = model.decoder, model.encoder, model.embedding
    plans = []
    if encoder is not None and encoder.filename:
        keys, values = (
            decoder.inputs["cross_past_key_names"],
            decoder.inputs["cross_past_value_names"],
        )
        states = decoder.inputs["encoder_hidden_states"]
        renamed = {
            encoder.outputs["cross_present_key_names"]: keys,
            encoder.outputs["cross_present_value_names"]: values,
            encoder.outputs["encoder_hidden_states"]: states,
            encoder.outputs["encoder_outputs"]: states,
        }
        plans.append(
            _Plan("encoder", encoder.filename, encoder.session_options, renamed, runs_once=True)
        )
    if embedding is not None and embedding.filename:
        renamed = {name: decoder.inputs.get(word, word) for word, name in embedding.outputs.items()}
        plans.append(_Plan("embedding", embedding.filename, embedding.session_options, renamed))
    for stage in decoder.pipeline:
        plans.append(
            _Plan(
                stage.name,
                stage.filename,
                stage.session_options,
                stage.renamed,
                runs_on_prompt=stage.runs_on_prompt,
                runs_on_token=stage.runs_on_token,
                is_lm_head=stage.is_lm_head,
            )
        )
    if not decoder.pipeline:
        plans.append(_Plan("decoder", decoder.filename, decoder.session_options))
    return plans


def _open(plan: _Plan, config: Configuration, shares: list[bool]) -> Part:
    """Open one graph; `shares` is told whether its cache, if it has one, may be one buffer."""
    if not plan.filename:
        raise ModelError(f"genai_config.json: model.{plan.name}.filename is missing.")
    path = config.folder / plan.filename
    data = config.model_data.get(plan.filename)
    if data is None and not os.path.isfile(path):  # Path's own raises for too long a name
        raise ModelError(f"{path.name} is missing in {config.folder}.")
    try:
        edited, session = _open_session(plan, config, path, data)
    except UnicodeError as error:  # the runtime's names and messages may hold the file's bytes
        raise ModelError(f"{path.name} cannot be loaded: a name in it is not text.") from error
    if edited.shares_cache is not None:
        shares.append(edited.shares_cache)
    return Part(
        name=plan.name,
        session=session,
        renamed=_with_layers(plan.renamed, session),
        runs_on_prompt=plan.runs_on_prompt,
        runs_on_token=plan.runs_on_token,
        runs_once=plan.runs_once,
        is_lm_head=plan.is_lm_head,
    )


def _open_session(
    plan: _Plan, config: Configuration, path: Path, data: bytes | None
) -> tuple[graph.Graph, Session]:
    decoder = config.model.decoder
    edited = graph.prepare(
        data if data is not None else path,
        logits=decoder.outputs["logits"],
        past=tuple(
            decoder.inputs[word]
            for word in ("past_key_names", "past_value_names", "past_names")
            if decoder.inputs[word]
        ),
        folder=path.parent,
        name=path.name,
        window_way=lambda window: _window_way(window, config),
    )
    session = Session(
        path,
        edited,
        data=data,
        session_options=plan.session_options,
        providers=config.providers,
    )
    return edited, session


def _window_way(window: int, config: Configuration) -> Way:
    """How caches hold no more than a window, where it pays and has been measured to be right."""
    if config.model.context_length <= 2 * capacity_of(window):
        return "whole"
    names = {provider.name for provider in config.providers} - {"cpu"}
    return "evicts" if not names else "shifts" if names == {"webgpu"} else "whole"


def _with_layers(renamed: Mapping[str, str], session: Session) -> dict[str, str]:
    """Patterns (%d) spelt out for the outputs that the graph has."""
    found = {}
    for name, target in renamed.items():
        if not target:
            continue
        if "%d" not in name:
            found[name] = target
            continue
        for layer in range(len(session.outputs)):
            output = name.replace("%d", str(layer))
            if output in session.outputs:
                found[output] = target.replace("%d", str(layer))
    return found


def _check(parts: list[Part], config: Configuration) -> None:
    decoder = config.model.decoder
    name = decoder.outputs["logits"]
    last = decoder.pipeline[-1].filename if decoder.pipeline else decoder.filename
    heads = [part for part in parts if name in part.session.outputs]
    if not heads:
        raise ModelError(f"{last} has no output named {name}.")
    logits = heads[0].session.outputs[name]
    if len(logits.shape) not in (2, 3) or logits.element_type not in (FLOAT, FLOAT16, BFLOAT16):
        raise ModelError(f"The output {name} of {last} has an unknown form.")
    if 0 <= logits.shape[-1] < config.model.vocab_size:
        raise ModelError(
            f"genai_config.json says vocab_size {config.model.vocab_size}, "
            f"but {last} gives {logits.shape[-1]} values."
        )
    readable = {decoder.inputs["input_ids"], decoder.inputs["inputs_embeds"]}
    if not any(readable & set(part.session.inputs) for part in parts):
        raise ModelError(
            f"{last} has no input named {decoder.inputs['input_ids']}; "
            "only models that read text tokens are supported."
        )
