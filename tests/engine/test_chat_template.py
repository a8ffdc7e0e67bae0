"""Templates that models bring along: real ones' idioms work, hostile ones find nothing."""

import json

import pytest

from app import engine as og
from app.engine.chat_template import render

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <|im_end|>"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello"},
    {"role": "user", "content": "And \u00fc?"},
]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ messages[0].content.upper().replace('BE', 'X').rstrip('.') }}", "X BRIEF"),
        ("{% for m in messages[::-1] %}{{ m.role[0] }}{% endfor %}", "uaus"),
        ("{{ messages[1]['content'].startswith('Hi') }}", "True"),
        ("{{ messages[2].content.split('</think>')[-1].lstrip('\\n') }}", "Hello"),
        ("{{ {'b': '<\u00fc>', 'a': 1} | tojson }}", '{"b": "<\u00fc>", "a": 1}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}x{% endfor %}", "x"),
        ("{% generation %}a{% endgeneration %}b", "ab"),
        ("  {% if true %}\n  x\n  {% endif %}\n", "  x\n"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
         "{% endfor %}{{ ns.n }}", "4"),
        ("{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}", "<s>|</s>|True"),
        ("{% if tools %}t{% else %}-{% endif %}{{ enable_thinking }}", "-False"),
        ("{{ strftime_now('%Y') | length }}", "4"),
    ],
)  # fmt: skip
def test_idioms_of_real_templates(template, expected):
    extra = {"enable_thinking": False}
    text = render(template, MESSAGES, bos_token="<s>", eos_token="</s>", **extra)
    assert text == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ raise_exception('Roles must alternate') }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ undefined_name.attribute }}",
        "{{ 'x' * 2 + 3 }}",
        "{{ range(10000000) | list }}",
    ],
)
def test_templates_that_fail_or_reach_out_raise_a_sentence(template):
    with pytest.raises(og.EngineError, match="chat template"):
        render(template, [dict(m) for m in MESSAGES])


def test_a_templates_own_refusal_is_shown():
    with pytest.raises(og.EngineError, match="Roles must alternate"):
        render("{{ raise_exception('Roles must alternate') }}", MESSAGES)


def test_the_tokenizer_takes_json_and_what_json_would_give(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    expected = "<|user|>\nHello<|end|>\n<|assistant|>\n"
    messages = [{"role": "user", "content": "Hello"}]
    assert tokenizer.apply_chat_template(json.dumps(messages)) == expected
    assert tokenizer.apply_chat_template(messages) == expected
    without = tokenizer.apply_chat_template(messages, add_generation_prompt=False)
    assert without == "<|user|>\nHello<|end|>\n"
    assert tokenizer.apply_chat_template(messages, template_str="{{ messages|length }}") == "1"


def test_tools_choose_the_template_for_them(tmp_path, data_folder):
    import shutil

    folder = tmp_path / "m"
    shutil.copytree(data_folder / "tiny-llama", folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["chat_template"] = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "{{ tools[0].name }}"},
    ]
    path.write_text(json.dumps(settings))
    tokenizer = og.Tokenizer(folder)
    assert tokenizer.apply_chat_template("[]") == "plain"
    assert tokenizer.apply_chat_template("[]", tools='[{"name": "clock"}]') == "clock"
    (folder / "chat_template.jinja").write_text("from the file")
    assert og.Tokenizer(folder).chat_template == "from the file"


@pytest.mark.parametrize("messages", ["{", "{}", "3", None])
def test_messages_that_are_no_list_raise(data_folder, messages):
    with pytest.raises((og.EngineError, TypeError)):
        og.Tokenizer(data_folder / "tiny-llama").apply_chat_template(messages)


def test_a_model_without_a_template_says_so(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-spm")
    assert tokenizer.chat_template is None
    with pytest.raises(og.EngineError, match="no chat template"):
        tokenizer.apply_chat_template("[]")
