"""Text models of transformers by class: with heads, decoders, and one decoding step with cached keys and values."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.zoo.architectures import LENGTH, OLDER, SMALL, TOKENS, torchvision_without_ops

PARTS = {  # of configurations that have more sizes than those of `SMALL` and `OLDER`
    "attention_window_size": 16, "decoder_ffn_dim": 96, "encoder_ffn_dim": 96, "first_k_dense_replace": 1,
    "kv_lora_rank": 16, "lru_width": 64, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1,
    "mamba_n_heads": 8,
    "max_2d_position_embeddings": 256, "moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4,
    "num_decoder_layers": 2, "num_experts": 4, "num_experts_per_tok": 2, "num_layers": 2, "num_local_experts": 4,
    "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "sliding_window": 8, "state_size": 8,
    "time_step_rank": 8, "topk_group": 1, "use_cache": False, "v_head_dim": 16,
}  # fmt: skip
WIDE = {  # sizes at which times mean something
    "d_ff": 1536, "d_kv": 64, "d_model": 384, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536,
    "embedding_size": 384, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536, "ffn_dim": 1536, "head_dim": 64,
    "hidden_dim": 1536, "hidden_size": 384, "intermediate_size": 1536, "max_position_embeddings": 256, "n_embd": 384,
    "n_head": 6, "n_positions": 256, "num_attention_heads": 6, "num_heads": 6, "num_key_value_heads": 2,
}  # fmt: skip
ALSO: dict[str, dict[str, Any]] = {  # options whose sizes depend on one another, by the first letters of a class
    "FalconH1": {"mamba_chunk_size": 8, "mamba_d_head": 16, "mamba_d_ssm": 128, "mamba_n_heads": 8},
    "Mamba2": {"chunk_size": 8, "expand": 2, "head_dim": 16, "n_groups": 1, "num_heads": 8, "state_size": 16},
    "MiniCPM3": {"num_key_value_heads": 4},
    "Dots1": {"n_shared_experts": 1, "num_key_value_heads": 4},
}
WIDE_LENGTH = 128
OPEN = {
    "attention_mask": {0: "N", 1: "L"}, "bbox": {0: "N", 1: "L"}, "decoder_input_ids": {0: "N", 1: "M"},
    "input_ids": {0: "N", 1: "L"},
}  # fmt: skip


def network_of(name: str, wide: bool, **more: Any) -> Any:
    """Return a network with small random weights, given the name of its class."""
    import torch

    torchvision_without_ops()
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, name)
    known = kind.config_class()
    sizes = SMALL | OLDER | PARTS | (WIDE if wide else {}) | more
    sizes |= next((ALSO[x] for x in ALSO if name.startswith(x)), {})
    renamed, kinds = kind.config_class.attribute_map, vars(kind.config_class)
    options = {k: v for k, v in sizes.items() if hasattr(known, k) and v is not None and k not in renamed}
    config = kind.config_class(**{k: v for k, v in options.items() if not isinstance(kinds.get(k), property)})
    config._attn_implementation = config._experts_implementation = "eager"
    return kind(config).eval()


def inputs_of(network: Any, length: int) -> dict[str, Any]:
    """Return the inputs of a network of texts by name."""
    import torch

    parameters = inspect.signature(network.forward).parameters
    ids = torch.randint(3, TOKENS, (2, length))
    corner = torch.randint(0, 50, (2, length, 2))
    values = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "bbox": torch.cat([corner, corner + 10], -1),
        "decoder_input_ids": ids[:, :12],
    }
    return {name: value for name, value in values.items() if name in parameters}


def tensors_of(result: Any) -> list[Any]:
    """Return the arrays of a result, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    return [y for x in result for y in tensors_of(x)] if isinstance(result, (list, tuple)) else []


def export(call: Any, network: Any, values: dict[str, Any], axes: dict[str, Any], path: Path, dynamo: bool) -> None:
    """Export a function of a network with open axes.

    Parameters
        call: takes the network and the values, and returns arrays
        axes: names of the open axes of each value
    """
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *args: Any) -> Any:
            return call(self.network, args)

    names, args = list(values), tuple(values.values())
    with torch.no_grad():
        if dynamo:
            shapes = tuple(dict.fromkeys(axes[x], torch.export.Dim.DYNAMIC) for x in names)
            torch.onnx.export(
                Module().eval(), args, str(path), input_names=names, dynamo=True, external_data=False,
                dynamic_shapes=(shapes,),
            )  # fmt: skip
        else:
            torch.onnx.export(
                Module().eval(), args, str(path), input_names=names, dynamo=False, opset_version=17,
                dynamic_axes={x: axes[x] for x in names},
            )  # fmt: skip


def write_model(name: str, path: Path, wide: bool = False, dynamo: bool = False) -> None:
    """Write a model of texts, whose outputs are all arrays of its result; batch and lengths are open."""
    network = network_of(name, wide)
    values = inputs_of(network, WIDE_LENGTH if wide else LENGTH)
    names = list(values)

    def call(network: Any, args: Sequence[Any]) -> Any:
        return tuple(tensors_of(network(**dict(zip(names, args)), return_dict=False)))

    export(call, network, values, OPEN, path, dynamo)


def write_step(name: str, path: Path, wide: bool = False, dynamo: bool = False) -> None:
    """Write a decoder's step: three tokens after those whose keys and values are inputs; the new ones are outputs."""
    import torch
    from transformers import DynamicCache

    network = network_of(name, wide, use_cache=True)
    with torch.no_grad():
        cache = network(torch.randint(3, TOKENS, (2, 10)), use_cache=True).past_key_values
    values = {"input_ids": torch.randint(3, TOKENS, (2, 3)), "attention_mask": torch.ones(2, 13, dtype=torch.int64)}
    axes: dict[str, Any] = {"input_ids": {0: "N", 1: "L"}, "attention_mask": {0: "N", 1: "P+L"}}
    for i, x in enumerate(y for layer in cache.layers for y in (layer.keys, layer.values)):
        values[f"past_{i}"], axes[f"past_{i}"] = x, {0: "N", 2: "P"}

    def call(network: Any, args: Sequence[Any]) -> Any:
        ids, mask, *past = args
        cache = DynamicCache()
        for i in range(len(past) // 2):
            cache.update(past[2 * i], past[2 * i + 1], i)
        result = network(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (result.logits, *(y for x in result.past_key_values.layers for y in (x.keys, x.values)))

    export(call, network, values, axes, path, dynamo)
