# fagen: a backend of vLLM.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pip install fagen-vllm`, then `vllm serve MODEL --attention-backend CUSTOM`. Written for vLLM 0.33.0 (plugins/interfaces/vllm.json)."""


def register():
    """vLLM's entry point of general plugins: names the backend, and imports nothing else."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, "fagen_vllm.backend.FagenBackend")
