"""Loading a model to be scored: by name, from a folder, the embedded one, or one that the user already has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headwidget.models import embedded
from headwidget.models.families import FAMILIES
from headwidget.models.model import Model


def load(
    model: Any = None,
    tokenizer: Any = None,
    *,
    dtype: Any = None,
    device_map: Any = None,
    **options: Any,
) -> Model:
    """A model ready to be scored.

    - ``load()``: the embedded SmolLM2-135M-Instruct, offline; brought once by name and checksum.
    - ``load("org/name")`` or ``load("folder", dtype=…, device_map=…)``: from the hub or a folder, by transformers' ``from_pretrained``,
      which also takes any further ``options``. Without ``dtype``: float32 on CPU (16-bit is several times slower there), else the checkpoint's own.
    - ``load(model, tokenizer)``: what you already have, unchanged.

    >>> import headwidget as hw
    >>> hw.load().shape
    (30, 9)
    """
    if (
        isinstance(model, Model)
        and tokenizer is None
        and dtype is None
        and device_map is None
        and not options
    ):
        return model
    if isinstance(model, (nn.Module, Model)):
        if tokenizer is None and isinstance(model, nn.Module):
            raise ValueError(
                "hw.load(model) needs the model's tokenizer too: hw.load(model, tokenizer)."
            )
        if tokenizer is not None and (not callable(tokenizer) or isinstance(tokenizer, nn.Module)):
            raise TypeError(
                f"the tokenizer must be one, e.g. AutoTokenizer.from_pretrained(name); got a {type(tokenizer).__name__}."
            )
        if dtype is not None or device_map is not None or options:
            raise ValueError(
                "dtype, device_map and loading options apply to a model that is loaded by name; this one is already loaded."
            )
        return Model(model.module if isinstance(model, Model) else model, tokenizer)
    if model is not None and not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            f"hw.load takes a name, a folder, or a model and its tokenizer; got a {type(model).__name__}."
        )
    if model is None:
        return _from_pretrained(
            embedded.folder(), tokenizer, dtype, device_map, options, name=embedded.NAME
        )
    return _from_pretrained(model, tokenizer, dtype, device_map, options, name=str(model))


_FROM = (
    "revision",
    "token",
    "cache_dir",
    "local_files_only",
    "subfolder",
    "force_download",
    "proxies",
    "trust_remote_code",
)
"""Options that say where a model comes from: they go to its configuration and its tokenizer too."""


def _from_pretrained(
    source: str | os.PathLike[str],
    tokenizer: Any,
    dtype: Any,
    device_map: Any,
    options: dict[str, Any],
    *,
    name: str,
) -> Model:
    import transformers

    gpu = device_map is None and torch.cuda.is_available()
    if dtype is None:
        dtype = "auto" if gpu or device_map not in (None, "cpu") else torch.float32
    looks_local = str(source).startswith((".", "~", os.sep)) or str(source).count("/") > 1
    if looks_local and not Path(source).is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(source)!r}; a name on the hub looks like 'org/name', and hw.load() gives the embedded model."
        )
    origin = {key: options[key] for key in _FROM if key in options}
    try:
        config = transformers.AutoConfig.from_pretrained(source, **origin)
        family = FAMILIES.get(config.model_type)
        heads = {
            "causal": "AutoModelForCausalLM",
            "masked": "AutoModelForMaskedLM",
            "image-text": "AutoModelForImageTextToText",
        }
        auto = getattr(transformers, heads[family.head if family else "causal"])
        with _quietly(transformers):
            module, info = auto.from_pretrained(
                source, dtype=dtype, device_map=device_map, output_loading_info=True, **options
            )
        if tokenizer is None:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **origin)
    except ImportError as error:
        raise ImportError(
            f"{name!r} could not be loaded: a package is missing ({_first_line(error)}). Install it and load again."
        ) from error
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        known = "dtype, device_map, revision, token and what from_pretrained takes"
        raise TypeError(
            f"{name!r} could not be loaded: {_first_line(error)}. hw.load takes {known}."
        ) from error
    except OSError as error:
        where = "the folder" if Path(source).is_dir() else "the hub"
        raise OSError(
            f"{name!r} could not be loaded from {where} ({_first_line(error)}). Check the name and the network, give a local folder, "
            "or use hw.load() for the embedded model, which works offline."
        ) from error
    if missing := sorted(info["missing_keys"]):
        raise ValueError(
            f"{name!r} lacks {len(missing)} of {type(module).__name__}'s weights ({missing[0]}, …): they would be random and every score noise. "
            "Load a checkpoint that was saved with its language-model head."
        )
    if gpu:
        module.to("cuda")
    module.eval()
    return Model(module, tokenizer, name=name)


class _quietly:
    """Without transformers' progress bar while a model loads: in a notebook it is noise above the widget."""

    def __init__(self, transformers: Any) -> None:
        self.logging = transformers.utils.logging

    def __enter__(self) -> None:
        self.was_on = self.logging.is_progress_bar_enabled()
        self.logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        if self.was_on:
            self.logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
