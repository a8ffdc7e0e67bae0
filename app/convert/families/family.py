"""What a family's files do not say about it."""

from dataclasses import dataclass

from app.convert.decoder import Activation


@dataclass(frozen=True)
class Family:
    """`type` is what genai_config.json calls it, out of the names that its readers know.

    pairs_are_neighbours: the two values of a rotated pair lie side by side in the file's rows of
    query and key. window_period: every n-th layer sees all of the text, the others a window of
    what the file says, else of `window`; their positions turn by `local_base`, unscaled. With
    windows_everywhere no layer sees more. unrotated_period: every n-th layer has no positions.
    """

    type: str
    pairs_are_neighbours: bool = False
    activation: Activation = "silu"
    is_gated: bool = True
    is_centred: bool = False
    scales_embedding: bool = False
    window_period: int = 0
    windows_everywhere: bool = False
    window: int = 0
    local_base: float | None = None  # None: as all layers
    unrotated_period: int = 0
    layers_of_shared_width: int = 0
