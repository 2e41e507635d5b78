"""What is read from a tokenizer.json tokenizes as PyPI `tokenizers` does with the same file: small vocabularies trained
here with every pre-tokenizer, and real ones set up as transformers does."""

import json
import os
import pathlib

import gguf
import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from test_tokenizer import NASTY, RUNS, fragments
from tokenizer_oracle import _LLAMA3, _O200K, OurTokenizer, Vocabulary, build, build_sentencepiece

MODELS = pathlib.Path(os.environ["HEADRACE_LLAMA_CPP"]) / "models"
TEXT = [
    "The quick brown fox jumps over the lazy dog and it'll run along the HeadRace to the Wheel's end",
    "a headrace is the channel that carries water; weights are the water, don't you think? 123 4567",
    "naïve café übergroß, 100 % of 3.14 and 2,718 apples   with    spaces\n\n  def f(x):\n\treturn x\r\n",
    "日本語の文章 и русский текст ÄÖÜ",
]
TEKKEN = _O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
CUTS = {
    "byte_level": [],
    "no_regex": None,
    "prefix": "prefix",
    "smollm": [pre_tokenizers.Digits(individual_digits=True)],
    "digits": [pre_tokenizers.Digits(individual_digits=False)],
    "llama3": [_LLAMA3 % r"\p{N}{1,3}"],
    "qwen2": [_LLAMA3 % r"\p{N}"],
    "o200k": [_O200K],
    "tekken": [TEKKEN],
    "three_digits": [r"\p{N}{1,3}", _LLAMA3 % r"\p{N}"],
}
ADDED = [
    AddedToken("<|special|>", special=True, normalized=False),
    AddedToken("<|left|>", special=True, lstrip=True, normalized=False),
    AddedToken("<|right|>", special=True, rstrip=True, normalized=False),
    AddedToken("<tool>", special=False, normalized=False),
    AddedToken("  tool ", special=False, lstrip=True, rstrip=True, normalized=False),
    AddedToken("\u1100\u1161x", special=False, normalized=True),
]


def byte_level(name):
    """A small vocabulary; NFC, BOS and EOS in some."""
    cuts = CUTS[name]
    if cuts is None or cuts == "prefix":
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=cuts == "prefix", use_regex=cuts == "prefix")]
    else:
        steps = [
            pre_tokenizers.Split(tokenizers.Regex(cut), "isolated") if isinstance(cut, str) else cut for cut in cuts
        ]
        own_regex = not any(isinstance(cut, str) for cut in cuts)
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=own_regex))
    made = tokenizers.Tokenizer(models.BPE(ignore_merges=name in ("llama3", "tekken")))
    made.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    made.decoder = decoders.ByteLevel()
    if name in ("qwen2", "byte_level"):
        made.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(TEXT * 3, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False))
    made.add_special_tokens([token for token in ADDED if token.special])
    made.add_tokens([token for token in ADDED if not token.special])
    if name in ("llama3", "qwen2"):
        single = "<|special|> $A" if name == "llama3" else "<|special|> $A <|right|>"
        ids = [(token, made.token_to_id(token)) for token in ("<|special|>", "<|right|>")]
        template = processors.TemplateProcessing(single, None, ids)
        made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return made


def llama(legacy):
    """Llama 2's vocabulary as transformers sets it up."""
    fields = gguf.GGUFReader(MODELS / "ggml-vocab-llama-spm.gguf").fields
    values = [fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "scores")]
    made = build_sentencepiece(*values, parse_special=True, legacy=legacy)
    made.add_special_tokens([token for token in ADDED if token.special])
    made.add_tokens([token for token in ADDED if not token.special])
    made.add_tokens([AddedToken("tools", normalized=True), AddedToken("a b", normalized=True)])
    made.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return made


MAKERS = {name: (lambda name=name: byte_level(name)) for name in CUTS}
MAKERS["gpt-2"] = lambda: build(Vocabulary.read(str(MODELS / "ggml-vocab-gpt-2.gguf")), parse_special=True)
MAKERS["llama-legacy"] = lambda: llama(legacy=True)
MAKERS["llama"] = lambda: llama(legacy=False)


@pytest.fixture(scope="module", params=MAKERS)
def pair(request, tmp_path_factory):
    theirs = MAKERS[request.param]()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    root = json.loads(theirs.to_str())
    if request.param in ("smollm", "llama-legacy"):  # the older form
        root["model"]["merges"] = [" ".join(merge) for merge in root["model"]["merges"]]
    path.write_text(json.dumps(root))
    ours = OurTokenizer(str(path))

    def check(text, parse_special, add_special):
        theirs.encode_special_tokens = not parse_special
        ids = theirs.encode(text, add_special_tokens=add_special).ids
        found = ours(text, parse_special, add_special)
        assert found["ids"] == ids, text[:200]
        decoded = theirs.decode(ids, skip_special_tokens=False)
        assert found["text"] == found["streamed"] == decoded

    yield check
    ours.close()


OWN = ["<|special|>", " <|left|> ", " \t<|right|>\u3000\n", "<tool>", "a   tool  b", "\u1100\u1161x", "\uac00x", "tools", "a b", " a b",
       "<|left|><|right|> <|left|>", "<s>", "</s> x", "\u2581", "<0x41>"]  # fmt: skip


def test_nasty_texts(pair):
    for text in NASTY + OWN + ["".join(OWN), " ".join(OWN)]:
        for parse_special in (False, True):
            pair(text, parse_special, add_special=parse_special)


def test_long_runs(pair):
    for unit in RUNS + ["A", "aA"]:
        pair("1" + unit * 2000 + "x", True, False)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(st.one_of(fragments, st.sampled_from(OWN + TEXT)), max_size=10).map("".join), parse=st.booleans(), add=st.booleans())
def test_random_texts(pair, text, parse, add):
    pair(text, parse, add)
