"""The colour schemes: light and dark, each also with high contrast."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Tokens:
    """One colour scheme: a value per role, as #RRGGBB."""

    name: str
    # surfaces
    canvas: str  # reading surface: the transcript, pages
    chrome: str  # sidebar, inspector
    raised: str  # menus, popovers, composer
    field: str  # text inputs
    bubble: str  # the person's own messages
    code: str  # code blocks, table heads
    hover: str  # rows and buttons under the pointer, over chrome or canvas
    pressed: str
    selected: str
    # text
    text: str
    muted: str  # secondary text, icons
    faint: str  # tertiary text; still 4.5:1 on canvas and chrome
    disabled: str  # disabled only; exempt from contrast
    # lines
    line: str  # hairlines, decorative
    control: str  # boundary of inputs, switches, sliders: 3:1
    # brand and status
    accent: str
    on_accent: str
    accent_soft: str
    success: str
    success_soft: str
    warning: str
    warning_soft: str
    danger: str
    danger_soft: str
    on_danger: str
    # code colours
    syn_keyword: str
    syn_string: str
    syn_number: str
    syn_comment: str
    syn_name: str
    # doubt of a token, sure to unsure (backgrounds under `text`)
    p1: str
    p2: str
    p3: str
    p4: str
    shadow: str


LIGHT = Tokens(
    name="light",
    canvas="#FFFFFF",
    chrome="#F4F6F6",
    raised="#FFFFFF",
    field="#FFFFFF",
    bubble="#EDF2F2",
    code="#F5F7F7",
    hover="#E9EDED",
    pressed="#DDE3E4",
    selected="#DCE8E9",
    text="#1A1F21",
    muted="#505A5E",
    faint="#626C70",
    disabled="#A3ABAE",
    line="#DFE4E5",
    control="#858F93",
    accent="#0B6670",
    on_accent="#FFFFFF",
    accent_soft="#DFF0F1",
    success="#1E6B3A",
    success_soft="#E3F3E8",
    warning="#7F5000",
    warning_soft="#FCF0D9",
    danger="#AD2A21",
    danger_soft="#FCEBE9",
    on_danger="#FFFFFF",
    syn_keyword="#8A3B8F",
    syn_string="#2C6A33",
    syn_number="#9A4A00",
    syn_comment="#626C70",
    syn_name="#1F5FA8",
    p1="#FBF3DC",
    p2="#F8E0B4",
    p3="#F3C08F",
    p4="#EBA08A",
    shadow="#1A1F21",
)

DARK = Tokens(
    name="dark",
    canvas="#191C1E",
    chrome="#131617",
    raised="#222628",
    field="#1D2123",
    bubble="#262C2E",
    code="#131617",
    hover="#24292B",
    pressed="#2D3335",
    selected="#22393C",
    text="#E4E8E9",
    muted="#A7B0B3",
    faint="#919A9E",
    disabled="#596265",
    line="#2C3234",
    control="#6C767A",
    accent="#63C6CF",
    on_accent="#04272B",
    accent_soft="#17353A",
    success="#78CC93",
    success_soft="#182E20",
    warning="#E3B55F",
    warning_soft="#33280F",
    danger="#FF9A8F",
    danger_soft="#351E1C",
    on_danger="#3A0A06",
    syn_keyword="#D9A0DC",
    syn_string="#9CCB8F",
    syn_number="#E5AE78",
    syn_comment="#919A9E",
    syn_name="#8DBBEF",
    p1="#2E2A1C",
    p2="#493A19",
    p3="#63401F",
    p4="#7A3A2E",
    shadow="#000000",
)

# Text 7:1 and more on every ground, boundaries of controls 4.5:1 (WCAG 2.2, 1.4.6 and 1.4.11).
STRONG_LIGHT = replace(
    LIGHT,
    text="#000000",
    muted="#2F373A",
    faint="#343C3F",
    disabled="#767F83",
    line="#7C8589",
    control="#3F484B",
    accent="#074A52",
    success="#0C4421",
    warning="#543400",
    danger="#7A150E",
    syn_keyword="#5F1F64",
    syn_string="#153F1B",
    syn_number="#5E2C00",
    syn_comment="#343C3F",
    syn_name="#0F3D73",
)

STRONG_DARK = replace(
    DARK,
    canvas="#000000",
    chrome="#0B0D0E",
    raised="#101314",
    field="#000000",
    bubble="#1B2022",
    code="#0B0D0E",
    hover="#1E2325",
    pressed="#262C2E",
    text="#FFFFFF",
    muted="#D8DEE0",
    faint="#CBD2D4",
    disabled="#8A9397",
    line="#7A8488",
    control="#B0BABE",
    accent="#8EE6EE",
    on_accent="#001416",
    success="#A8EBBD",
    warning="#FFD98F",
    danger="#FFC4BD",
    on_danger="#1F0402",
    syn_keyword="#EBC6ED",
    syn_string="#BFE6B4",
    syn_number="#F7CBA3",
    syn_comment="#CBD2D4",
    syn_name="#BCDAFF",
    p3="#5A371A",
    p4="#6B3125",
)

STRONG = {LIGHT: STRONG_LIGHT, DARK: STRONG_DARK}
