"""Templates that would never end or take all memory end with a sentence; honest ones see no bound.

The bounds count steps, bytes and the thread's own computing: a busy machine refuses nothing.
"""

import json
import sys
from pathlib import Path

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app import engine as og
from app.engine import chat_template, template_bounds
from app.engine.chat_template import render

REAL_TEMPLATES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[1] / "chat" / "templates").glob("*.jinja"))
}
MESSAGES = [{"role": "user", "content": "Hi"}]
_DOUBLE = "{% set n = namespace(x=SEED, y=SEED) %}{% for i in range(60) %}STEP{% endfor %}END"


def doubling(seed: str, step: str, end: str = "") -> str:
    return _DOUBLE.replace("SEED", seed).replace("STEP", step).replace("END", end)


LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}BODY{% endfor %}{% endfor %}"
GROW = "{% set n.x = [n.x, n.x] %}"
GROW_BOTH = GROW + "{% set n.y = [n.y, n.y] %}"
GROW_TUPLE = "{% set n.x = (n.x, n.x) %}"
HOSTILE = {
    "a long loop": "{% for i in range(999999999) %}{% endfor %}",
    "loops in loops": LOOPS.replace("BODY", ""),
    "a loop that writes": LOOPS.replace("BODY", "x"),
    "a loop that writes much": "{% set x = 'x' * 9999999 %}" + LOOPS.replace("BODY", "{{ x }}"),
    "a block that is kept": "{% set x = 'x' * 99999 %}{% set y %}{% for a in range(99999) %}{{ x }}"
    "{% endfor %}{% endset %}",
    "a loop that calls itself": "{% for x in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "a macro that calls itself": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "a macro that calls itself often": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}"
    "{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a long text": "{{ 'a' * 10**9 }}",
    "a long text the other way round": "{{ 999999999 * 'a' }}",
    "a long list": "{{ ([0] * 999999999) | length }}",
    "a large number": "{{ 10 ** (10 ** 8) }}",
    "a number that grows": doubling("7", "{% set n.x = n.x * n.x %}"),
    "a text that grows by +": doubling("'ab'", "{% set n.x = n.x + n.x %}"),
    "a text that grows by ~": doubling("'ab'", "{% set n.x = n.x ~ n.x %}"),
    "a text that grows by join": doubling("'ab'", "{% set n.x = [n.x, n.x] | join %}"),
    "a text that grows by str.join": doubling("'ab'", "{% set n.x = n.x.join(['', '', '']) %}"),
    "a text that grows by replace": doubling("'ab'", "{% set n.x = n.x.replace('a', n.x) %}"),
    "a text that grows by a filter": doubling("'ab'", "{% set n.x = n.x | replace('a', n.x) %}"),
    "a text that grows by %": doubling("'ab'", "{% set n.x = '%s%s' % (n.x, n.x) %}"),
    "a text that grows by format": doubling("'ab'", "{% set n.x = '{0}{0}'.format(n.x) %}"),
    "a list that grows": doubling("[1]", "{% set n.x = n.x + n.x %}"),
    "a deep list that is written": doubling("[1]", GROW, "{{ n.x }}"),
    "a deep list that is compared": doubling("[1]", GROW_BOTH, "{{ n.x == n.y }}"),
    "a deep list that is looked for": doubling("[1]", GROW_BOTH, "{{ n.x in [n.y] }}"),
    "a deep list that is tested": doubling("[1]", GROW_BOTH, "{{ n.x is eq(n.y) }}"),
    "a deep list that is counted": doubling("[1]", GROW_BOTH, "{{ [n.x].count(n.y) }}"),
    "a deep tuple that is a key": doubling("(1,)", GROW_TUPLE, "{{ {n.x: 1} }}"),
    "a deep tuple that is looked up": doubling("(1,)", GROW_TUPLE, "{{ {}[n.x] }}"),
    "a deep tuple that is got": doubling("(1,)", GROW_TUPLE, "{{ {}.get(n.x) }}"),
    "a deep list as JSON": doubling("[1]", GROW, "{{ n.x | tojson }}"),
    "a deep list sorted": doubling("[1]", GROW, "{{ [n.x, n.y] | sort }}"),
    "a deep list shown by a namespace": doubling("[1]", GROW, "{{ n }}"),
    "a deep list shown by a view": doubling("[1]", GROW, "{{ {1: n.x}.items() }}"),
    "many long texts": "{% set n = namespace(x=[]) %}{% for i in range(99999) %}"
    "{% set n.x = n.x + ['x' * (9999999 - i)] %}{% endfor %}",
    "many slices": "{% set x = range(99999) | list %}{% set n = namespace(x=[]) %}"
    "{% for i in range(99999) %}{% set n.x = [n.x, x[1:]] %}{% endfor %}",
    "a wide %": "{{ '%999999999d' % 1 }}",
    "a width that is a value": "{{ '%*d' % (999999999, 1) }}",
    "a wide format": "{{ '{:999999999}'.format(1) }}",
    "a format whose width is a value": "{{ '{:{}}'.format(1, 999999999) }}",
    "a wide filter format": "{{ '%999999999d' | format(1) }}",
    "a wide centre": "{{ 'a' | center(999999999) }}",
    "a wide str.center": "{{ 'a'.center(999999999) }}",
    "a wide zfill": "{{ 'a'.zfill(999999999) }}",
    "wide tabs": "{{ '\\t'.expandtabs(999999999) }}",
    "a wide indent": "{{ ('\\n' * 99999) | indent(9999) }}",
    "a wide JSON": "{{ ([[[0]]] * 99999) | tojson(indent=9999) }}",
    "JSON with long separators": "{{ ([0] * 99999) | tojson(separators=('x' * 99999, ':')) }}",
    "a wide date": "{{ strftime_now('%999999999Y') }}",
    "bytes of a number": "{{ (1).to_bytes(999999999, 'big') }}",
    "slices without end": "{{ [1] | slice(999999999) | list }}",
    "sums of lists": "{{ ([[0] * 9999] * 9999) | sum(start=[]) }}",
    "much text of Jinja's own": "{{ lipsum(n=999999) }}",
    "deep brackets": "{{ " + "(" * 50000 + "1" + ")" * 50000 + " }}",
    "deep loops": "{% for x in [1] %}" * 200 + "{% endfor %}" * 200,
    "a long template": "x" * 10_000_000,
    "much arithmetic": "{% set n = namespace(x=1) %}{% for i in range(99999) %}"
    + "{% set n.x = n.x * 3 % 9999991 %}" * 500
    + "{% endfor %}",
}  # fmt: skip


