"""Design tokens: colours for light and dark, type, spacing, and the style sheet of the app.

Everything that paints asks `t()` or `color()` at paint time, so a switch of scheme is one call of
`apply()`. Only documents that are already laid out hold colours: TranscriptView.retheme() writes
them anew. Contrast of every pair in PAIRS holds in both schemes (tests/ui/test_theme.py).
"""

import sys
from dataclasses import dataclass, fields
from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QStyleFactory

from app.ui.schemes import DARK, LIGHT, STRONG, STRONG_DARK, STRONG_LIGHT, Tokens

APP_NAME = "Inglenook"  # the one place that holds the name


@dataclass
class _Look:
    """What is applied now. Written by apply() and set_text_scale() only, in the UI thread."""

    tokens: Tokens = LIGHT
    ui_px: int = 13
    text_scale: float = 1.0


_look = _Look()


def t() -> Tokens:
    """The scheme that is applied now."""
    return _look.tokens


def is_dark() -> bool:
    return _look.tokens.name == "dark"


def color(role: str, alpha: float = 1.0) -> QColor:
    """A role of the scheme, or a #RRGGBB value, as a colour."""
    value = QColor(role if role.startswith("#") else getattr(_look.tokens, role))
    if alpha < 1.0:
        value.setAlphaF(alpha)
    return value


# ---- metrics
S1, S2, S3, S4, S5, S6, S8 = 4, 8, 12, 16, 20, 24, 32  # a rhythm of 4 px
R_BADGE, R_CONTROL, R_CARD, R_POPOVER, R_PANEL = 4, 6, 8, 10, 12
H_ROW, H_CONTROL, H_BAR = 32, 30, 48
READING_WIDTH = 760  # column of the transcript and the composer
MOTION_MS = 140  # disclosures and panels; see motion_ms


def u(px: int) -> int:
    """A width designed at 13 px, grown with the UI font so that large text is not cut."""
    return round(px * _look.ui_px / 13)


def motion_ms(duration_ms: int = MOTION_MS) -> int:
    """How long a movement may take: not at all where the desktop asks for no animations."""
    style = QApplication.style()
    wanted = style.styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) if style else 0
    return duration_ms if wanted > 0 else 0


# ---- type: steps from the system's UI size, so the desktop's setting is kept
CAPTION, SMALL, BODY, READING, TITLE, DISPLAY = -2, -1, 0, 2, 4, 11
SMALLEST_UI_PX, LARGEST_UI_PX = 13, 20
SMALLEST_SCALE, LARGEST_SCALE = 80, 200
MONO_FAMILIES = [
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "Menlo",
    "DejaVu Sans Mono",
    "monospace",
]
FALLBACK_FAMILIES = ["Noto Sans", "Noto Sans CJK SC", "Noto Color Emoji"]


def ui_px() -> int:
    return _look.ui_px


def text_scale() -> float:
    """How much larger than designed the reading text is (1.0 = as designed)."""
    return _look.text_scale


def set_text_scale(percent: int) -> None:
    """Sets the size of reading text, 80 to 200 percent. Views lay out anew when told (retheme)."""
    _look.text_scale = min(max(percent, SMALLEST_SCALE), LARGEST_SCALE) / 100


@lru_cache(maxsize=1)
def ui_family() -> str:
    """The desktop's UI family; Inter where a Linux desktop names no real one but has it."""
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    if sys.platform.startswith("linux") and "Inter" in QFontDatabase.families():
        return "Inter"
    return system


@lru_cache(maxsize=256)
def _font(px: int, weight: int, is_mono: bool, is_title: bool) -> QFont:
    made = QFont()
    if is_mono:
        made.setFamilies(MONO_FAMILIES)
        made.setFeature(QFont.Tag("calt"), 0)  # no ligatures: `!=` must be read as typed
        made.setFixedPitch(True)
    else:
        made.setFamilies([ui_family(), *FALLBACK_FAMILIES])
    made.setPixelSize(px)
    made.setWeight(QFont.Weight(weight))
    made.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if is_title:
        made.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 98.5)
    return made


