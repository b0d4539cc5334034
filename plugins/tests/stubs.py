# fagen: modules with an engine's names and nothing of its code, made of the lists in plugins/interfaces.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes have the listed methods, which raise, abstract ones that have to be there, and fields that are given by name. What tests need to
happen stands in BEHAVIOUR."""
import abc
import enum
import importlib.util
import json
import os
import sys
import types

INTERFACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interfaces")
registered = {}  # of SGLang's and vLLM's backends, by name
choices = []


def _register(name):
    def keep(function):
        registered[name] = function
        return function
    return keep


BEHAVIOUR = {
    "vllm.v1.attention.backends.registry.register_backend": lambda backend, path: registered.update({backend.name: path}),
    "sglang.srt.layers.attention.attention_registry.register_attention_backend": _register,
    "sglang.srt.arg_groups.choices.add_attention_backend_choices": choices.extend,
    "sglang.srt.model_executor.forward_batch_info.ForwardMode.is_decode_or_idle": lambda self: self.name in ("DECODE", "IDLE"),
}


def interface(engine):
    """What list-interface wrote."""
    with open(os.path.join(INTERFACES, f"{engine}.json"), encoding="utf-8") as file:
        return json.load(file)


def _raising(name):
    def method(*_, **__):
        raise NotImplementedError(name)
    return method


def _init(takes, fields):
    """__init__ that keeps its arguments by their names; fields that are not given are None."""
    names = [name for name in takes[1:] if not name.startswith("*")] or fields
    def init(self, *values, **named):
        unknown = set(named) - set(names)
        if unknown or len(values) > len(names):
            raise TypeError(f"{type(self).__name__} has no {sorted(unknown) or values[len(names):]}")
        given = dict(zip(names, values), **named)
        for name in names:
            setattr(self, name, given.get(name))
    return init


def _class(full, said, known):
    bases = tuple(known[base] for base in said.get("bases", ()) if base in known)
    if any(base.endswith("Enum") for base in said.get("bases", ())) or full.endswith("BackendEnum"):
        members = [field for field in said["fields"] if field.isupper()]
        kind = enum.IntEnum if "IntEnum" in said.get("bases", ()) else enum.Enum
        made = kind(full.split(".")[-1], {member: i + 1 for i, member in enumerate(members)})
        for name in said.get("methods", ()):
            setattr(made, name, BEHAVIOUR.get(f"{full}.{name}", _raising(name)))
        return made
    body = {}
    for name, method in said.get("methods", {}).items():
        kinds = method.get("is", ())
        one = BEHAVIOUR.get(f"{full}.{name}", _raising(name))
        one = abc.abstractmethod(one) if "abstract" in kinds and name != "__init__" else one
        body[name] = staticmethod(one) if "static" in kinds else classmethod(one) if "class" in kinds else property(one) if "property" in kinds else one
    body.pop("__new__", None)
    body.pop("__post_init__", None)
    body["__init__"] = _init(said.get("methods", {}).get("__init__", {"takes": ["self"]})["takes"], said.get("fields", []))
    return abc.ABCMeta(full.split(".")[-1], bases, body)


def install(engine):
    """Puts stub modules of an engine in the place of its modules."""
    known = {}
    for full, said in interface(engine)["names"].items():
        module, name = full.rsplit(".", 1)
        made = BEHAVIOUR.get(full) or (said["value"] if "value" in said else _class(full, said, known) if "fields" in said else _raising(name))
        known[name] = made
        setattr(_module(module), name, made)
    if engine == "vllm":
        _module("vllm.envs").VLLM_BATCH_INVARIANT = False


def _module(name):
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
        if "." in name:
            parent, _, child = name.rpartition(".")
            setattr(_module(parent), child, sys.modules[name])
    return sys.modules[name]


def plugin(engine):
    """Our plugin's backend module, over stubs where the engine is not installed."""
    if engine not in sys.modules and importlib.util.find_spec(engine) is None:
        install(engine)
    folder = os.path.join(os.path.dirname(INTERFACES), engine)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(f"fagen_{engine}.backend")
