"""Our tokenizer against the sample texts that llama.cpp ships, and against PyPI `tokenizers` on adversarial text.

Characters are those that Python 3.11's Unicode 14.0 assigns: that is PCRE2's version too, and what a younger character
is (letter, number, neither) depends on the version that a library was built with.
"""

import os
import pathlib
import sys
import unicodedata

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokenizer_oracle import OurTokenizer, Vocabulary, build

MODELS = ["default", "gpt-2", "llama-bpe", "qwen2"]


def vocabulary_path(name):
    if name == "default":
        return os.environ["HEADRACE_MODEL"]
    return str(pathlib.Path(os.environ["HEADRACE_LLAMA_CPP"]) / "models" / f"ggml-vocab-{name}.gguf")


class Pair:
    """One vocabulary in both implementations."""

    def __init__(self, name):
        self.path = vocabulary_path(name)
        self.vocabulary = Vocabulary.read(self.path)
        self.ours = OurTokenizer(self.path)
        self.theirs = {parse: build(self.vocabulary, parse) for parse in (False, True)}

    def check(self, text, parse_special):
        theirs = self.theirs[parse_special]
        ids = theirs.encode(text, add_special_tokens=False).ids
        ours = self.ours(text, parse_special)
        assert ours["ids"] == ids
        decoded = theirs.decode(ids, skip_special_tokens=False)
        assert ours["text"] == decoded
        assert ours["streamed"] == decoded


@pytest.fixture(scope="module", params=MODELS)
def pair(request):
    made = Pair(request.param)
    yield made
    made.ours.close()


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2"])
def test_sample_texts_of_llama_cpp(name):
    path = vocabulary_path(name)
    texts = pathlib.Path(path + ".inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = pathlib.Path(path + ".out").read_text().splitlines()
    expected = [[int(number) for number in line.split()] for line in lines]
    assert texts.pop() == ""  # behind the last separator
    assert len(texts) == len(expected) > 20
    ours = OurTokenizer(path)
    for text, ids in zip(texts, expected):
        assert ours(text)["ids"] == ids, text
    ours.close()


WHITE_SPACE = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace() or unicodedata.category(chr(c))[0] == "Z"]
CONTRACTIONS = "'s 'S '\u017f 't 'T 're 'Re 'rE 'RE 've 'm 'M 'll 'LL 'lL 'd 'D 'K '\u212a \u2019s 'sx ''s".split()

NASTY = [
    "",
    *WHITE_SPACE,
    *[f"a{space}b {space}{space}c{space}\n{space}{space}1{space}" for space in WHITE_SPACE],
    "".join(WHITE_SPACE),
    "\u180e \u200b\u200c\u200d\u2060\ufeff x\u180ey \u200bz",
    "\r\n\r\n \r\n\t\n  \n\n x\r\r\n",
    "line\r\n\r\n  indented\n\n\n\tmore   \n",
    *[f"it{c} {c} x{c}y {c}1 \n{c}" for c in CONTRACTIONS],
    "e\u0301e\u0323\u0307 q\u0307\u0323 \u0301 \u1e0b\u0323 \u212b \u2126 \ufb01 \u0344 \u0958 \u1100\u1161\u11a8",
    "\u0301" * 50 + "\u0323\u0301" * 50,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd 3\ufe0f\u20e3",
    "0123456789 1 12 123 1234 12345 1.234,56 \u0663\u0664 \u096a\u096b \uff11\uff12 \u2167 \u00bd \u00b2 \u3007 \u2460 1\u06612",
    "a1b22c333d4444 x\u00bdy\u2167z",
    "!?!? ...\n\n ***\r\n #!/bin/sh\n(x)[y]{z} _a_ $b %c --d /e\\f",
    "\x00\x01\x02\x03\x04\x05\x06\x7f\x80\x9f\xa0\xad\u0378 \ufffd\ufffe\uffff\U0010ffff \U0001f9ff\U000f0000",
    "\u0421\u044a\u0435\u0448\u044c \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u4e2d\u6587\uff0c\u65e5\u672c\u8a9e \u0e44\u0e17\u0e22 \u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>",
    "<|im_start|<|im_start|>|> <|im_end|>x<|im_end|><|endoftext|> <|endoftext <|<|",
    "a <|endoftext|>  b<|begin_of_text|>\n<|eot_id|><|start_header_id|>system<|end_header_id|>\n\n [PAD151646] [PAD15164]",
    "<|reserved_special_token_1|><|reserved_special_token_10|><|reserved_special_token_100|>",
]


