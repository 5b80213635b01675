"""What goes wrong while a model is loaded by name or from a folder, as sentences.

What can be seen beforehand is checked before gigabytes are read. What transformers raises
is put into words that say what to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

PLACES = ("auto", "balanced", "balanced_low_0", "sequential", "cpu", "disk")
"""Places for weights that every machine has."""


# ---- before anything is read ----


def check_tokenizer(tokenizer: Any) -> None:
    """``TypeError`` for what is no tokenizer, such as a name."""
    if tokenizer is not None and (not callable(tokenizer) or isinstance(tokenizer, nn.Module)):
        raise TypeError(
            "the tokenizer must be one, e.g. AutoTokenizer.from_pretrained(name); "
            f"got a {type(tokenizer).__name__}."
        )


def checked_dtype(dtype: Any) -> Any:
    """A dtype as transformers takes it; ``ValueError`` for one that weights cannot have.

    >>> checked_dtype("torch.bfloat16"), checked_dtype("auto")
    (torch.bfloat16, 'auto')
    """
    if isinstance(dtype, Mapping) or dtype in (None, "auto"):  # a dict has one for each part
        return dtype
    is_name = isinstance(dtype, str)
    named = getattr(torch, dtype.removeprefix("torch."), None) if is_name else dtype
    if not isinstance(named, torch.dtype) or not named.is_floating_point:
        raise ValueError(
            "dtype is a floating-point type of torch, such as torch.float32 or 'bfloat16', or "
            f"'auto' for the checkpoint's own; got {dtype!r}."
        )
    return named


def check_device_map(device_map: Any) -> None:
    """``ValueError`` for a device that is not here."""
    for place in device_map.values() if isinstance(device_map, Mapping) else [device_map]:
        if place is None or place in PLACES:
            continue
        kind, _, index = str(place).partition(":")
        if isinstance(place, int):
            kind, index = "cuda", str(int(place))
        if kind == "meta":
            raise ValueError("device_map 'meta' loads no weights, so there is nothing to score.")
        if not _is_device(kind):
            raise ValueError(
                "device_map is a device such as 'cpu' or 'cuda:0', 'auto', 'balanced', "
                f"'sequential', or a dict of devices; got {place!r}."
            )
        count = _devices(kind)
        if count is not None and (not index or index.isdigit()) and int(index or 0) >= count:
            raise ValueError(
                f"device_map asks for {place!r}, and torch {torch.__version__} sees "
                f"{count or 'no'} such device{'s' * (count != 1)} here; leave it out, or use "
                "device_map='cpu'."
            )


def _is_device(kind: str) -> bool:
    try:
        return bool(torch.device(kind))
    except RuntimeError:
        return False


def _devices(kind: str) -> int | None:
    """How many devices of a kind there are; None for a kind that is not known here."""
    if kind == "cuda":
        return torch.cuda.device_count()
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    return None


def check_folder(source: str, options: Mapping[str, Any]) -> None:
    """An error with a sentence for a folder that is none, or that holds no model."""
    folder = Path(source)
    try:
        is_file, is_folder = folder.is_file(), folder.is_dir()
        inner = folder / (options.get("subfolder") or "")
        names = {entry.name for entry in inner.iterdir()} if is_folder else set()
        config = (inner / "config.json").read_bytes() if "config.json" in names else None
    except OSError as error:
        raise type(error)(
            f"{source[:200]!r} cannot be read ({error.strerror}); check the path and its "
            "permissions."
        ) from error
    if is_file:
        raise NotADirectoryError(_is_a_file(folder))
    if not is_folder:
        if source.startswith((".", os.sep)) or source.count("/") > 1:
            raise FileNotFoundError(
                f"there is no folder {source!r}; a name on the hub looks like 'org/name', and "
                "hw.load() gives the embedded model."
            )
    elif config is not None:
        _check_config(inner / "config.json", config)
    elif "gguf_file" not in options:
        raise FileNotFoundError(_no_config(str(inner), names))


def _is_a_file(path: Path) -> str:
    options = f", gguf_file={path.name!r}" if path.suffix == ".gguf" else ""
    return (
        f"{str(path)!r} is a file; hw.load takes the folder that it is in: "
        f"hw.load({str(path.parent)!r}{options})."
    )


def _no_config(folder: str, names: set[str]) -> str:
    """What to do with a folder that has no configuration."""
    if "adapter_config.json" in names:
        return (
            f"{folder!r} holds an adapter and no model: load both with peft, merge_and_unload(), "
            "and give the result to hw.load(model, tokenizer)."
        )
    if files := sorted(name for name in names if name.endswith(".gguf")):
        return (
            f"{folder!r} has no config.json, but a GGUF file: "
            f"hw.load({folder!r}, gguf_file={files[0]!r})."
        )
    return (
        f"{folder!r} has no config.json, so it is no folder of a transformers model; give the "
        "folder that save_pretrained wrote, or download the model again."
    )


def _check_config(path: Path, content: bytes) -> None:
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({_reason(error)}): download or save the model again."
        ) from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ValueError(
            f"{str(path)!r} names no model_type, so it is no configuration of a transformers "
            "model: download or save the model again."
        )


# ---- what transformers raises ----


@contextmanager
def reading(what: str, name: str, source: str, config: Any = None) -> Iterator[None]:
    """Put errors of reading a ``"configuration"``, ``"weights"`` and so on into words."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        kinds = (ImportError, TypeError, OSError)
        kind = next((kind for kind in kinds if isinstance(error, kind)), ValueError)
        raise kind(_sentence(error, what, name, source, config)) from error


