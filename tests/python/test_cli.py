"""The binary as a user meets it: each verb, its errors and exit statuses, its JSON, pipes, terminals and Ctrl-C."""
import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

BINARY = str(Path(os.environ["HEADRACE_BIN_DIR"]) / "headrace")
MODEL = os.environ["HEADRACE_MODEL"]
VERBS = ["bench", "chat", "doctor", "info", "perplexity", "quantize", "run", "tokenize"]
TIMEOUT = 120


def headrace(*arguments, stdin=b"", **options):
    """A finished process with stdout and stderr as text; `stdin` is bytes or text."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, timeout=TIMEOUT, **options)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def succeeds(*arguments, **options):
    done = headrace(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuses(status, *arguments, **options):
    """The one line that says why."""
    done = headrace(*arguments, **options)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1 and lines[0].startswith("headrace: "), done.stderr
    return lines[0]


def run_json(*arguments, **options):
    return json.loads(succeeds("run", MODEL, "--json", *arguments, **options))


# ---- help and usage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb):
    text = succeeds(verb, "--help")
    assert f"headrace {verb} " in text.split("Examples:")[1]
    assert verb in succeeds("--help")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_version():
    assert succeeds("--version").startswith("headrace ")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "expected a verb"),
        (["rnu"], "did you mean run?"),
        (["run"], "MODEL is required"),
        (["run", MODEL, "--tmep", "1"], "did you mean --temp?"),
        (["run", MODEL, "--sytem=x"], "did you mean --system?"),
        (["run", MODEL, "-p"], "--prompt: expected a value"),
        (["run", MODEL, "-p", "x", "--temp", "hot"], "--temp: expected a number from 0"),
        (["run", MODEL, "-p", "x", "--top-p", "1.5"], "--top-p: expected a number from 0 to 1"),
        (["run", MODEL, "-p", "x", "--threads", "-1"], "--threads: expected a whole number"),
        (["run", MODEL, "-p", "x", "-n", "-1"], "--max-tokens: expected a whole number"),
        (["run", MODEL, "-p", "x", "-c", "99999999999"], "--context: expected a whole number"),
        (["run", MODEL, "-p", "x", "--isa", "sse9"], "--isa: expected one of portable"),
        (["run", MODEL, "-p", "x", "--kv", "q4_0"], "--kv: expected one of f16, bf16, q8_0, got"),
        (["run", MODEL, "-p", "x", "-f", "y"], "excludes"),
        (["run", MODEL, "-p", "x", "surplus"], "unexpected argument 'surplus'"),
        (["run", MODEL], "expected a prompt"),
        (["perplexity", MODEL], "FILE is required"),
        (["perplexity", MODEL, "-", "--class", "best"], "--class"),
        (["doctor", "x"], "unexpected argument"),
    ],
)
def test_usage_errors(arguments, message):
    assert message in refuses(2, *arguments)


def test_environment_names_the_cache(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HEADRACE_CACHE": str(tmp_path)}
    message = refuses(3, "info", "smollm2", env=environment)
    assert str(tmp_path / "models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") in message and "fetch" in message
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path)}
    assert str(tmp_path / "headrace/models") in refuses(3, "info", "smollm2", env=environment)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert str(tmp_path / ".cache/headrace/models") in refuses(3, "info", "smollm2", env=environment)
    folder = tmp_path / "models/smollm2"
    folder.mkdir(parents=True)
    (folder / "SmolLM2-135M-Instruct.Q4_1.gguf").symlink_to(MODEL)
    environment = {"PATH": os.environ["PATH"], "HEADRACE_CACHE": str(tmp_path)}
    assert "llama" in succeeds("info", "smollm2", env=environment)


# ---- broken files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [["run", "-p", "x"], ["chat"], ["info"], ["tokenize"], ["perplexity"]])
def test_files_that_are_no_models(verb, tmp_path):
    name, *options = verb
    text = tmp_path / "text.txt"
    text.write_text("Some text that is long enough.")
    rest = [*options, text] if name == "perplexity" else options
    empty = tmp_path / "empty.gguf"
    empty.touch()
    other = tmp_path / "other.gguf"
    other.write_text("This is no model at all, but a text.")
    assert "no such file" in refuses(3, name, tmp_path / "missing.gguf", *rest)
    assert "'smallm2'" in refuses(3, name, "smallm2", *rest)
    assert "config.json: no such file" in refuses(3, name, tmp_path, *rest)
    assert str(empty) in refuses(3, name, empty, *rest)
    assert "expected a GGUF file" in refuses(3, name, other, *rest)
    newline = tmp_path / "a\nb.gguf"
    refuses(3, name, newline, *rest)


def test_truncated_model(tmp_path):
    data = Path(MODEL).read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in (4, 23, 1000, 100_000, 1_786_000, len(data) // 2, len(data) - 1):
        cut.write_bytes(data[:size])
        message = refuses(3, "run", cut, "-p", "x")
        assert str(cut) in message
    assert "1 bytes are missing" in message


def test_unknown_architecture(tmp_path):
    data = Path(MODEL).read_bytes()
    key = b"general.architecture"
    at = data.index(key) + len(key) + 4  # behind the key lie a type id, a length, and the text
    assert data[at + 8 : at + 13] == b"llama"
    other = tmp_path / "other.gguf"
    other.write_bytes(data[: at + 8] + b"lhama" + data[at + 13 :])
    message = refuses(3, "run", other, "-p", "x")
    assert "general.architecture" in message and "'lhama'" in message and "llama" in message
    report = json.loads(succeeds("info", other, "--json"))
    assert report["runnable"] is False and "lhama" in report["reason"] and report["memory"] is None
    assert "cannot be run" in succeeds("info", other)
    refuses(3, "info", other, "--program")


# ---- run -----------------------------------------------------------------------------------------------------------


def test_json_of_an_answer():
    answer = run_json("-p", "What is the capital of Germany?", "-n", "30")
    assert set(answer) == {
        "text",
        "token_ids",
        "prompt_tokens",
        "generated_tokens",
        "finish_reason",
        "time_to_first_token_s",
        "prefill_tokens_per_s",
        "decode_tokens_per_s",
        "peak_memory_bytes",
    }
    assert "Berlin" in answer["text"]
    assert answer["generated_tokens"] == len(answer["token_ids"]) > 0
    assert all(isinstance(token, int) for token in answer["token_ids"])
    assert answer["prompt_tokens"] > 7
    assert answer["finish_reason"] in ("stop", "length")
    for name in ("time_to_first_token_s", "prefill_tokens_per_s", "decode_tokens_per_s"):
        assert isinstance(answer[name], float) and answer[name] > 0
    report = json.loads(succeeds("info", MODEL, "--json"))["memory"]
    limit = report["weight_bytes"] + report["kv_bytes"] + 200_000_000
    assert 50_000_000 < answer["peak_memory_bytes"] < limit


def test_keys_and_values_are_held_as_asked():
    memory = {
        kv: json.loads(succeeds("info", MODEL, "-c", "8192", "--kv", kv, "--json"))["memory"]
        for kv in ("f16", "bf16", "q8_0")
    }
    assert json.loads(succeeds("info", MODEL, "-c", "8192", "--json"))["memory"] == memory["f16"]
    assert memory["f16"]["kv_bytes"] == memory["bf16"]["kv_bytes"]
    assert memory["q8_0"]["kv_bytes"] * 32 == memory["f16"]["kv_bytes"] * 17
    assert [memory[kv]["kv_encoding"] for kv in memory] == list(memory)
    assert "q8_0" in succeeds("info", MODEL, "--kv", "q8_0")
    for kv in ("bf16", "q8_0"):
        assert "Berlin" in run_json("-p", "What is the capital of Germany?", "-n", "20", "--kv", kv)["text"]


def test_text_equals_the_json_text():
    prompt = "Schreibe 'Grüße, 世界 😀!' und sonst nichts."
    text = succeeds("run", MODEL, "-p", prompt, "-n", "40")
    answer = run_json("-p", prompt, "-n", "40")
    assert text == answer["text"] + "\n"
    ids = " ".join(map(str, answer["token_ids"]))
    assert succeeds("tokenize", MODEL, "--decode", stdin=ids) == answer["text"]


def test_prompts_from_everywhere_are_equal(tmp_path):
    prompt = "Name three colours.\nOne a line, please."
    file = tmp_path / "prompt.txt"
    expected = run_json("-p", prompt, "-n", "12")["token_ids"]
    for end in ("", "\n", "\r\n"):
        file.write_bytes((prompt + end).encode())
        assert run_json("-f", file, "-n", "12")["token_ids"] == expected
    assert run_json("-n", "12", stdin=prompt + "\n")["token_ids"] == expected
    assert run_json("-f", "-", "-n", "12", stdin=prompt)["token_ids"] == expected
    assert run_json("-p", prompt, "-n", "12", stdin="not read")["token_ids"] == expected
    assert "no such file" in refuses(3, "run", MODEL, "-f", tmp_path / "missing")


def test_template_system_and_raw():
    rendered = (
        "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )
    by_template = run_json("-p", "Hello", "--system", "You are a pirate.", "-n", "8")
    by_hand = run_json("--raw", "-p", rendered, "-n", "8")
    assert by_hand["token_ids"] == by_template["token_ids"]
    assert by_hand["prompt_tokens"] == by_template["prompt_tokens"]
    raw = run_json("--raw", "-p", "Hello", "-n", "8")
    assert raw["prompt_tokens"] == 1 and raw["token_ids"] != by_template["token_ids"]


@pytest.mark.parametrize("prompt", ["", "😀", "- a list", "--json", "e\u0301\u200d\ufeff", "\t\n "])
def test_odd_prompts(prompt):
    assert run_json("-p", prompt, "-n", "3")["generated_tokens"] <= 3


def test_prompts_that_are_no_text(tmp_path):
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(256)))
    assert run_json("-f", file, "-n", "3")["prompt_tokens"] > 200
    assert "the prompt is empty" in refuses(3, "run", MODEL, "--raw", "-p", "")
    assert "a directory" in refuses(3, "run", MODEL, "-f", tmp_path)


def test_numbers_of_tokens():
    none = run_json("-p", "Hello", "-n", "0")
    assert none["token_ids"] == [] and none["text"] == "" and none["finish_reason"] == "length"
    assert none["time_to_first_token_s"] is None and none["decode_tokens_per_s"] is None
    one = run_json("-p", "Hello", "-n", "1")
    assert one["generated_tokens"] == 1 and one["finish_reason"] == "length"
    two = run_json("-p", "Hello", "-n", "2")
    assert two["token_ids"][:1] == one["token_ids"]
    stopped = run_json("-p", "Reply with the single word: yes", "-n", "500")
    assert stopped["finish_reason"] == "stop" and stopped["generated_tokens"] < 500
    assert "<|im_end|>" not in stopped["text"]


def test_the_context_is_a_limit():
    full = run_json("-p", "Count from one to one hundred.", "-c", "50")
    # The last token needs no position.
    assert full["finish_reason"] == "length" and full["prompt_tokens"] + full["generated_tokens"] == 51
    message = refuses(3, "run", MODEL, "-p", "Count from one to one hundred.", "-c", "20")
    assert f"has {full['prompt_tokens']} tokens" in message and "holds 20" in message and "-c" in message
    message = refuses(4, "run", MODEL, "-p", "x", "-c", "2147483647")
    assert "memory" in message and "KV" in message


def test_long_prompts_are_read_in_pieces():
    answer = run_json("-p", "The cat sat on the mat. " * 150 + "Where did the cat sit?", "-n", "20")
    assert answer["prompt_tokens"] > 1000 and "mat" in answer["text"]


def test_threads_and_instruction_sets_give_the_same_text():
    texts = {
        tuple(run_json("-p", "Tell me a short story.", "-n", "24", *options)["token_ids"])
        for options in ([], ["--threads", "0"], ["--threads", "1"], ["--threads", "1000"], ["--isa", "portable"])
    }
    assert len(texts) == 1
    done = headrace("run", MODEL, "-p", "x", "-n", "1", "--threads", "1000")
    assert done.stderr.startswith("warning: threads: 1000 were asked for") and done.stderr.count("\n") == 1


def test_sampling_is_reproducible_by_seed():
    def text(*options):
        return run_json("-p", "Invent a name for a cat.", "-n", "16", *options)["token_ids"]

    assert text("--temp", "1", "--seed", "5") == text("--temp", "1", "--seed", "5")
    assert len({tuple(text("--temp", "1.5", "--seed", seed)) for seed in range(3)}) > 1
    greedy = text()
    assert text("--temp", "1", "--top-k", "1") == greedy
    assert text("--temp", "1", "--top-p", "0") == greedy
    assert text("--temp", "1", "--min-p", "1") == greedy
    assert text("--repeat-penalty", "50") != greedy


def test_trace(tmp_path):
    trace = tmp_path / "trace.json"
    succeeds("run", MODEL, "-p", "x", "-n", "2", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert any(name.startswith("linear") for name in names), names
    assert list(tmp_path.iterdir()) == [trace]
    assert "cannot be written" in refuses(4, "run", MODEL, "-p", "x", "--trace", tmp_path / "missing" / "x")


# ---- streams and signals -------------------------------------------------------------------------------------------


def ordinary_signals():
    """A job in the background ignores SIGINT, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments, **options):
    return subprocess.Popen(
        [BINARY, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=ordinary_signals,
        **options,
    )


ENDLESS = ["-p", "Write a very long story about the sea, with many chapters.", "-n", "100000", "--repeat-penalty", "1.2"]


def test_the_text_comes_as_it_is_made():
    process = start("run", MODEL, *ENDLESS)
    pieces = [os.read(process.stdout.fileno(), 65536) for _ in range(5)]
    assert process.poll() is None and all(0 < len(piece) < 200 for piece in pieces)
    process.kill()
    process.communicate()


def test_interrupt_ends_the_answer():
    process = start("run", MODEL, *ENDLESS)
    begin = process.stdout.read(20)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130 and err == b""
    assert (begin + rest).endswith(b"\n")
    (begin + rest).decode()


def test_interrupt_gives_the_json_so_far():
    process = start("run", MODEL, *ENDLESS, "--json")
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=TIMEOUT)
    if process.returncode == -signal.SIGINT:
        assert out == b""  # still loading: there is nothing to keep
    else:
        assert process.returncode == 130 and json.loads(out)["finish_reason"] == "cancelled"


