"""All controls by one name, for the screens: `from app.ui.controls import Chip, Label, box`."""

from app.ui.buttons import Chip, IconButton, PushButton, Radio, Segmented, Switch, button
from app.ui.containers import Flow, Panel, Popover, box
from app.ui.labels import Badge, ElidedLabel, HLine, IconLabel, Label
from app.ui.meters import Meter, Ring, Segment, SegmentMeter, Slider, paint_meter, tone_of
from app.ui.painting import (
    fill_round,
    focus_ring,
    paint_badge,
    painter,
    soft_shadow,
    text_width,
)

__all__ = [
    "Badge",
    "Chip",
    "ElidedLabel",
    "Flow",
    "HLine",
    "IconButton",
    "IconLabel",
    "Label",
    "Meter",
    "Panel",
    "Popover",
    "PushButton",
    "Radio",
    "Ring",
    "Segment",
    "SegmentMeter",
    "Segmented",
    "Slider",
    "Switch",
    "box",
    "button",
    "fill_round",
    "focus_ring",
    "paint_badge",
    "paint_meter",
    "painter",
    "soft_shadow",
    "text_width",
    "tone_of",
]
