# fagen: `fagen bench` with PyTorch: on the emulator, and where there is neither GPU nor emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json

import pytest
import torch
from torch_emulated import use_emulator

from fagen import _bench
from fagen.__main__ import main

LLAMA = dict(model_type="llama", hidden_size=2048, num_attention_heads=32, num_key_value_heads=8, num_hidden_layers=16)
emulated = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    return str(file)


@emulated
def test_values_and_bits(model, capsys):
    assert main(["bench", "--model", model, "--emulate", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    prefill, decode = result["rows"]
    assert (prefill["phase"], prefill["layers"], prefill["shape"], prefill["causal"]) == ("prefill", 16, "1 x 4/1 x 96 x 96 x 64", True)
    assert prefill["kernel"] == "l4_fp16_medium_f16_d64_causal" and decode["kernel"] == "l4_fp16_short_f16_d64_none"
    for row in result["rows"]:
        assert row["same_bits"] and row["sound"] and 0 < row["error"] < 2e-3 and "us" not in row


@emulated
def test_table_says_why_no_kernel_computes_a_layer(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(dict(LLAMA, head_dim=64, sliding_window=32, layer_types=["sliding_attention"])))
    assert main(["bench", "--model", str(file), "--emulate", "--phase", "prefill"]) == 0
    assert "none: a window of 32 keys: no kernel has windows that bind" in capsys.readouterr().out
    file.write_text(json.dumps(dict(LLAMA, head_dim=80)))
    assert main(["bench", "--model", str(file), "--emulate", "--phase", "prefill"]) == 0
    assert "none: the emulator: no row for forward f16 head_dim 80, mask causal\n" in capsys.readouterr().out


@emulated
def test_other_bits_fail(model, monkeypatch, capsys):
    monkeypatch.setattr(_bench.Bench, "_same_bits", lambda *_: False)
    assert main(["bench", "--model", model, "--emulate", "--phase", "decode"]) == 2
    assert "DIFFER" in capsys.readouterr().out


def test_reference_is_attention():
    """In blocks of rows and heads, grouped heads, bottom-right mask: the same as PyTorch's in float64."""
    bench = object.__new__(_bench.Bench)
    bench.torch = torch
    q, k, v = (torch.randn(2, heads, 40, 16) for heads in (4, 2, 2))
    whole = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True, enable_gqa=True)
    block = bench._reference(q, k, v, 3, slice(8, 24), True)
    torch.testing.assert_close(block, whole[:, 3, 8:24])
    assert max(bench._errors(whole, whole + 1, q, k, v, True)[:1]) < 1e-9 and bench._errors(whole, whole + 1, q, k, v, True)[1] == pytest.approx(1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_no_gpu(model, capsys):
    assert main(["bench", "--model", model]) == 1
    assert "PyTorch sees no GPU here" in capsys.readouterr().err


def test_progress_waits_two_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(_bench.time, "monotonic", lambda: now[0])
    progress = _bench.Progress()
    progress(0, 3, "first")
    assert capsys.readouterr().err == ""
    now[0] = 2.5
    progress(1, 3, "second")
    assert capsys.readouterr().err == "[2/3] second\n"
