"""How text is cut before byte-level BPE, for each kind that GGUF names: a table of patterns.

Each pattern cuts what the ones before it left; what none matches stays as one piece. The
patterns say the same as llama.cpp's and the original tokenizers'. A new kind is a new
row; those whose cuts need more than patterns (afmoe, superbpe) are not among them.
"""

# ruff: noqa: RUF001 - the letters are what is matched

from dataclasses import dataclass

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PUNCTUATED = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
)
_CHINESE_JAPANESE = "[一-龥぀-ゟ゠-ヿ]+"
_CASED_LETTERS = (  # of alphabets that have capitals, as DeepSeek's first tokenizers list them
    r"A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ"
    r"-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK"
    r"-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-"
    r"𐳲𑢠-𑣟𞤀-𞥃"
)


def _words(digits: str) -> str:
    """Words with the sign before them, digits in groups, signs with the line's end behind them."""
    return "|".join((_CONTRACTIONS, _LETTERS, digits, _SIGNS, _SPACES))


def _cased_words(
    digits: str, contractions: str = "", without: str = "", behind: str = r"[\r\n/]*"
) -> str:
    """As above, but a capital begins a new word."""
    upper, lower = (f"[{letters}{without}]" if without else letters for letters in (_UPPER, _LOWER))
    before = r"[^\r\n\p{L}\p{N}]?"
    return "|".join(
        (
            f"{before}{upper}*{lower}+{contractions}",
            f"{before}{upper}+{lower}*{contractions}",
            digits,
            rf" ?[^\s\p{{L}}\p{{N}}]+{behind}",
            _SPACES,
        )
    )


@dataclass(frozen=True)
class PreTokenizer:
    """`whole_words`: a piece that is in the vocabulary as it is needs no merges.

    `adds_bos`: a text begins with the token for its beginning, unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False


_ONE, _THREE = r"\p{N}", r"\p{N}{1,3}"
_MANY = r"\p{N}+"
_PLAIN = PreTokenizer((_GPT2,))
_LLAMA3 = PreTokenizer((_words(_THREE),), whole_words=True, adds_bos=True)
_GLM = PreTokenizer((_words(_THREE),))
_QWEN2 = PreTokenizer((_words(_ONE),))
_ONE_DIGIT = PreTokenizer((_ONE, _GPT2))
_SENTENCES = r" ?[^(\s|.,!?…。，、।۔،)]+"
_GPT4O = PreTokenizer((_cased_words(_THREE, f"{_CONTRACTIONS}?"),))
_DEEPSEEK3 = PreTokenizer(
    (_THREE, _CHINESE_JAPANESE, rf"{_PUNCTUATED}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}")
)
_BAILING = PreTokenizer(
    (
        rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_LETTERS}|{_ONE}|{_SIGNS}"
        r"|\s*[\r\n]|\s+(?!\S)|\s+",
    )
)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, _MANY, "[0-9][0-9][0-9]")),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de",
         "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion",
         "granite-docling", "exaone4"),
        _PLAIN,
    ),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "codeshell", "minerva-7b", "command-r", "exaone",
         "mellum2"),
        _ONE_DIGIT,
    ),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
         "lfm2", "jina-v5-nano"),
        _LLAMA3,
    ),
    **dict.fromkeys(("smaug-bpe", "dbrx", "chatglm-bpe"), _GLM),
    **dict.fromkeys(("glm4", "glm5"), PreTokenizer(_GLM.patterns, whole_words=True)),
    **dict.fromkeys(
        ("qwen2", "stablelm2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "hunyuan",
         "solar-open", "grok-2"),
        _QWEN2,
    ),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _GPT4O),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), _DEEPSEEK3),
    **dict.fromkeys(("poro-chat", "bloom", "gpt3-finnish"), PreTokenizer((_SENTENCES,))),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), _BAILING),
    **dict.fromkeys(
        ("tiny_aya", "cohere2moe"),
        PreTokenizer(
            (r"\d{1,3}(?=(?:\d{3})*\b)", _cased_words(_THREE, f"{_CONTRACTIONS}?"))
        ),
    ),
    "viking": PreTokenizer((_SENTENCES, _ONE)),
    "tekken": PreTokenizer((_cased_words(_ONE),), whole_words=True, adds_bos=True),
    "qwen35": PreTokenizer(
        (
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|{_ONE}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
        )
    ),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    "jais-2": PreTokenizer(
        (
            "|".join((_CONTRACTIONS, _LETTERS, _THREE, _SIGNS, r"\s*[\r\n]+"))
            + "".join(rf"|\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))
            + r"|\s{1,2}(?!\S)|\s{1}",
        )
    ),
    "minicpm5": PreTokenizer((_THREE, _words(_MANY)), whole_words=True),
    "seed-coder": PreTokenizer(
        ("|".join((_CONTRACTIONS, _LETTERS, _ONE, r" ?[^\s\p{L}\p{N}\r\n]+", _SPACES)),)
    ),
    "ufakzeka": PreTokenizer(("|".join((_LETTERS, _ONE, _SIGNS, _SPACES)),)),
    "laguna": PreTokenizer((r"[^\n]+|[\n]+", _words(_ONE))),
    "exaone-moe": PreTokenizer(
        (
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+"
            rf"|{_ONE}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        )
    ),
    "youtu": PreTokenizer(
        (
            "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + _CHINESE_JAPANESE,
            _cased_words(_ONE, f"{_CONTRACTIONS}?"),
        ),
        whole_words=True,
    ),
    "spark2_5": PreTokenizer(
        (
            _THREE,
            _CHINESE_JAPANESE,
            rf"{_PUNCTUATED}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+",
            _ONE,
        )
    ),
    "kimi-k2": PreTokenizer(
        (
            r"\p{Han}+|" + _cased_words(
                _THREE, f"{_CONTRACTIONS}?", without=r"&&[^\p{Han}]", behind=r"[\r\n]*"
            ),
        )
    ),
    "deepseek-llm": PreTokenizer(
        (
            r"[\r\n]",
            rf"\s?[{_CASED_LETTERS}]+",
            "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-퟿]+",
            _MANY,
        )
    ),
    "deepseek-coder": PreTokenizer(
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")
    ),
}  # fmt: skip