def font(step: int = BODY, weight: int = 400, mono: bool = False) -> QFont:
    """A font of the app's controls; the caller may change what it gets."""
    return QFont(_font(_look.ui_px + step, weight, mono, step >= TITLE))


def reading_px(step: int = READING) -> int:
    return max(1, round((_look.ui_px + step) * _look.text_scale))


def reading_font(step: int = READING, weight: int = 400, mono: bool = False) -> QFont:
    """A font of messages and of the composer: it follows the text size that the person chose."""
    return QFont(_font(reading_px(step), weight, mono, step >= TITLE))


def _system_px() -> int:
    """The desktop's own size, kept within what the layout was tried with."""
    size = QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)).pixelSize()
    return min(max(size, SMALLEST_UI_PX), LARGEST_UI_PX)


# ---- contrast
def luminance(value: str) -> float:
    """Relative luminance as WCAG 2 defines it."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4

    mixed = QColor(value)
    red, green, blue = (linear(c) for c in (mixed.redF(), mixed.greenF(), mixed.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _pairs(fronts: str, backs: str, least: float = 4.5) -> list[tuple[str, str, float]]:
    return [(front, back, least) for front in fronts.split() for back in backs.split()]


# (foreground, background, least contrast): text 4.5, boundaries of controls 3.
PAIRS = [
    *_pairs("text muted faint", "canvas chrome raised field bubble code"),
    *_pairs("text", "hover pressed selected accent_soft success_soft warning_soft danger_soft"),
    *_pairs("text", "p1 p2 p3 p4"),
    *_pairs("muted", "hover selected accent_soft warning_soft danger_soft success_soft"),
    *_pairs("faint", "hover"),
    *_pairs("accent", "canvas chrome raised accent_soft selected bubble"),
    *_pairs("on_accent", "accent"),
    *_pairs("on_danger", "danger"),
    *[
        pair
        for tone in ("success", "warning", "danger")
        for pair in _pairs(tone, f"canvas chrome raised {tone}_soft")
    ],
    *_pairs("syn_keyword syn_string syn_number syn_comment syn_name", "code"),
    *_pairs("control", "canvas chrome raised field", 3.0),
]


def contrast_report(*, is_strong: bool = False) -> list[tuple[str, str, float, float, float]]:
    """(foreground, background, least, in light, in dark) of every pair that must hold."""
    light, dark = (STRONG_LIGHT, STRONG_DARK) if is_strong else (LIGHT, DARK)
    stronger = {4.5: 7.0, 3.0: 4.5}

    def within(scheme: Tokens, front: str, back: str) -> float:
        return contrast(getattr(scheme, front), getattr(scheme, back))

    return [
        (
            front,
            back,
            stronger[least] if is_strong else least,
            within(light, front, back),
            within(dark, front, back),
        )
        for front, back, least in PAIRS
    ]


# ---- applying
def scheme_for(app: QApplication, choice: str = "system", *, is_strong: bool = False) -> Tokens:
    """The scheme of the person's choice: "light", "dark", or what the desktop shows."""
    is_dark = choice == "dark"
    if choice not in ("light", "dark"):
        is_dark = app.styleHints().colorScheme() == Qt.ColorScheme.Dark
    scheme = DARK if is_dark else LIGHT
    return STRONG[scheme] if is_strong else scheme


def apply(app: QApplication, scheme: Tokens) -> None:
    """Dresses the whole app. Called at start and whenever the scheme or the desktop changes."""
    _look.tokens = scheme
    _look.ui_px = _system_px()
    ui_family.cache_clear()
    _font.cache_clear()
    app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(palette(scheme))
    app.setFont(font())
    app.setStyleSheet(style_sheet(scheme))


