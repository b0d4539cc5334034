# fagen: our plugins have the methods, arguments and fields that the engines' sources have at the versions listed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ast
import importlib
import inspect
import os
import subprocess
import sys

import pytest

import stubs

PLUGINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
CLASSES = [("vllm", ours, theirs) for ours, theirs in (
    ("FagenBackend", ["AttentionBackend"]), ("FagenMetadataBuilder", ["AttentionMetadataBuilder"]),
    ("FagenImpl", ["AttentionImpl", "AttentionImplBase", "FlashAttentionImpl"]))] + [("sglang", "FagenBackend", ["AttentionBackend"])]
# what our code calls the engines' objects: their classes
OBJECTS = {"vllm": {"common": "CommonAttentionMetadata", "kv_cache_spec": "AttentionSpec", "capability": "DeviceCapability"},
           "sglang": {"batch": "ForwardBatch", "forward_batch": "ForwardBatch", "layer": "RadixAttention", "model_runner": "ModelRunner"}}
MADE_LATER = {"token_to_kv_pool"}  # fields that ModelRunner is given after it is made


def named(engine, name):
    return next(said for full, said in stubs.interface(engine)["names"].items() if full.split(".")[-1] == name)


def takes(function):
    """As list-interface writes it."""
    found = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not any(name.startswith("*") for name in found):
            found.append("*")
        found.append({p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name)
    return found


@pytest.mark.parametrize("engine, ours, theirs", CLASSES)
def test_methods_take_what_the_engine_gives(engine, ours, theirs):
    made = getattr(stubs.plugin(engine), ours)
    listed, fields = {}, set()
    for name in reversed(theirs):
        listed.update(named(engine, name)["methods"])
        fields |= {*named(engine, name)["fields"], *named(engine, name)["methods"]}
    for name, value in vars(made).items():
        if name.startswith("_") and name not in ("__init__", "_cudagraph_support"):
            continue
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if not inspect.isfunction(function):
            assert name in fields, f"{ours}.{name} is none of {engine}'s"
            continue
        if engine == "sglang" and name == "__init__":
            assert takes(function)[:2] == ["self", "model_runner"]  # our own function makes it
            continue
        assert name in listed, f"{ours}.{name} is none of {engine}'s"
        assert takes(function) == listed[name]["takes"], f"{ours}.{name}"
        kinds = listed[name].get("is", ())
        assert isinstance(value, staticmethod) == ("static" in kinds) and isinstance(value, classmethod) == ("class" in kinds), f"{ours}.{name}"
    missing = [name for name, said in listed.items() if "abstract" in said.get("is", ()) and not hasattr(made, name)]
    assert not missing and not getattr(made, "__abstractmethods__", ())


@pytest.mark.parametrize("engine", OBJECTS)
def test_fields_that_are_read_are_there(engine):
    with open(os.path.join(PLUGINS, engine, f"fagen_{engine}", "backend.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    read = [(node.value.id, node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id in OBJECTS[engine]]
    assert len(read) > 5
    for owner, field in read:
        said = named(engine, OBJECTS[engine][owner])
        all_of = [said, *(one for full, one in stubs.interface(engine)["names"].items() if full.split(".")[-1] in said.get("bases", ()))]
        assert field in {*MADE_LATER, *(name for one in all_of for name in (*one["fields"], *one.get("methods", ())))}, f"{owner}.{field}"


def test_backends_are_registered():
    for engine in ("vllm", "sglang"):
        stubs.plugin(engine)
    importlib.import_module("fagen_vllm").register()
    assert stubs.registered["CUSTOM"] == "fagen_vllm.backend.FagenBackend"
    importlib.import_module("fagen_sglang").register()
    assert "fagen" in stubs.registered and stubs.choices == ["fagen"]
    for engine, constant in (("vllm", "DEFAULT_PLUGINS_GROUP"), ("sglang", "GENERAL_PLUGINS_GROUP")):
        with open(os.path.join(PLUGINS, engine, "pyproject.toml"), encoding="utf-8") as file:
            assert f'[project.entry-points."{named(engine, constant)["value"]}"]\nfagen = "fagen_{engine}:register"' in file.read()


def test_flashinfer_names_and_arguments():
    import fagen.flashinfer as ours
    for full, said in stubs.interface("flashinfer")["names"].items():
        name = full.split(".")[-1]
        if "takes" in said:
            assert takes(getattr(ours, name)) == said["takes"], name
            continue
        for method in ("__init__", "plan", "run"):
            source = "_plan_impl" if method == "plan" and "_plan_impl" in said["methods"] else method
            if source not in said["methods"]:
                continue
            wanted = [argument for argument in said["methods"][source]["takes"] if argument != "window_right"]  # given by FlashInfer's own code alone
            assert takes(getattr(getattr(ours, name), method)) == wanted, f"{name}.{method}"


def test_the_list_is_of_names_alone(tmp_path):
    package = tmp_path / "flashinfer"
    package.mkdir()
    for file, names in (("decode.py", ["BatchDecodeWithPagedKVCacheWrapper", "CUDAGraphBatchDecodeWithPagedKVCacheWrapper"]),
                        ("prefill.py", ["BatchPrefillWithPagedKVCacheWrapper", "BatchPrefillWithRaggedKVCacheWrapper"])):
        text = "".join(f"class {name}(Base):\n    kind: int = 3\n    def __init__(self, a, *, b=2):\n        self.held = secret(a)\n" for name in names)
        (package / file).write_text(text + f"def single_{file[:-3]}_with_kv_cache(q, *args, **rest): return 7\n", encoding="utf-8")
    (package / "cascade.py").write_text("def merge_state(a): pass\ndef merge_state_in_place(a): pass\ndef merge_states(a): pass\n", encoding="utf-8")
    (package / "page.py").write_text("def append_paged_kv_cache(a): pass\ndef get_seq_lens(a): pass\n", encoding="utf-8")
    command = [sys.executable, os.path.join(PLUGINS, "list-interface"), "flashinfer", "9.9", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "page.py of flashinfer 9.9 has no get_batch_indices_positions" in done.stderr
    (package / "page.py").write_text("def append_paged_kv_cache(a): pass\ndef get_seq_lens(a): pass\ndef get_batch_indices_positions(a): pass\n", encoding="utf-8")
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '"flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper":{"bases":["Base"],"fields":["kind","held"],"methods":{"__init__":{"takes":["self","a","*","b"]}}}' in out
    assert '"takes":["q","*args","**rest"]' in out and "secret" not in out and "7" not in out.replace("9.9", "")
