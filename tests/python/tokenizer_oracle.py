"""The oracle of test_tokenizer.py: PyPI `tokenizers` set up with the vocabulary of a GGUF file as the models' own
tokenizer.json files set it up; and the process that runs our tokenizer."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess

import gguf
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _split(regex):
    split = pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _pre_tokenizer(name, add_prefix_space):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=True)
    if name == "gpt-2":
        return byte_level
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name == "llama-bpe":
        return _split(_LLAMA3 % r"\p{N}{1,3}")
    if name == "qwen2":
        return _split(_LLAMA3 % r"\p{N}")
    if name == "gpt-4o":
        return _split(_O200K)
    raise ValueError(name)


@dataclasses.dataclass
class Vocabulary:
    """What a GGUF file says about its tokenizer."""

    pre: str
    tokens: list
    types: list
    merges: list

    @staticmethod
    @functools.cache  # GGUFReader takes seconds
    def read(path):
        fields = gguf.GGUFReader(path).fields
        value = lambda key: fields["tokenizer.ggml." + key].contents()
        return Vocabulary(value("pre"), value("tokens"), value("token_type"), value("merges"))

    def special(self):
        return [token for token, kind in zip(self.tokens, self.types) if kind == CONTROL]


def merges_of_scores(tokens, types, scores):
    """The list of merges that equals SentencePiece's scores, as transformers' converter makes it: every split of every
    token, by the score of the token."""
    ids = {token: i for i, token in enumerate(tokens) if types[i] in (NORMAL, UNUSED)}
    found = []
    for token, i in ids.items():
        for cut in range(1, len(token)):
            if token[:cut] in ids and token[cut:] in ids:
                found.append((scores[i], ids[token[:cut]], ids[token[cut:]], token[:cut], token[cut:]))
    found.sort(key=lambda merge: (-merge[0], merge[1], merge[2]))
    return [(left, right) for _, _, _, left, right in found]


def build_sentencepiece(tokens, types, scores, parse_special, legacy=True):
    """A tokenizers.Tokenizer of a SentencePiece vocabulary, as transformers sets it up. legacy: a space before every
    stretch of text, otherwise only at its start."""
    model = models.BPE(
        {token: i for i, token in enumerate(tokens)},
        merges_of_scores(tokens, types, scores),
        unk_token=next((token for token, kind in zip(tokens, types) if kind == UNKNOWN), None),
        fuse_unk=True,
        byte_fallback=BYTE in types,
    )
    tokenizer = tokenizers.Tokenizer(model)
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    for token, kind in zip(tokens, types):
        if kind == USER_DEFINED:
            tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False)])
        if kind in (CONTROL, UNKNOWN) and parse_special:
            tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False)])
    return tokenizer


def build(vocabulary, parse_special, add_prefix_space=False):
    """A tokenizers.Tokenizer. Without parse_special the control tokens are ordinary text."""
    model = models.BPE(
        {token: i for i, token in enumerate(vocabulary.tokens)},
        [tuple(merge.split(" ")) for merge in vocabulary.merges],
        ignore_merges=vocabulary.pre == "llama-bpe",
    )
    tokenizer = tokenizers.Tokenizer(model)
    if vocabulary.pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(vocabulary.pre, add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(vocabulary.tokens, vocabulary.types):
        if kind == USER_DEFINED:
            tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False)])
        if kind == CONTROL and parse_special:
            tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False)])
    return tokenizer


class OurTokenizer:
    """Our tokenizer, in a process that answers one request after the other."""

    def __init__(self, path):
        tool = pathlib.Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "tokenize_tool"
        self._process = subprocess.Popen([tool, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, text, parse_special=False, add_special=False):
        request = {"text": text, "parse_special": parse_special, "add_special": add_special}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"tokenize_tool ended on {text[:200]!r}"
        return json.loads(answer)

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(timeout=60) == 0
        self._process.stdout.close()
