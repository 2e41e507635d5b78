"""`headrace bench`: every field of its JSON, figures that agree with each other, and what it refuses before it runs.
No time is asserted."""
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

BINARY = str(Path(os.environ["HEADRACE_BIN_DIR"]) / "headrace")
MODEL = os.environ["HEADRACE_MODEL"]
SHORT = ["--prompt-tokens", "16", "--tokens", "2", "--repeats", "2"]

MACHINE_FIELDS = {"isa", "read_bytes_per_s", "int8_ops_per_s", "bf16_flops_per_s", "f32_flops_per_s"}
RESULT_FIELDS = {"test", "tokens", "depth", "sequences", "tokens_per_s", "tokens_per_s_each", "limit", "share_of_limit"}

# A peer that answers at once: with half a second, or that it has no such test.
FAKE_PEER = """#!/bin/sh
echo "ready 7.5 $6"
while read -r kind tokens depth sequences; do
  if [ "$sequences" -gt 1 ]; then echo unsupported "several sequences"; else echo seconds 0.5; fi
done
"""


def bench(*arguments, **environment):
    return subprocess.run([BINARY, "bench", MODEL, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


def refuses(status, *arguments, **environment):
    done = bench(*arguments, **environment)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and done.stderr.startswith("headrace: "), done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """One run beside a fake peer, with all kinds of tests."""
    cache = tmp_path_factory.mktemp("cache")
    peer = cache / "peers" / "llama.cpp" / "peer"
    peer.parent.mkdir(parents=True)
    peer.write_text(FAKE_PEER)
    peer.chmod(peer.stat().st_mode | stat.S_IXUSR)
    done = bench(*SHORT, "--depth", "0,40", "--sequences", "1,3", "--vs", "llama.cpp", "--threads", "1", "--json",
                 HEADRACE_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_machine(report):
    machine = report["machine"]
    assert MACHINE_FIELDS <= machine.keys()
    assert machine["isa"] in {"portable", "avx2", "avx512", "amx"}
    for field in MACHINE_FIELDS - {"isa", "bf16_flops_per_s"}:
        assert machine[field] > 0
    assert machine["bf16_flops_per_s"] >= 0


def test_results_are_the_tests_that_were_asked_for(report):
    kinds = [(r["test"], r["tokens"], r["depth"], r["sequences"]) for r in report["results"]]
    assert kinds == [("prefill", 16, 0, 1), ("decode", 2, 0, 1), ("decode", 2, 0, 3), ("decode", 2, 40, 1),
                     ("decode", 2, 40, 3)]
    for result in report["results"]:
        assert RESULT_FIELDS <= result.keys()
        assert result["tokens_per_s"] > 0 and result["limit"] > 0
        assert result["tokens_per_s_each"] == pytest.approx(result["tokens_per_s"] / result["sequences"])
        assert result["share_of_limit"] == pytest.approx(result["tokens_per_s"] / result["limit"])
        spread = result["spread"]
        assert spread["runs"] == 2
        assert spread["smallest"] <= spread["lower"] <= spread["upper"] <= spread["largest"]
        assert spread["smallest"] <= result["tokens_per_s"] * 1.000001
        assert 0 < result["outside_kernels_share"] < 1


def test_limits_follow_from_bytes_and_rates(report):
    for result in report["results"]:
        if result["test"] != "decode" or result["limited_by"] != "memory":
            continue
        step_s = (result["weight_bytes"] + result["kv_bytes"]) / result["read_bytes_per_s"]
        assert result["limit"] == pytest.approx(result["sequences"] / step_s)


def test_bytes_are_those_of_the_file_and_of_kv(report):
    info = json.loads(subprocess.run([BINARY, "info", MODEL, "--json"], capture_output=True, check=True).stdout)
    tensors = sum(each["bytes"] for each in info["formats"])
    per_position = info["memory"]["kv_bytes_per_position"]
    shallow, _, deep, batch = report["results"][1:]
    # The default model's embedding is its output too, so that a step reads every tensor once.
    assert shallow["weight_bytes"] == tensors
    assert shallow["kv_bytes"] == 1.5 * per_position  # positions 1 and 2
    assert deep["kv_bytes"] == 41.5 * per_position
    assert batch["kv_bytes"] == 3 * deep["kv_bytes"] and batch["weight_bytes"] == tensors


def test_peers_stand_beside(report):
    assert report["peers"] == [{"name": "llama.cpp", "version": "7.5 42"}]  # 40 + 2 positions
    for result in report["results"]:
        if result["sequences"] > 1:
            assert result["peers"] == []
            continue
        (peer,) = result["peers"]
        assert peer["name"] == "llama.cpp"
        assert peer["tokens_per_s"] == pytest.approx(result["tokens"] / 0.5)
        assert peer["ratio"] == pytest.approx(result["tokens_per_s"] / peer["tokens_per_s"])


def test_table_for_people():
    done = bench(*SHORT, "--prompt-tokens", "0", "--threads", "1")
    assert done.returncode == 0, done.stderr
    header, line = done.stdout.splitlines()[-2:]
    assert header.split()[:2] == ["test", "tokens/s"]
    assert line.startswith("decode 2 ") and "%" in line


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--depth", "0,8160"], ["64 tokens at depth 8160", "at most depth 8128 does", "-c 8224 makes it longer"]),
        (["--prompt-tokens", "0", "--depth", "100", "-c", "128"], ["context of 128", "at most depth 64 does"]),
        (["--prompt-tokens", "9000"], ["prompt of 9000 tokens", "at most 8192 do"]),
        (["--prompt-tokens", "0", "--tokens", "0"], ["expected at least 1"]),
    ],
)
def test_refuses_what_does_not_fit(arguments, words):
    message = refuses(3, *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--depth", "1,-2"], "--depth: expected at most 64 whole numbers from 0 to 2147483647"),
        (["--depth", ""], "--depth: expected"),
        (["--depth", "1,,2"], "--depth: expected"),
        (["--sequences", "0"], "--sequences: expected at most 64 whole numbers from 1 to 4096"),
        (["--repeats", "0"], "--repeats: expected a whole number from 1 to 1000"),
        (["--vs", "vllm"], "--vs: expected names of llama.cpp, openvino"),
        (["--tokns", "3"], "did you mean --tokens?"),
    ],
)
def test_usage(arguments, words):
    assert words in refuses(2, *arguments)


def test_names_the_script_that_builds_a_peer(tmp_path):
    message = refuses(3, *SHORT, "--vs", "llama.cpp", HEADRACE_CACHE=str(tmp_path))
    assert "scripts/bench_peers.sh llama.cpp" in message and str(tmp_path) in message


def test_a_peer_that_fails_is_one_line(tmp_path):
    peer = tmp_path / "peers" / "openvino" / "peer"
    peer.parent.mkdir(parents=True)
    peer.write_text("#!/bin/sh\necho error no such device\n")
    peer.chmod(0o755)
    assert "openvino: no such device" in refuses(4, *SHORT, "--vs", "openvino", HEADRACE_CACHE=str(tmp_path))
