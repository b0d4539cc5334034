# fagen: the package without a framework: import, compile, errors, explain, sources.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os
import re
import subprocess
import sys
import threading

import pytest

import fagen
from conftest import SPEC
from fagen import _lib

FRAMEWORKS = ("torch", "jax", "transformers", "numpy")


def test_import_brings_no_framework():
    code = f"import sys, fagen; assert not set(sys.modules) & set({FRAMEWORKS})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version():
    compiler = subprocess.run([_lib.path("bin", "fagen"), "--version"], capture_output=True,
                              text=True, check=True).stdout
    assert compiler.split()[1] == fagen.__version__


def test_import_is_quick():
    code = "import time, subprocess, json, re, ctypes; t = time.perf_counter(); import fagen; print(time.perf_counter() - t)"
    times = [float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout) for _ in range(5)]
    assert min(times) < 0.020


def test_structs_are_those_of_the_header():
    """The C compiler's sizes and offsets against ctypes' ones."""
    include = os.path.join(os.path.dirname(__file__), "..", "..", "runtime", "include")
    lines = []
    for name, struct in (("problem", _lib.Problem), ("choice", _lib.Choice), ("device_info", _lib.DeviceInfo),
                         ("choice_info", _lib.ChoiceInfo)):
        lines.append(f"_Static_assert(sizeof(fagen_{name}) == {ctypes.sizeof(struct)}, \"{name}\");")
        for field, _ in struct._fields_:
            member = field.rstrip("_")
            lines.append(f"_Static_assert(offsetof(fagen_{name}, {member}) == {getattr(struct, field).offset}, \"{field}\");")
    text = f"#include <fagen/fagen.h>\n_Static_assert(FAGEN_ABI == {_lib.ABI}, \"abi\");\n" + "\n".join(lines)
    try:
        subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-I", include, "-xc", "-"], input=text, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")


def test_compile_gives_kernels_and_their_sources(kernels):
    assert [n for n in kernels.names if "only" in n] == ["mine_only_f16_d64_none", "mine_only_f16_d64_causal"]
    assert '__global__' in kernels.source("mine_only_f16_d64_causal")
    assert kernels.source("mine_only_f16_d64_none", "sm_90a") == kernels.source("mine_only_f16_d64_none")


def test_a_kernel_that_is_not_there(kernels):
    with pytest.raises(fagen.Error, match="no kernel 'yours'"):
        kernels.source("yours")


def test_compile_takes_a_file_and_targets(tmp_path):
    file = tmp_path / "mine.fa"
    file.write_text(SPEC.replace("wgmma", "mma_sync").replace("tma", "cp_async"))
    assert {t for _, t in fagen.compile(file, targets=["sm_80", "sm_89"])._sources} == {"sm_80", "sm_89"}


def test_spec_errors_have_places():
    with pytest.raises(fagen.SpecError) as caught:
        fagen.compile(SPEC.replace("dtype = f16", "dtype = f8"))
    first = caught.value.diagnostics[0]
    assert (first.severity, first.line) == ("error", 3)
    assert "unknown dtype 'f8'" in first.message
    assert (first.end_line, first.end_column - first.column) == (3, len("f8"))
    quoted = [line for line in str(caught.value).splitlines() if "dtype = f8" in line][0]
    assert f"{quoted}\n{' ' * quoted.index('f8')}^~" in str(caught.value)


def test_notes_stand_behind_their_errors():
    with pytest.raises(fagen.SpecError) as caught:
        fagen.compile(SPEC.replace("64 x 64", "64 x 256").replace("head_dim = 64", "head_dim = 256"))
    severities = [d.severity for d in caught.value.diagnostics]
    assert severities[0] == "error" and "note" in severities
    assert all(str(d) in str(caught.value) for d in caught.value.diagnostics)


def test_what_the_compiler_says_without_a_place():
    from fagen.errors import read_diagnostics
    said = read_diagnostics('{"message":"no such file","severity":"error","notes":[]}\nfagen: broken\n')
    assert [str(d) for d in said] == ["fagen: error: no such file", "fagen: error: fagen: broken"]


def test_a_spec_that_is_not_there():
    with pytest.raises(fagen.SpecError, match="nowhere.fa"):
        fagen.compile("nowhere.fa")


def test_explain_names_the_kernel_and_the_reason(kernels):
    text = kernels.explain(shape=(1, 16, 16, 4096, 4096, 64), causal=True, gpu="sm_90")
    assert "mine_only_f16_d64_causal" in text


def test_explain_says_what_is_missing(kernels):
    text = kernels.explain(shape=(1, 16, 16, 4096, 4096, 80), gpu="sm_90")
    assert re.search(r"80", text) and "mine_only" in text


