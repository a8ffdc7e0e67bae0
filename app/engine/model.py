"""Model: a folder opened for use. One session, which any number of Generators may share."""

import os

from app.engine import graph
from app.engine.cache import Slot, find_slots
from app.engine.config import Config, Configuration
from app.engine.errors import EngineError, ModelError
from app.engine.session import BFLOAT16, FLOAT, FLOAT16, Session


class Model:
    """Opened from the folder, the .onnx file in it, or a Config with changes."""

    def __init__(self, source: str | os.PathLike[str] | Config) -> None:
        config = source if isinstance(source, Config) else Config(source)
        self.config: Configuration = config.freeze()
        self.type = self.config.model.type
        self._session: Session | None = None
        self._session, self.slots, self.shares_cache = _open(self.config)
        self.device_type = self._session.device_type

    @property
    def session(self) -> Session:
        if self._session is None:
            raise EngineError("This model is closed.")
        return self._session

    def close(self) -> None:
        """Give the weights' memory back, as soon as the model's generators are closed too."""
        self._session = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open(config: Configuration) -> tuple[Session, list[Slot], bool]:
    decoder = config.model.decoder
    if not decoder.filename:
        raise ModelError("genai_config.json: model.decoder.filename is missing.")
    path = config.folder / decoder.filename
    data = config.model_data.get(decoder.filename)
    if data is None and not os.path.isfile(path):  # Path's own raises for too long a name
        raise ModelError(f"{path.name} is missing in {config.folder}.")
    edited = graph.prepare(
        data if data is not None else path,
        logits=decoder.outputs["logits"],
        past=(decoder.inputs["past_key_names"], decoder.inputs["past_value_names"]),
        folder=path.parent,
        name=path.name,
    )
    session = Session(
        path,
        edited,
        data=data,
        session_options=decoder.session_options,
        providers=config.providers,
    )
    _check(session, config)
    slots = find_slots(session, decoder)
    shares = edited.shares_cache
    if shares is None:
        shares = config.search.past_present_share_buffer
    return session, slots, shares


def _check(session: Session, config: Configuration) -> None:
    decoder = config.model.decoder
    name = decoder.outputs["logits"]
    if name not in session.outputs:
        raise ModelError(f"{decoder.filename} has no output named {name}.")
    logits = session.outputs[name]
    if len(logits.shape) != 3 or logits.element_type not in (FLOAT, FLOAT16, BFLOAT16):
        raise ModelError(f"The output {name} of {decoder.filename} has an unknown form.")
    if 0 <= logits.shape[2] < config.model.vocab_size:
        raise ModelError(
            f"genai_config.json says vocab_size {config.model.vocab_size}, "
            f"but {decoder.filename} gives {logits.shape[2]} values."
        )
    if decoder.inputs["input_ids"] not in session.inputs:
        raise ModelError(
            f"{decoder.filename} has no input named {decoder.inputs['input_ids']}; "
            "only models that read text tokens are supported."
        )
