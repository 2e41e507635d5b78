"""The Jinja engine against Python's jinja2, set up as transformers' apply_chat_template sets it up."""

import datetime
import json
import os
import pathlib
import subprocess

import gguf
import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 3, 4, 15, 6, 7)


class Generation(jinja2.ext.Extension):
    """transformers' {% generation %}: a call block that gives its body back."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(lineno)

    def _body(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return environment


ENVIRONMENT = make_environment()


class Renderer:
    """Our engine, one process for all templates."""

    def __init__(self):
        tool = pathlib.Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "render_template"
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def __call__(self, template, variables):
        request = {"template": template, "variables": variables, "now": list(NOW.timetuple()[:6])}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="session")
def render():
    renderer = Renderer()
    yield renderer
    renderer.process.stdin.close()
    assert renderer.process.wait() == 0


def expected(template, variables):
    """{"text"} or {"error"} of Python's jinja2."""
    try:
        return {"text": ENVIRONMENT.from_string(template).render(**variables)}
    except Exception as error:  # whatever Python raises is an error of the template
        return {"error": repr(error)}


def check(render, template, variables):
    want = expected(template, variables)
    got = render(template, variables)
    if "error" in want:
        assert "error" in got, f"jinja2 raised {want['error']}, we gave {got!r}"
    else:
        assert got == want


# ---------------------------------------------------------------------------------------------------------------------
# Templates that real models ship.

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather\nof a city, \"now\" & <here>.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city", "enum": ["Zürich", "東京"]},
                    "days": {"type": "integer", "default": 3},
                    "options": {"type": "object", "properties": {"unit": {"type": ["string", "null"]}}},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
            },
            "return": {"type": "object", "description": "the weather"},
        },
    },
    {
        "type": "function",
        "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}},
    },
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


def tool_call(arguments, **more):
    function = {"name": "get_weather", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "abcdef123", "function": function}], **more}


def tool_answer(content):
    return {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123", "content": content}


ARGUMENTS = {"city": "Zürich", "days": 2, "options": {"unit": None}, "tags": ["a", "b"], "exact": True, "ratio": 0.5}
CONVERSATIONS = {
    "plain": {"messages": [user("Hello")]},
    "system": {"messages": [system("Be brief."), user("Hello")]},
    "turns": {"messages": [user("Hi"), assistant("Hello!"), user("  Who are you?\n")]},
    "system turns": {"messages": [system("S"), user("Hi"), assistant("Hello!\n"), user("More"), assistant("x"), user("y")]},
    "no generation prompt": {"messages": [user("Hi"), assistant("Hello!")], "add_generation_prompt": False},
    "tools": {"messages": [user("Weather?")], "tools": TOOLS},
    "system tools": {"messages": [system("Be brief."), user("Weather?")], "tools": TOOLS},
    "tool call": {"messages": [user("Weather?"), tool_call(ARGUMENTS), tool_answer("17 °C"), assistant("17"), user("Ok")], "tools": TOOLS},
    "tool call json": {"messages": [user("Weather?"), tool_call(json.dumps(ARGUMENTS)), tool_answer('{"t": 17}')], "tools": TOOLS},
    "tool call none": {"messages": [user("Weather?"), tool_call(ARGUMENTS, content=None), tool_answer("17")], "tools": TOOLS},
    "two tool answers": {
        "messages": [user("W?"), tool_call({"city": "東京"}), tool_answer("1"), tool_answer("2"), assistant("ok")],
        "tools": TOOLS,
        "add_generation_prompt": False,
    },
    "unicode": {"messages": [system("Ünï\u2028çødé"), user("👩‍👩‍👧 naïve 東京\u00a0\u200b"), assistant("e\u0301 😀"), user("ß ﬁ İ")]},
    "empty": {"messages": [user("")]},
    "empty turns": {"messages": [system(""), user(""), assistant(""), user(" ")]},
    "no messages": {"messages": []},
    "thinking": {"messages": [user("2+2?"), assistant("<think>\nhm\n</think>\n\n4"), user("sure?")]},
    "reasoning": {"messages": [user("2+2?"), {**assistant("4"), "reasoning_content": "hm", "thinking": "hm"}, user("sure?")], "enable_thinking": True},
    "thinking off": {"messages": [user("2+2?")], "enable_thinking": False, "thinking": False},
    "parts": {"messages": [user([{"type": "text", "text": "Look"}, {"type": "text", "text": " here"}])]},
    "images": {"messages": [user([{"type": "image"}, {"type": "text", "text": "What?"}])]},
    "odd order": {"messages": [assistant("first"), user("a"), user("b")]},
    "odd role": {"messages": [{"role": "narrator", "content": "Once"}, user("a")]},
    "developer": {"messages": [{"role": "developer", "content": "D"}, user("a")]},
    "markup": {"messages": [user("<|im_end|> {{ 7 * 7 }} {% if %} </s> 'q' \"d\" \\n & <b>")]},
    "documents": {"messages": [user("a")], "documents": [{"title": "T", "text": "Some text", "doc_id": 1}]},
}


def llama_cpp():
    return pathlib.Path(os.environ["HEADRACE_LLAMA_CPP"])


def shipped_templates():
    folder = llama_cpp() / "models" / "templates"
    names = sorted(path.name for path in folder.glob("*.jinja"))
    assert len(names) > 20, f"no templates in {folder}"
    return names


# Templates that we cannot render as jinja2 does, with the reason. Empty: all of them are rendered.
UNSUPPORTED = {}


def variables_of(conversation):
    return {
        "tools": None,
        "documents": None,
        "add_generation_prompt": True,
        "bos_token": "<s>",
        "eos_token": "</s>",
        **CONVERSATIONS[conversation],
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=UNSUPPORTED[name], strict=True)) if name in UNSUPPORTED else name
        for name in shipped_templates()
    ],
)
def test_shipped_template(render, name):
    source = (llama_cpp() / "models" / "templates" / name).read_text(encoding="utf-8")
    for conversation in CONVERSATIONS:
        check(render, source, variables_of(conversation))


def must_render(render, source):
    """jinja2 itself renders the plain conversations, and we do the same."""
    for conversation in ("plain", "system turns", "unicode", "no generation prompt"):
        assert "text" in expected(source, variables_of(conversation))
    for conversation in CONVERSATIONS:
        check(render, source, variables_of(conversation))


@pytest.mark.parametrize(
    "name", ["meta-llama-Llama-3.1-8B-Instruct.jinja", "Qwen-Qwen2.5-7B-Instruct.jinja", "Qwen-Qwen3-0.6B.jinja"]
)
def test_named_models(render, name):
    must_render(render, (llama_cpp() / "models" / "templates" / name).read_text(encoding="utf-8"))


def test_gemma(render):
    source = (llama_cpp() / "models" / "templates" / "google-gemma-2-2b-it.jinja").read_text(encoding="utf-8")
    assert "text" in expected(source, variables_of("turns"))
    for conversation in CONVERSATIONS:
        check(render, source, variables_of(conversation))


def test_default_model(render):
    field = gguf.GGUFReader(os.environ["HEADRACE_MODEL"]).get_field("tokenizer.chat_template")
    must_render(render, bytes(field.parts[field.data[0]]).decode("utf-8"))