def test_a_closed_pipe_ends_it_quietly():
    process = start("run", MODEL, *ENDLESS)
    process.stdout.read(1)
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=TIMEOUT) == 0


def test_a_full_disk_is_an_error():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "--version"], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT)
    assert done.returncode == 4
    assert done.stderr == b"headrace: standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed, status", [("<&-", 4), (">&-", 4), ("2>&-", 0)])
def test_closed_streams(closed, status):
    prompt = "" if closed == "<&-" else "-p x"
    line = f'"$0" run "$1" {prompt} -n 1 {closed}'
    done = subprocess.run(["sh", "-c", line, BINARY, MODEL], capture_output=True, timeout=TIMEOUT)
    assert done.returncode == status, done.stderr


def test_too_little_memory_is_an_error():
    line = 'ulimit -v 150000; exec "$0" run "$1" -p x'
    done = subprocess.run(["sh", "-c", line, BINARY, MODEL], capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 4 and done.stderr.count(b"\n") == 1 and b"memory" in done.stderr


class Terminal:
    """The binary on a terminal of its own."""

    def __init__(self, *arguments):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            ordinary_signals()
            os.execv(BINARY, [BINARY, *arguments])
        self.seen = ""

    def wait_for(self, text):
        """Reads until `text` has come since the last call."""
        end = time.monotonic() + TIMEOUT
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.descriptor], [], [], 1)[0]:
                try:
                    piece = os.read(self.descriptor, 65536)
                except OSError:  # the other end is closed
                    piece = b""
                assert piece, self.seen
                self.seen += piece.decode(errors="replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def status(self):
        while True:
            try:
                if not os.read(self.descriptor, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_statistics_on_a_terminal():
    terminal = Terminal("run", MODEL, "-p", "Hello", "-n", "4")
    terminal.wait_for(" prompt tokens")
    terminal.wait_for("4 new tokens")
    assert terminal.status() == 0


def test_a_terminal_is_no_prompt():
    terminal = Terminal("run", MODEL)
    terminal.wait_for("headrace: expected a prompt")
    assert terminal.status() == 2


def test_chat_on_a_terminal():
    terminal = Terminal("chat", MODEL, "-n", "100000", "--repeat-penalty", "1.2")
    terminal.wait_for("> ")
    terminal.type("Write a very long story about the sea.\n")
    terminal.wait_for("sea.\r\n")
    terminal.wait_for(" ")
    terminal.type("\x03")  # Ctrl-C stops the answer
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.type("/help\n")
    terminal.wait_for("/clear")
    terminal.wait_for("> ")
    terminal.type("\x03")  # at the prompt it asks first
    terminal.wait_for("Ctrl-C again")
    terminal.wait_for("> ")
    terminal.type("\x03")
    assert terminal.status() == 130
    terminal = Terminal("chat", MODEL)
    terminal.wait_for("> ")
    terminal.type("\x04")  # Ctrl-D
    assert terminal.status() == 0


# ---- chat ----------------------------------------------------------------------------------------------------------


def im(role, text):
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


SYSTEM = im("system", "You are brief.")
CHAT = ["chat", MODEL, "--system", "You are brief.", "-n", "20"]


def continued(*messages):
    """What the model answers to a conversation that is computed anew."""
    text = SYSTEM + "".join(im(role, text) for role, text in messages) + "<|im_start|>assistant\n"
    return run_json("--raw", "-p", text, "-n", "20")["text"]


def test_chat_keeps_the_history():
    done = headrace(*CHAT, stdin="My name is Ada.\nWhat is my name?\n")
    assert done.returncode == 0, done.stderr
    first = continued(("user", "My name is Ada."))
    second = continued(("user", "My name is Ada."), ("assistant", first), ("user", "What is my name?"))
    assert done.stdout == f"{first}\n{second}\n"


def test_chat_commands():
    script = "Hello.\n/clear\n/system\n/system You are brief.\n/nope\n/hepl\n\n   \nHello.\n/quit\nnot read\n"
    done = headrace(*CHAT, stdin=script)
    assert done.returncode == 0, done.stderr
    answer = continued(("user", "Hello."))
    assert done.stdout == f"{answer}\n{answer}\n"
    assert "unknown command /nope; see /help" in done.stderr and "did you mean /help?" in done.stderr
    assert "/system" in succeeds(*CHAT, stdin="/help\n")


@pytest.mark.parametrize(
    "typed, message",
    [
        ("one\\\ntwo\n", "one\ntwo"),
        ('"""\none\n\n/two\n"""\n', "one\n\n/two"),
        ('"""one\ntwo"""\n', "one\ntwo"),
        ('"""/one"""', "/one"),
        ("no line end", "no line end"),
        ("one\r\n", "one"),
    ],
)
def test_chat_messages_of_several_lines(typed, message):
    assert succeeds(*CHAT, stdin=typed) == continued(("user", message)) + "\n"


def test_chat_that_outgrows_its_context():
    done = headrace(*CHAT, "-c", "60", stdin="Hello.\n" + "word " * 100 + "\n/clear\nHello.\n")
    answers = done.stdout.splitlines()
    assert "the context holds 60; /clear" in done.stderr
    assert done.returncode == 3 and len(answers) >= 2
    assert succeeds(*CHAT, stdin="") == ""


# ---- tokenize, info, perplexity, doctor ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Hello world", "", "\n\n  x\t", "naïve 世界 😀 e\u0301", "<|im_start|>user\nhi<|im_end|>"])
def test_tokenize_round_trip(text):
    line = succeeds("tokenize", MODEL, stdin=text)
    assert line.count("\n") == 1
    answer = json.loads(succeeds("tokenize", MODEL, "--json", stdin=text))
    assert answer == {"token_ids": [int(word) for word in line.split()]}
    assert succeeds("tokenize", MODEL, "--decode", stdin=line) == text
    decoded = json.loads(succeeds("tokenize", MODEL, "--decode", "--json", stdin=line))
    assert decoded == {"text": text, "token_ids": answer["token_ids"]}


def test_tokenize_options(tmp_path):
    file = tmp_path / "text"
    file.write_text("<|im_end|>")
    parsed = succeeds("tokenize", MODEL, "-f", file).split()
    literal = succeeds("tokenize", MODEL, "-f", file, "--no-parse-special").split()
    assert len(parsed) == 1 and len(literal) > 1
    assert succeeds("tokenize", MODEL, "--decode", stdin=" ".join(literal)) == "<|im_end|>"
    assert succeeds("tokenize", MODEL, "--no-special", stdin="Hello") == succeeds("tokenize", MODEL, stdin="Hello")


@pytest.mark.parametrize("ids", ["x", "-1", "49152", "1 2 99999999999999999999", "1,2", "1.5"])
def test_ids_that_are_none(ids):
    assert "expected a number from 0 to 49151" in refuses(3, "tokenize", MODEL, "--decode", stdin=ids)


def test_info():
    report = json.loads(succeeds("info", MODEL, "--json"))
    assert report["architecture"] == "llama" and report["runnable"] is True
    assert report["file_bytes"] == Path(MODEL).stat().st_size
    assert report["shape"]["layers"] == 30 and report["shape"]["vocabulary"] == 49152
    assert sum(use["tensors"] for use in report["formats"]) == report["tensors"] == 272
    assert {use["format"] for use in report["formats"]} == {"q4_1", "q8_0", "f32"}
    memory = report["memory"]
    assert memory["total_bytes"] == memory["weight_bytes"] + memory["kv_bytes"] + memory["arena_bytes"]
    # 30 layers of keys and values: 3 heads of 64 halves.
    assert memory["kv_bytes_per_position"] == 30 * 2 * 3 * 64 * 2
    small = json.loads(succeeds("info", MODEL, "--json", "-c", "64"))["memory"]
    assert small["context"] == 64 and small["kv_bytes"] < memory["kv_bytes"] / 10
    assert report["shape"]["experts"] == 0
    # The output is the embedding, so that a token reads all Weights.
    assert memory["token_bytes"] == sum(use["bytes"] for use in report["formats"])
    text = succeeds("info", MODEL)
    assert "q4_1" in text and "30 layers" in text and "experts" not in text


def test_info_program_and_plan():
    program = succeeds("info", MODEL, "--program")
    assert "linear(" in program and "attention(" in program
    plan = succeeds("info", MODEL, "--plan")
    assert "linear" in plan
    both = json.loads(succeeds("info", MODEL, "--json", "--program", "--plan"))
    assert both["program"] == program and isinstance(both["plan"], str) and both["runnable"]


def test_perplexity(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst of times.")
    ids = succeeds("tokenize", MODEL, "-f", text).split()
    whole = json.loads(succeeds("perplexity", MODEL, text, "--json"))
    assert whole["tokens"] == len(ids) and whole["scored_tokens"] == len(ids) - 1 and whole["windows"] == 1
    assert whole["class"] == "prompt"
    assert 2 < whole["perplexity"] < 60
    assert abs(whole["perplexity"] - 2.718281828459045 ** -whole["mean_log_likelihood"]) < 1e-6
    generated = json.loads(succeeds("perplexity", MODEL, text, "--json", "--class", "generated"))
    assert abs(generated["perplexity"] / whole["perplexity"] - 1) < 0.02
    cut = json.loads(succeeds("perplexity", MODEL, "-", "--json", "-c", "8", stdin=text.read_bytes()))
    assert cut["windows"] == -(-len(ids) // 8) and cut["perplexity"] > whole["perplexity"]
    assert f"{whole['perplexity']:.4f}" in succeeds("perplexity", MODEL, text)
    nonsense = json.loads(succeeds("perplexity", MODEL, "-", "--json", stdin="zq xv 9# plk ] ooo ~~ Q jj %% w"))
    assert nonsense["perplexity"] > 3 * whole["perplexity"]
    special = json.loads(succeeds("perplexity", MODEL, "-", "--json", stdin="<|im_start|>user\nHi<|im_end|>"))
    assert special["tokens"] == len(succeeds("tokenize", MODEL, stdin="<|im_start|>user\nHi<|im_end|>").split())
    assert "at least 2 tokens" in refuses(3, "perplexity", MODEL, "-", stdin="")


def test_doctor():
    report = json.loads(succeeds("doctor", "--json"))
    assert report["kernels"]["chosen"] in report["kernels"]["available"]
    assert report["limits"]["threads"] >= 1 and report["usable_memory_bytes"] > 0
    assert any(memory["read_bytes_per_s"] > 1e8 for memory in report["machine"]["memories"])
    assert all(unit["f32_flops_per_s"] > 1e8 for unit in report["machine"]["compute_units"])
    text = succeeds("doctor")
    for word in ("CPU", "threads", "memory", "kernels"):
        assert word in text
