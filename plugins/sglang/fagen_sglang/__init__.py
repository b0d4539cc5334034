# fagen: a backend of SGLang.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pip install fagen-sglang`, then `python -m sglang.launch_server --attention-backend fagen ...`. Written for SGLang 0.5.23
(plugins/interfaces/sglang.json)."""


def register():
    """SGLang's entry point of general plugins: names the backend."""
    from sglang.srt.arg_groups.choices import add_attention_backend_choices
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    add_attention_backend_choices(["fagen"])

    @register_attention_backend("fagen")
    def create(runner):
        from .backend import FagenBackend

        return FagenBackend(runner)
