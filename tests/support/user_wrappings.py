"""What users wrap their models and weights in: adapters, quantisers, offloading, compilers.

Ingredients of the compositions. Each function takes the transformers model (or the object
that the user holds) and changes it, or returns what the user holds from then on.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from tests.support.places import Places, attention_layers, submodule

# ---- adapters ----

ADAPTERS = "lora dora ia3 lora_head".split()
PROMPT_LEARNING = "prompt_tuning p_tuning prefix_tuning".split()
HELD = "peft base merged unloaded disabled".split()
"""What the user holds after adapting: the PeftModel, what is inside of it, …"""


def last_name(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def adapted(base: Any, places: Places, kind: str, where: str, size: str, held: str) -> Any:
    """The model with an adapter; ``where`` is a name in ``Places``, ``size`` small or large."""
    import peft

    target = places.mlp[0] if where == "mlp" else getattr(places, where)
    if where == "mlp":
        target = _inner_linear(base, places)
    name = last_name(target)
    transposed = type(_first(base, places, target)).__name__ == "Conv1D"
    fan: dict[str, Any] = {"fan_in_fan_out": True} if transposed else {}
    if kind == "ia3":
        feedforward = [name] if where == "mlp" else []
        config: Any = peft.IA3Config(
            target_modules=[name],
            feedforward_modules=feedforward,
            init_ia3_weights=False,
            **fan,
        )
    else:
        save = ["lm_head"] if kind == "lora_head" else None
        config = peft.LoraConfig(
            r=2,
            lora_alpha=4,
            target_modules=[name],
            use_dora=kind == "dora",
            init_lora_weights=False,
            lora_dropout=0.2,
            modules_to_save=save,
            **fan,
        )
    model = peft.get_peft_model(base, config)
    _draw_adapter(model, 1.0 if size == "large" else 0.02)
    model.eval()
    if held == "merged":
        model.merge_adapter()
    elif held == "unloaded":
        return model.merge_and_unload()
    elif held == "disabled":
        model.base_model.disable_adapter_layers()
    return model.get_base_model() if held == "base" else model


def _first(base: Any, places: Places, path: str) -> nn.Module:
    index = attention_layers(base, places)[0]
    return submodule(base, f"{places.blocks}.{index}.{path}")


def _inner_linear(base: Any, places: Places) -> str:
    """The path of a linear map in the MLP."""
    path = places.mlp[0]
    mlp = _first(base, places, path)
    if isinstance(mlp, nn.Linear):
        return path
    for name, part in mlp.named_modules():
        if isinstance(part, nn.Linear) or type(part).__name__ == "Conv1D":
            return f"{path}.{name}"
    return places.projection  # a mixture of experts keeps no linear maps


@torch.no_grad()
def _draw_adapter(model: nn.Module, size: float) -> None:
    random = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=random).to(parameter.dtype)
        if "lora_magnitude" in name or "ia3" in name:
            parameter.mul_(1 + 0.3 * size * drawn)
        elif "lora_A" in name:
            parameter.copy_(drawn * 0.3)
        elif "lora_B" in name:
            parameter.copy_(drawn * 0.3 * size)


def prompt_learned(base: Any, kind: str) -> Any:
    """The model behind virtual tokens that PEFT has learnt."""
    import peft

    configs: dict[str, Any] = {
        "prompt_tuning": lambda: peft.PromptTuningConfig(
            task_type="CAUSAL_LM", num_virtual_tokens=3
        ),
        "p_tuning": lambda: peft.PromptEncoderConfig(
            task_type="CAUSAL_LM", num_virtual_tokens=3, encoder_hidden_size=8
        ),
        "prefix_tuning": lambda: peft.PrefixTuningConfig(
            task_type="CAUSAL_LM", num_virtual_tokens=3
        ),
    }
    model = peft.get_peft_model(base, configs[kind]())
    return model.eval()


# ---- quantisers ----

QUANTISERS = "dynamic ao_weight ao_dynamic nf4 int8".split()
ROUND_ACTIVATIONS = ("dynamic", "ao_dynamic", "int8")
"""Quantisers that also round what goes in, so the model is a staircase in every number."""


def quantise(base: Any, places: Places, kind: str, where: str, *, used: bool) -> None:
    """Quantise the output projections, all linear maps, or those of the last layer.

    ``used``: after a forward without gradients, at which some quantisers repack weights.
    """
    layers = attention_layers(base, places)
    if where == "projection":
        prefixes = [f"{places.blocks}.{i}.{places.projection}" for i in layers]
    elif where == "last":
        prefixes = [f"{places.blocks}.{layers[-1]}."]
    else:
        prefixes = [places.blocks]

    def chosen(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and name.startswith(tuple(prefixes))

    names = [name for name, module in base.named_modules() if chosen(module, name)]
    if kind in ("ao_weight", "ao_dynamic"):
        from torchao import quantization

        config: Any = (
            quantization.Int8WeightOnlyConfig()
            if kind == "ao_weight"
            else quantization.Int8DynamicActivationInt8WeightConfig()
        )
        quantization.quantize_(base, config, filter_fn=chosen)
    elif kind == "dynamic":
        how = torch.ao.quantization.default_dynamic_qconfig
        torch.ao.quantization.quantize_dynamic(base, dict.fromkeys(names, how), inplace=True)
    else:
        for name in names:
            path, _, last = name.rpartition(".")
            setattr(base.get_submodule(path), last, _bitsandbytes(base.get_submodule(name), kind))
    if used:
        with torch.no_grad():
            base(input_ids=torch.tensor([[5, 6, 7]]))


def _bitsandbytes(linear: nn.Linear, kind: str) -> nn.Module:
    from bitsandbytes.nn import modules as bnb

    bias = linear.bias is not None
    sizes = (linear.in_features, linear.out_features, bias)
    weight = linear.weight.detach().clone()
    if kind == "nf4":
        dtype = linear.weight.dtype
        new: Any = bnb.Linear4bit(*sizes, quant_type="nf4", compute_dtype=dtype)
        new.weight = bnb.Params4bit(weight, requires_grad=False, quant_type="nf4", module=new)
    else:
        new = bnb.Linear8bitLt(*sizes, has_fp16_weights=False)
        new.weight = bnb.Int8Params(weight, requires_grad=False, has_fp16_weights=False)
    new.bias = linear.bias
    quantised: nn.Module = new.to("cpu").eval()
    return quantised


# ---- where the weights are ----

OFFLOADS = "cpu disk dispatch".split()


def offload(base: Any, how: str, undo: ExitStack) -> None:
    """Let accelerate bring the weights when they are needed."""
    import accelerate

    cpu = torch.device("cpu")
    if how == "cpu":
        accelerate.cpu_offload(base, execution_device=cpu)
    elif how == "disk":
        folder = undo.enter_context(tempfile.TemporaryDirectory())
        accelerate.disk_offload(base, folder, execution_device=cpu)
    else:
        accelerate.dispatch_model(base, {"": "cpu"}, main_device="cpu", force_hooks=True)


# ---- weights ----

PARAMETRISED = "weight_norm old_weight_norm spectral_norm scaled".split()


class _Scaled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * 1.25


def parametrise(module: nn.Module, how: str) -> None:
    """Let a linear map compute its weight."""
    if how == "weight_norm":
        parametrizations.weight_norm(module)
    elif how == "old_weight_norm":  # by a forward pre-hook of torch's own
        nn.utils.weight_norm(module)
    elif how == "spectral_norm":
        parametrizations.spectral_norm(module)
    else:
        parametrize.register_parametrization(module, "weight", _Scaled())
    module.eval()


def made_in_inference_mode(base: nn.Module) -> None:
    """Replace every weight by one that was made in inference mode."""
    tied: dict[int, nn.Parameter] = {}
    for module in base.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if id(parameter) not in tied:
                with torch.inference_mode():
                    copy = parameter.detach().clone()
                    tied[id(parameter)] = nn.Parameter(copy, requires_grad=False)
            setattr(module, name, tied[id(parameter)])


def freeze(base: nn.Module, which: str) -> None:
    """Set which parameters want gradients: none, or every second."""
    for number, parameter in enumerate(base.parameters()):
        if parameter.is_floating_point():
            parameter.requires_grad_(which == "half" and number % 2 == 0)


# ---- compilers ----

COMPILED = "wrapper in_place block".split()


def compiled(base: Any, places: Places, what: str, backend: str, *, used: bool) -> Any:
    """The model compiled as a whole, in place, or in its last block."""
    held = base
    if what == "wrapper":
        held = torch.compile(base, backend=backend)
    elif what == "in_place":
        base.compile(backend=backend)
    else:
        blocks = base.get_submodule(places.blocks)
        blocks[-1] = torch.compile(blocks[-1], backend=backend)
    if used:
        with torch.no_grad():
            held(input_ids=torch.tensor([[5, 6, 7, 8]]))
    return held
