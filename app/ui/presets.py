"""The three ways to write that everyone finds: numbers under a name. Pure."""

from dataclasses import dataclass

from app.chat.messages import Options


@dataclass(frozen=True)
class Preset:
    name: str
    temperature: float
    top_p: float
    top_k: int


PRESETS = (
    Preset("Precise", 0.2, 0.90, 20),
    Preset("Balanced", 0.7, 0.95, 50),
    Preset("Creative", 1.1, 0.98, 100),
)
CUSTOM = len(PRESETS)


def preset_of(options: Options) -> int:
    """The place of the preset that has these numbers; CUSTOM for any others."""
    values = (options.temperature, options.top_p, options.top_k)
    fitting = [i for i, p in enumerate(PRESETS) if (p.temperature, p.top_p, p.top_k) == values]
    return fitting[0] if fitting else CUSTOM
