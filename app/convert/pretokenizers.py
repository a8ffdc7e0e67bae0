"""How text is cut before byte-level BPE, for each kind that GGUF names: a table of patterns.

Each pattern cuts what the ones before it left; what none matches stays as one piece. The
patterns say the same as llama.cpp's and the original tokenizers'. A new kind is a new row.
"""

from dataclasses import dataclass

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORDS = r"|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizer:
    """`whole_words`: a piece that is in the vocabulary as it is needs no merges."""

    patterns: tuple[str, ...]
    whole_words: bool = False


_LLAMA3 = PreTokenizer((_CONTRACTIONS + _WORDS + r"|\p{N}{1,3}" + _REST,), whole_words=True)
_ONE_DIGIT = PreTokenizer((r"\p{N}", _GPT2))

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2": PreTokenizer((_GPT2,)),
    "smollm": _ONE_DIGIT,
    "starcoder": _ONE_DIGIT,
    "refact": _ONE_DIGIT,
    "codeshell": _ONE_DIGIT,
    "minerva-7b": _ONE_DIGIT,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "smaug-bpe": PreTokenizer(_LLAMA3.patterns),
    "dbrx": PreTokenizer(_LLAMA3.patterns),
    "qwen2": PreTokenizer((_CONTRACTIONS + _WORDS + r"|\p{N}" + _REST,)),
    "tekken": PreTokenizer((_CASED,), whole_words=True),
    "deepseek-coder": PreTokenizer(
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")
    ),
}