@pytest.mark.parametrize("wrong", [{"shape": (1, 2)}, {"shape": None}, {"gpu": "v100"}, {"dtype": "f32"}])
def test_explain_refuses(kernels, wrong):
    with pytest.raises(fagen.Error, match=next(iter(wrong))):
        kernels.explain(**{"shape": (1, 1, 1, 64, 64, 64), "gpu": "sm_90", **wrong})


def told_device(text):
    return next(line for line in text.splitlines() if line.startswith("device"))


def test_names_of_gpus_are_those_of_the_tools():
    def tool(gpu):
        return subprocess.run([os.path.join(os.path.dirname(fagen.__file__), "bin", "fagen-run"), "explain",
                               os.path.join(os.path.dirname(fagen.__file__), "kernels", "l4_fp16"), "--gpu", gpu, "--problem", "1,1,1,64,64,64"],
                              capture_output=True, text=True, check=False)
    names = re.search(r"it takes sm_NN, (.*)", tool("v100").stderr)[1].split(", ")
    with pytest.raises(fagen.Error) as refused:
        fagen.ready().explain(shape=(1, 1, 1, 64, 64, 64), gpu="v100")
    assert str(refused.value).endswith(", ".join(names))
    for gpu in (*names, names[0].lower(), "rtx4090", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"):
        assert told_device(fagen.ready().explain(shape=(1, 1, 1, 64, 64, 64), gpu=gpu)) == told_device(tool(gpu).stdout)


def test_sms_count_instead_of_a_name_s():
    assert "sm_89, 20 SMs" in told_device(fagen.ready().explain(shape=(1, 1, 1, 64, 64, 64), gpu="L4", sms=20))


def picked(**problem):
    text = fagen.ready().explain(**problem)
    return next(line for line in text.splitlines() if line.startswith("picked")).split()[1]


@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_ready_kernels_for_an_h200(head_dim, dtype):
    assert picked(shape=(2, 16, 4, 1024, 1024, head_dim), dtype=dtype, gpu="sm_90").startswith("h200")


@pytest.mark.parametrize("dtype, kernel", [("f16", "decode_fp16"), ("bf16", "decode_bf16")])
@pytest.mark.parametrize("gpu", ["sm_80", "sm_89", "sm_90", "sm_120"])
def test_ready_kernels_for_decoding(gpu, dtype, kernel):
    assert picked(shape=(1, 32, 8, 1, 8192, 128), dtype=dtype, causal=True, gpu=gpu).startswith(kernel)
    assert not picked(shape=(1, 32, 8, 64, 8192, 128), dtype=dtype, causal=True, gpu=gpu).startswith("decode")


@pytest.mark.parametrize("gpu, head_dim, dtype, kernel", [
    ("sm_80", 128, "f16", "a100_prefill"), ("sm_86", 128, "bf16", "rtx_prefill"), ("sm_89", 64, "f16", "l4_fp16_prefill"),
    ("sm_89", 128, "bf16", "l4_bf16_prefill"), ("sm_89", 96, "f16", "l4_wide_prefill"), ("sm_120", 256, "f16", "l4_wide"),
    ("sm_90", 80, "f16", "none:")])
def test_ready_kernels_by_gpu(gpu, head_dim, dtype, kernel):
    assert picked(shape=(2, 16, 4, 1024, 1024, head_dim), dtype=dtype, gpu=gpu).startswith(kernel)


def test_load_refuses_a_directory_without_kernels(tmp_path):
    with pytest.raises(fagen.Error, match="has no kernel set"):
        fagen.load(tmp_path)


def test_refusals_are_errors_warnings_or_counted():
    from fagen import _stats
    fagen.stats(reset=True)
    with pytest.raises(fagen.Unsupported, match='f: because; fallback="torch" computes it'):
        _stats.refuse("f", "because", "error")
    with pytest.warns(RuntimeWarning, match="fagen: f: because; PyTorch computes it"):
        _stats.refuse("f", "because", "warn")
    _stats.refuse("f", "because", "warn")  # once a reason: pytest would raise a second warning
    _stats.refuse("f", "because", "torch")
    assert fagen.stats(reset=True)["fallbacks"]["f", "because"] == 3
    assert fagen.stats()["fallbacks"] == {}


def test_calls_of_all_threads_are_counted():
    from fagen import _stats
    calls, threads = 1000, [threading.Thread(target=lambda: [_stats.computed("f") for _ in range(calls)]) for _ in range(4)]
    fagen.stats(reset=True)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _stats.computed("g")
    assert fagen.stats(reset=True)["computed"] == {"f": 4 * calls, "g": 1}
    _stats.computed("f")
    assert fagen.stats()["computed"] == {"f": 1}