def test_nasty_texts(pair):
    for text in NASTY:
        for parse_special in (False, True):
            pair.check(text, parse_special)


def test_every_special_token(pair):
    for token in pair.vocabulary.special():
        pair.check(f"a {token} b{token[:-1]}{token}{token[1:]}", True)
        pair.check(token, False)


RUNS = [" ", "\n", "\t", "a", "A", "1", "\u00bd", "!", "'", "\r\n", " \n", "\n ", " a", "a ", "  1", "\u00a0", "\u00e9",
        "\u0301", "\u0323\u0301", "\U0001f999", "\u4e2d", "'s", " 's", "a'", " !\n", "<|", "ab", "=", "\u200d"]


def test_long_runs(pair):
    for unit in RUNS:
        for text in (unit * 3000, unit * 3000 + "x", "1" + unit * 2999 + "1 "):
            pair.check(text, True)


def test_a_megabyte_of_one_character(pair):
    for unit in (" ", "a", "\n", "\U0001f999"):
        pair.check(unit * (1_000_000 // len(unit.encode())), True)


def test_every_assigned_character(pair):
    """Each in a letter, a space, a digit and an apostrophe context; of the big uniform blocks every 37th."""
    uniform = {"CJK UNIFIED IDEOGRAPH", "HANGUL SYLLABLE", "TANGUT IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH"}
    text = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cn", "Cs", "Co"):
            continue
        if code % 37 and unicodedata.name(character, "").rpartition("-")[0] in uniform:
            continue
        text.append(f"x{character} {character}{character}1{character}'{character}")
    assert len(text) > 40_000
    for i in range(0, len(text), 64):
        pair.check(" ".join(text[i : i + 64]), False)


assigned = st.characters(exclude_categories=["Cs", "Cn"])
fragments = st.one_of(
    assigned,
    st.sampled_from(WHITE_SPACE + CONTRACTIONS + RUNS + NASTY[-6:]),
    st.sampled_from(["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|begin_of_text|>", "[PAD151646]", "12", "The", "\n\n"]),
    st.text(alphabet="aesST'\u017f 1\u0663\n\r\t\u00a0!\u0301", max_size=8),
    st.text(alphabet=assigned, max_size=8),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(fragments, max_size=12).map("".join), parse_special=st.booleans())
def test_random_texts(pair, text, parse_special):
    pair.check(text, parse_special)


def test_bos_and_eos():
    expected = {"default": [], "gpt-2": [], "llama-bpe": [128000], "qwen2": []}
    for name, bos in expected.items():
        ours = OurTokenizer(vocabulary_path(name))
        ids = ours("Hello", add_special=True)["ids"]
        assert ids == bos + ours("Hello")["ids"]
        ours.close()


def test_space_prefix(tmp_path):
    """A file that asks for a space prefix, as ByteLevel(add_prefix_space=True) gives it."""
    vocabulary = Vocabulary.read(vocabulary_path("gpt-2"))
    path = tmp_path / "prefix.gguf"
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(vocabulary.merges)
    writer.add_add_space_prefix(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    ours = OurTokenizer(path)
    theirs = build(vocabulary, True, add_prefix_space=True)
    for text in ["Hello world", " Hello", "\nHello", "1", "", "a<|endoftext|>b<|endoftext|> c"]:
        assert ours(text, parse_special=True)["ids"] == theirs.encode(text).ids, text
    ours.close()