def _sentence(error: Exception, what: str, name: str, source: str, config: Any) -> str:
    reason, text = _reason(error), str(error)
    if "trust_remote_code" in text:
        return (
            f"{name!r} brings code of its own, which was not run. Read its .py files; if you trust "
            f"them, use hw.load({name!r}, trust_remote_code=True)."
        )
    if isinstance(error, TypeError) and "unexpected keyword" in text:
        return (
            f"{name!r} could not be loaded: {reason}. hw.load takes dtype, device_map, revision, "
            "token and what from_pretrained takes."
        )
    is_folder = Path(source).is_dir()
    if what in ("tokenizer", "processor") and (is_folder or not isinstance(error, OSError)):
        auto = "AutoTokenizer" if what == "tokenizer" else "AutoProcessor"
        return (
            f"{name!r} was loaded, but its {what} could not be ({reason}). Give one: "
            f"hw.load({name!r}, {auto}.from_pretrained(…))."
        )
    if (method := _quantised(config)) is not None and what == "weights":
        return (
            f"{name!r} is quantised ({method}) and could not be loaded here ({reason}). Install "
            "what it needs, or load the checkpoint that it was quantised from."
        )
    if isinstance(error, ImportError):
        return (
            f"{name!r} could not be loaded: a package is missing ({reason}). Install it and load "
            "again."
        )
    if "does not recognize this architecture" in text:
        import transformers

        return (
            f"{name!r} could not be loaded: transformers {transformers.__version__} does not know "
            "its model type. Upgrade transformers, or load it with the package that made it."
        )
    if "Unrecognized configuration class" in text:
        return (
            f"{name!r} is a model of type {config.model_type!r}, which transformers loads as no "
            "language model; headwidget scores models that predict tokens."
        )
    if isinstance(error, OSError) and not is_folder:
        return (
            f"{name!r} could not be loaded from the hub ({reason}). Check the name and the "
            "network, give a local folder, or use hw.load() for the embedded model, which works "
            "offline."
        )
    return (
        f"the {what} of {name!r} could not be read ({reason}). Check the files and the options, "
        "or download the model again."
    )


def _quantised(config: Any) -> str | None:
    """How a checkpoint is quantised, such as "awq"; None where it is not."""
    quantisation = getattr(config, "quantization_config", None)
    if quantisation is None:
        return None
    values = quantisation if isinstance(quantisation, dict) else vars(quantisation)
    return str(values.get("quant_method", "in a way that it does not name"))


def _reason(error: BaseException) -> str:
    """The first line of an error, and the next where the first ends with a colon."""
    if "ignore_mismatched_sizes" in str(error):
        return "they do not have the shapes that its config.json says"
    lines = [line.strip() for line in str(error).strip().splitlines()] or [type(error).__name__]
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return text.rstrip("., ")[:300]
