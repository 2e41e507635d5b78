"""The snippet runner runs what a reader would run, and notices output that is not as stated."""

import readme_snippets


def run_text(tmp_path, text: str) -> int:
    path = tmp_path / "page.md"
    path.write_text(text)
    return readme_snippets.main([str(path)])


def test_right_output_passes(tmp_path):
    assert run_text(tmp_path, "```console\n$ echo one; echo two\none\ntwo\n```\n") == 0


def test_wrong_output_fails(tmp_path):
    assert run_text(tmp_path, "```console\n$ echo one\ntwo\n```\n") == 1


def test_missing_and_additional_lines_fail(tmp_path):
    assert run_text(tmp_path, "```console\n$ echo one\none\ntwo\n```\n") == 1
    assert run_text(tmp_path, "```console\n$ echo one; echo two\none\n```\n") == 1


def test_failing_command_fails(tmp_path):
    assert run_text(tmp_path, "```console\n$ false\n```\n") == 1


def test_wildcards(tmp_path):
    assert run_text(tmp_path, "```console\n$ echo 12.5 tok/s; echo a; echo b; echo end\n... tok/s\n...\nend\n```\n") == 0
    assert run_text(tmp_path, "```console\n$ echo 12.5 tok/s; echo other\n... tok/s\n...\nend\n```\n") == 1


def test_continued_command(tmp_path):
    assert run_text(tmp_path, "```console\n$ echo one \\\n  two\none two\n```\n") == 0


def test_block_that_is_not_run_is_listed(tmp_path, capsys):
    page = "<!-- not run: takes minutes -->\n```console\n$ false\n```\n\n```console\n$ true\n```\n"
    assert run_text(tmp_path, page) == 0
    assert "not run (takes minutes): false" in capsys.readouterr().out


def test_page_that_runs_nothing_fails(tmp_path):
    assert run_text(tmp_path, "no block\n") == 1