def palette(scheme: Tokens) -> QPalette:
    role = QPalette.ColorRole
    made = QPalette()
    for part, value in {
        role.Window: scheme.chrome,
        role.WindowText: scheme.text,
        role.Base: scheme.field,
        role.AlternateBase: scheme.code,
        role.Text: scheme.text,
        role.Button: scheme.raised,
        role.ButtonText: scheme.text,
        role.BrightText: scheme.danger,
        role.ToolTipBase: scheme.raised,
        role.ToolTipText: scheme.text,
        role.PlaceholderText: scheme.faint,
        role.Highlight: scheme.accent,
        role.HighlightedText: scheme.on_accent,
        role.Link: scheme.accent,
        role.LinkVisited: scheme.accent,
        role.Accent: scheme.accent,
        role.Mid: scheme.line,
        role.Midlight: scheme.line,
        role.Dark: scheme.control,
        role.Light: scheme.raised,
        role.Shadow: scheme.shadow,
    }.items():
        made.setColor(part, QColor(value))
    for part in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, part, QColor(scheme.disabled))
    return made


LABEL_ROLES = ("text", "muted", "faint", "disabled", "accent", "success", "warning", "danger")

# Only what a palette cannot say, for standard controls. Rows, chips and messages paint themselves.
# QAbstractSpinBox: NoButtons beside a style sheet leaves an edit field of 1 px, so the buttons
# are hidden here instead.
STYLE_SHEET = """
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {line}; padding: 4px 8px; }}
QSplitter::handle {{ background: {line}; }}
QLineEdit, QPlainTextEdit#field, QSpinBox, QDoubleSpinBox {{
    background: {field}; color: {text}; border: 1px solid {control}; border-radius: 6px;
    padding: 0 8px; selection-background-color: {accent}; selection-color: {on_accent}; }}
QLineEdit {{ min-height: 28px; }}
QPlainTextEdit#field {{ padding: 6px 4px; }}
QLineEdit:hover, QPlainTextEdit#field:hover, QSpinBox:hover, QDoubleSpinBox:hover {{
    border-color: {muted}; }}
QLineEdit:focus, QPlainTextEdit#field:focus, QSpinBox:focus, QDoubleSpinBox:focus {{
    border: 2px solid {accent}; padding: 0 7px; }}
QPlainTextEdit#field:focus {{ padding: 5px 3px; }}
QLineEdit:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled {{
    color: {disabled}; border-color: {line}; background: transparent; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ width: 0; border: none; }}
QAbstractSpinBox QLineEdit {{ border: none; padding: 0 8px; min-height: 0;
    background: transparent; }}
QAbstractSpinBox QLineEdit:focus {{ border: none; padding: 0 8px; }}
QLineEdit#search {{ padding: 0 2px; }}
QScrollArea, QAbstractScrollArea {{ border: none; background: transparent; }}
QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
QScrollBar::handle:vertical {{ background: {control}; border-radius: 2px; min-height: 32px;
    margin: 3px 4px; }}
QScrollBar::handle:vertical:hover {{ background: {muted}; border-radius: 4px; margin: 2px; }}
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page {{
    background: none; border: none; height: 0; width: 0; }}
QScrollBar:horizontal {{ height: 0; }}
QMenu {{ background: {raised}; color: {text}; border: 1px solid {line}; padding: 4px; }}
QMenu::item {{ padding: 6px 24px 6px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {selected}; }}
QMenu::item:disabled {{ color: {disabled}; }}
QMenu::separator {{ height: 1px; background: {line}; margin: 4px 8px; }}
"""


def style_sheet(scheme: Tokens) -> str:
    values = {field.name: getattr(scheme, field.name) for field in fields(scheme)}
    labels = "".join(
        f'QLabel[role="{role}"] {{ color: {values[role]}; }}\n' for role in LABEL_ROLES
    )
    return STYLE_SHEET.format(**values) + labels