def peak_bytes():
    """0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_templates_end_with_a_sentence_and_take_little_memory(template):
    before = peak_bytes()
    with pytest.raises(og.EngineError, match="chat template") as raised:
        render(template, MESSAGES)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300
    assert peak_bytes() - before < 2 * template_bounds.MOST_BYTES


def test_a_model_with_a_hostile_template_can_still_be_used(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    with pytest.raises(og.EngineError, match="too many steps"):
        tokenizer.apply_chat_template(MESSAGES, template_str=HOSTILE["loops in loops"])
    assert tokenizer.apply_chat_template(MESSAGES).startswith("<|user|>")


def test_long_talks_are_within_the_bounds():
    template = """{% set ns = namespace(text='', all=[]) %}
{% for m in messages %}
{% if m.role in ['user', 'assistant'] and m != messages[0] %}
{% set ns.all = ns.all + [m.content[:20]] %}
{{ '<|' ~ m.role ~ '|>' + m.content.strip() ~ '<|end|>' }}
{% endif %}
{{ m | tojson }}{{ m.content.split('\\n')[-1] | upper | trim | replace('A', 'bb') }}
{% endfor %}{{ ns.all | join(', ') }}{{ '%d of {}' % 3 }}{{ '{:>5}'.format('x') }}"""
    content = "A paragraph of some length, with a few words in it.\n" * 40
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"{i} {content}"} for i in range(1000)
    ]
    text = render(template, messages)
    for message in (messages[1], messages[-1]):
        assert f"<|{message['role']}|>{message['content'].strip()}<|end|>" in text
        assert json.dumps(message) in text
    assert text.endswith("3 of {}    x")


IDIOMS = """{% for m in messages | selectattr('role', 'equalto', 'user') | list %}
{{ loop.index }}/{{ loop.length }} {{ loop.last }} {{ m.content | trim | title | indent(2) }}
{% endfor %}
{{ messages | map(attribute='content') | join(' / ') | length }} {{ [3, 1, 2] | sort | join(',') }}
{{ [1, 2, 3] | sum }} {{ [{'n': 2}, {'n': 5}] | sum(attribute='n') }} {{ [2, 9] | max }}
{{ {'b': [1, {'c': None}]} | dictsort }} {{ 'a,b'.split(',') | last | upper ~ 1 ~ none ~ [1, 'x'] }}
{{ 'x' * 3 + 'y' }} {{ [1] * 2 + [3] }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 10 }}
{{ '%05.1f|%s' % (2, 'a') }}
{{ '{0}-{b:>4}'.format(1, b='z') }} {{ messages[-1].content[::-1] }} {{ (1, 2) == (1, 2) }}
{{ 'a' in {'a': 1} }} {{ [1, 2] in [[1, 2]] }} {{ {'k': 1}.items() | list }}
{{ messages | groupby('role') | map(attribute='grouper') | list }} {{ 'aXa' | replace('X', '--') }}
{{ '1' | int + 2 }} {{ 2.567 | round(1) }} {{ namespace(a=[1]).a }} {{ range(3) | list | tojson }}
{% macro m(x, y=2) %}[{{ x }}{{ y }}{{ caller() if caller }}]{% endmacro %}
{{ m(1) }}{% call m(3) %}c{% endcall %}
{% set t %}kept {{ 1 }}{% endset %}{{ t | upper }} {{ undefined_name | default('d') }}"""


@pytest.mark.parametrize(
    "template",
    [IDIOMS, *REAL_TEMPLATES.values()],
    ids=["idioms", *REAL_TEMPLATES],
)
def test_honest_templates_write_what_they_write_without_bounds(template):
    plain = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[chat_template._GenerationTag, "jinja2.ext.loopcontrols"],
    )
    plain.filters["tojson"] = chat_template._to_json
    plain.globals["raise_exception"] = chat_template._raise_exception
    plain.globals["strftime_now"] = lambda _: "today"
    messages = [
        {"role": role, "content": f"{role} says <b> {index}\nand more"}
        for index, role in enumerate(["user", "assistant", "user"])
    ]
    values = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    expected = plain.from_string(template).render(messages=messages, tools=None, **values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat_template, "_strftime_now", lambda _: "today")
        chat_template._compile.cache_clear()
        assert render(template, messages, **values) == expected
    chat_template._compile.cache_clear()


def test_who_traces_goes_on_tracing():
    seen = []

    def trace(*arguments):
        seen.append(arguments)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        render("{{ 1 }}", MESSAGES)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
