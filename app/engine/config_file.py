"""Config: a model folder's genai_config.json before the model is opened, still open to changes."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.engine import config_guess
from app.engine import config_reader as reader
from app.engine.config import Configuration, DeviceFilter, Provider, provider_word
from app.engine.config_reader import CONFIG_NAME
from app.engine.errors import EngineError, ModelError, shown


class Config:
    """Takes the folder, or the .onnx file in it (which is then the decoder).

    A folder without the file is taken for what its config.json says.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder, onnx_name = _locate(path)
        has_config = (self.folder / CONFIG_NAME).is_file()
        self._document = (
            reader.read_json(self.folder / CONFIG_NAME)
            if has_config
            else config_guess.guess(self.folder, onnx_name)
        )
        if onnx_name and has_config:
            decoder = reader.section(reader.section(self._document, "model"), "decoder")
            decoder["filename"] = onnx_name
        found = reader.read_providers(self._document)
        self._provider_names = [provider.name for provider in found]
        self._providers = {provider.name: provider for provider in found}
        self._model_data: dict[str, bytes] = {}

    @staticmethod
    def from_package_ep(path: str | os.PathLike[str], ep: str = "") -> "Config":
        """A plain model folder, to be opened on this provider only ("": on those of its config).

        Packages that hold several variants of a model are not read: open the folder of one.
        """
        try:
            config = Config(path)
        except ModelError as error:
            text = f"{error} Of a package with several variants, open the folder of one."
            raise ModelError(text) from error
        if ep:
            config.clear_providers()
            config.append_provider(ep)
        return config

    def overlay(self, text: str) -> None:
        """Lay a second JSON document over the first: objects merge, everything else replaces."""
        try:
            above = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise EngineError(f"The overlay is not valid JSON: {error}") from error
        if not isinstance(above, dict):
            raise EngineError("The overlay must be a JSON object.")
        document = json.loads(json.dumps(self._document))
        _merge(document, above)
        found = reader.read_providers(document)
        names_providers = "provider_options" in reader.session_options(above)
        self._document = document
        for provider in found:
            known = self._providers.get(provider.name, Provider(provider.name))
            options = {**known.options, **provider.options}
            device = provider.device if provider.device != DeviceFilter() else known.device
            self._providers[provider.name] = Provider(provider.name, options, device)
        if names_providers:
            self._provider_names = [provider.name for provider in found]

    def append_provider(self, name: str) -> None:
        word = provider_word(name)
        if word not in self._provider_names:
            self._provider_names.append(word)

    def clear_providers(self) -> None:
        self._provider_names.clear()

    def set_provider_option(self, provider: str, key: str, value: str) -> None:
        known = self._provider(provider)
        options = {**known.options, str(key): str(value)}
        self._providers[known.name] = replace(known, options=options)

    def set_decoder_provider_options_hardware_device_type(self, provider: str, kind: str) -> None:
        """Of several devices of this provider, only those of this kind: cpu, gpu or npu."""
        self._choose_device(provider, kind=kind)

    def set_decoder_provider_options_hardware_device_id(self, provider: str, number: int) -> None:
        """Only the device with this number, as its maker gave it to the model of the device."""
        self._choose_device(provider, device_id=number)

    def set_decoder_provider_options_hardware_vendor_id(self, provider: str, number: int) -> None:
        """Only devices of this maker (its PCI number)."""
        self._choose_device(provider, vendor_id=number)

    def clear_decoder_provider_options_hardware_device_type(self, provider: str) -> None:
        self._choose_device(provider, kind=None)

    def clear_decoder_provider_options_hardware_device_id(self, provider: str) -> None:
        self._choose_device(provider, device_id=None)

    def clear_decoder_provider_options_hardware_vendor_id(self, provider: str) -> None:
        self._choose_device(provider, vendor_id=None)

    def _choose_device(self, provider: str, **values: Any) -> None:
        known = self._provider(provider)
        chosen = replace(known.device, **values)
        self._providers[known.name] = replace(known, device=chosen)

    def _provider(self, name: str) -> Provider:
        word = provider_word(name)
        return self._providers.get(word, Provider(word))

    def add_model_data(self, filename: str, data: bytes | bytearray | memoryview) -> None:
        """Use `data` in place of the file `filename`. Its external data stays in the folder."""
        if not isinstance(filename, str):
            raise TypeError(f"A file's name is text, not {type(filename).__name__}.")
        try:
            copied = bytes(memoryview(data))
        except TypeError as error:
            text = f"add_model_data takes bytes, not {type(data).__name__}."
            raise TypeError(text) from error
        if not copied:
            raise EngineError(f"The data given for {shown(filename)} is empty.")
        self._model_data[filename] = copied

    def remove_model_data(self, filename: str) -> None:
        if not isinstance(filename, str) or self._model_data.pop(filename, None) is None:
            raise EngineError(f"No data was added for {shown(filename)}.")

    def freeze(self) -> Configuration:
        model, search = reader.parse(self._document, self.folder)
        return Configuration(
            folder=self.folder,
            model=model,
            search=search,
            speculative=reader.parse_speculative(self._document),
            providers=tuple(self._provider(name) for name in self._provider_names),
            model_data=dict(self._model_data),
        )


def _locate(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """(folder, name of the .onnx file that was given or "")."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"A model is opened by the path of its folder, not {type(path).__name__}.")
    place = Path(path)
    onnx_name = ""
    if os.path.isfile(place):  # Path's own raises for a name that is too long
        if place.name == CONFIG_NAME:
            return place.parent, ""
        if place.suffix.lower() != ".onnx":
            raise ModelError(f"{place.name:.100} is not a model folder or an .onnx file.")
        file, place = place, config_guess.folder_of(place)
        onnx_name = file.relative_to(place).as_posix()
    if not os.path.isdir(place):
        raise ModelError(f"There is no model at {place!s:.300}.")
    if not any((place / name).is_file() for name in (CONFIG_NAME, config_guess.NAME)):
        raise ModelError(f"{place} is not a model folder: {CONFIG_NAME} is missing in it.")
    return place, onnx_name


def _merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = value
