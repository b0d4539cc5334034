# fagen: the program `fagen` of the wheel: the compiler that it starts, and bench's reading of models. No framework.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import re
import subprocess
import sys

import pytest

from fagen import _bench, _models, errors

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def run(*arguments, text=None):
    return subprocess.run([sys.executable, "-m", "fagen", *arguments], capture_output=True, text=True, input=text)


def test_compiler_takes_arguments_input_and_gives_its_code():
    done = run("fmt", text="target   sm_89;")
    assert (done.returncode, done.stdout, done.stderr) == (0, "target sm_89;\n", "")
    assert run("fmt", "--check", text="target   sm_89;").returncode == 2
    wrong = run("check", "none.fa", "--diagnostics=json")
    assert wrong.returncode == 1 and json.loads(wrong.stderr)["message"].startswith("cannot read 'none.fa'")


@pytest.mark.parametrize("arguments, said", [
    (["doctor", "--jsn"], "fagen doctor: error: unexpected '--jsn'; did you mean '--json'?"),
    (["cache", "clear"], "fagen cache: error: unexpected 'clear'; it takes --help, --empty"),
])
def test_arguments_that_a_command_does_not_have(arguments, said):
    done = run(*arguments)
    assert done.returncode == 1 and done.stderr.startswith(said), done


def test_help_names_both():
    text = run("--help").stdout
    assert text.startswith("fagen doctor --help") and "fagen bench --help" in text and "USAGE: fagen" in text
    assert "--model FILE" in run("bench", "--help").stdout


@pytest.mark.parametrize("program", ["fagen", "fagen-run"])
def test_wheel_has_the_programs(program):
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        module, function = re.search(rf'^\[project.scripts\](?:\n.+)*?\n{program} = "([\w.]+):(\w+)"', file.read(), re.M).groups()
    called = f"import sys; from {module} import {function}; sys.argv = ['{program}', '--version']; sys.exit({function}())"
    done = subprocess.run([sys.executable, "-c", called], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(program), done


@pytest.mark.parametrize("config, expected", [
    (dict(num_attention_heads=32, num_key_value_heads=8, num_hidden_layers=32, hidden_size=4096),
     [(32, 32, 8, 128, 128, True, None)]),
    (dict(model_type="gpt2", n_head=12, n_layer=12, n_embd=768), [(12, 12, 12, 64, 64, True, None)]),
    (dict(model_type="bert", num_attention_heads=12, num_hidden_layers=6, hidden_size=768), [(6, 12, 12, 64, 64, False, None)]),
    (dict(text_config=dict(num_attention_heads=8, num_key_value_heads=4, head_dim=256, num_hidden_layers=3, sliding_window=1024,
                           layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
     [(2, 8, 4, 256, 256, True, 1024), (1, 8, 4, 256, 256, True, None)]),
    (dict(num_attention_heads=8, num_hidden_layers=6, head_dim=64, sliding_window=512, sliding_window_pattern=6),
     [(5, 8, 8, 64, 64, True, 512), (1, 8, 8, 64, 64, True, None)]),
    (dict(num_attention_heads=16, num_key_value_heads=2, num_hidden_layers=4, head_dim=64, sliding_window=99, use_sliding_window=False),
     [(4, 16, 2, 64, 64, True, None)]),
    (dict(num_attention_heads=128, num_hidden_layers=61, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
     [(61, 128, 128, 192, 128, True, None)]),
])
def test_layers(config, expected):
    assert [tuple(layer) for layer in _models.layers_of(config)] == expected


@pytest.mark.parametrize("config, message", [
    ("{", "cannot read the model"), ("[" * 100000, "cannot read the model"), ("[1]", "holds no object"), ("{}", "has no num_attention_heads, nor n_head"),
    ('{"n_head": "many", "n_layer": 2}', "num_attention_heads is 'many'; it is a positive number"),
    ('{"n_head": 8, "n_layer": 2, "num_key_value_heads": 3, "head_dim": 64}', "3 heads of K and V do not divide 8 heads"),
])
def test_models_that_are_none(tmp_path, config, message):
    file = tmp_path / "config.json"
    file.write_text(config)
    with pytest.raises(errors.Error, match=message):
        _models.read_model(str(file))
    done = run("bench", "--model", str(file))
    assert done.returncode == 1 and done.stderr.startswith("fagen: error: ") and message in done.stderr and not done.stdout


def test_mistakes_of_the_command_line():
    for arguments in ([], ["--model", "m.json", "--seq", "many"], ["--model", "m.json", "--dtype", "f64"]):
        done = run("bench", *arguments)
        assert done.returncode == 1 and done.stderr.startswith("fagen bench: error: ") and "--help" in done.stderr


def test_cases_and_verdicts():
    layers = [_models.Layer(2, 8, 2, 64, 64, True, None), _models.Layer(1, 8, 8, 64, 64, False, 100)]
    options = _bench.parse(["--model", "m", "--seq", "64,256", "--batch", "3"])
    cases = list(_bench.cases_of(layers, options))
    assert [(case.phase, case.rows, case.keys, case.is_windowed()) for case in cases] == [
        ("prefill", 64, 64, False), ("decode", 1, 64, False), ("prefill", 256, 256, False), ("decode", 1, 256, False),
        ("prefill", 64, 64, False), ("prefill", 256, 256, True)]
    good = dict(same_bits=True, error=1e-3, sdpa_error=1e-3)
    assert _bench.is_sound(good, "f16") and _bench.is_sound(dict(refused="why"), "f16")
    assert not _bench.is_sound(dict(good, same_bits=False), "f16") and not _bench.is_sound(dict(good, error=5e-3), "f16")
    assert _bench.is_sound(dict(good, error=5e-3, sdpa_error=3e-3), "f16")
