"""Models: the places that ``families.py`` names, found in the live model and checked on load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headwidget.models import (
    caches,
    classifiers,
    configurations,
    discovery,
    foreign,
    known_layers,
    proof,
    tracing,
    unembedding,
)
from headwidget.models.altering import Altered
from headwidget.models.description import describe
from headwidget.models.encoder_decoder import Section
from headwidget.models.families import Family
from headwidget.models.fingerprint import fingerprint
from headwidget.models.layers import Kind, Layer
from headwidget.models.locks import SharedLock
from headwidget.models.weights import MlpPath, submodule
from headwidget.models.wrappers import around, unwrapped


class Model:
    """A transformer with its tokenizer and the places of its heads, as :func:`load` gives it.

    The transformer itself is left as it is.
    """

    def __init__(self, module: Any, tokenizer: Any, *, name: str | None = None) -> None:
        self.module: Any = unwrapped(module)
        """The model, as transformers made it: a wrapper of torch.compile or peft is taken off."""
        self._outer = module
        self.wrappers = around(module, self.module)
        """The wrappers that were taken off."""
        module = self.module
        self.processor = tokenizer
        """What turns text, images or sounds into the model's input: often just a tokenizer."""
        self.tokenizer = _tokenizer(tokenizer)
        _check_tokenizer(module, self.tokenizer)
        self.no_processor: str | None = None
        """Why an image-text model was loaded with a tokenizer only, where that is so."""
        self.config = _config(module)
        self.name: str = name or _name(self.config) or type(module).__name__
        self.revision: str | None = getattr(self.config, "_commit_hash", None)
        self.text: Any = configurations.own_config(module)
        """The configuration of the text side; of an encoder-decoder model, its decoder's."""
        text = self.text
        self.family: Family
        self.blocks: tuple[nn.Module, ...]
        self.layers: tuple[Layer, ...]
        known = known_layers.known_family(module)
        if known is not None:
            self.family = known
            heads = text.num_attention_heads
            self.blocks, self.layers = known_layers.find(module, known, heads, text)
        else:
            place = _discovered(module, text)
            self.family, self.blocks, self.layers = place.family, place.blocks, place.layers
        self.n_heads: int = _same_heads(self.layers)
        self.n_kv_heads: int = configurations.kv_heads(text, self.n_heads)
        self.head_dim: int = max(layer.head_dim for layer in self.layers)
        """The widest head's; layers may differ."""
        self.context: int | None = configurations.context(module, text, self.family)
        self.rope_switch: int | None = configurations.rope_switch(text)
        """Longest input before longrope switches to its long factors; None without longrope."""
        self.unembedding = unembedding.checked(module)
        self.shared_lock = SharedLock(self._altered_modules())
        self._nothing_checked()
        if not self.family.table:
            _prove(self)

    def _nothing_checked(self) -> None:
        """What is found out about the live model, before anything is."""
        self.batch_dependent = False
        """Does the answer to a prompt depend on the prompts beside it? Found out by
        :func:`headwidget.scoring.trust.check`."""
        self.prefix_dependent = False
        """Does a prompt that goes on from a prefix's keys and values give something else?"""
        self.forgets = True
        """Does the model take a cache that keeps nothing? Else it runs without a cache."""
        self.no_straight_way: str | None = None
        """Why attribution has no straight way to follow, where that was found out."""
        self.no_values: str | None = None
        """Why values are no linear map of what attention reads, where that was found out."""
        self.mlp_path: MlpPath | None = None
        """Layer 0's MLP behind its norm, where no table says it and it was found."""
        self.no_mlp: str | None = None
        """Why there is none, where that was found out."""
        self.kinds: Counter[Kind] | None = None
        """What is special about heads, and in how many layers, once that was looked for."""
        self.unembeds = True
        """Is the unembedding a module that runs? Else logits are computed at all positions."""
        self.positions = 1
        """How many patches or frames a classifier made of the random input of its proof."""
        self.saw_media = False
        """Was the model fed images? It may keep what it made of them for the next forward."""
        self.checked: int | None = None
        """The state of the model when that check was last passed."""
        self.replayed: int | None = -1
        """The state of the model when ablation last found that it can be replayed."""
        self.checked_lengths = range(0)
        """The lengths of the prompts that it was passed with, in tokens."""
        self.disturbances: set[str] = set()
        """What other threads did to the model while it was scored, in sentences."""

    def _altered_modules(self) -> list[nn.Module]:
        """The modules whose sharing makes two models share a lock: experts need none each."""
        inside: set[int] = set()
        for block in self.blocks:
            inside |= {id(part) for part in block.modules()} - {id(block)}
        for layer in self.layers:
            inside -= {id(layer.attention), id(layer.projection)}
        return [part for part in self.module.modules() if id(part) not in inside]

    @property
    def lock(self) -> Altered:
        """Only one thread may run the model at a time: hooks and gates act on all its calls."""
        return self.shared_lock.held()

    def check_in_place(self) -> None:
        """Refuse a model whose projections or unembedding were replaced since it was loaded."""
        for layer in self.layers:
            if submodule(self.module, layer.name) is not layer.projection:
                raise ValueError(_replaced(self.name, layer.name))
        if unembedding.find(self.module) is not self.unembedding:
            raise ValueError(_replaced(self.name, "the unembedding"))

    @property
    def hooked(self) -> tuple[str, ...]:
        """The names of the modules that carry hooks of the user's own."""
        return foreign.hooked_modules(self.module)

    @property
    def one_by_one(self) -> bool:
        """Must prompts run one at a time, unpadded, by whole forwards?

        So it is with hooks of the user's own, which may act on any position (the last, say,
        which in a batch is padding), and where the prompts of a batch affect each other.
        """
        return self.batch_dependent or foreign.has_foreign_hooks(self.module)

    @property
    def encoder(self) -> bool:
        """True for masked language models.

        Every token sees every other, and the answer is read at masked positions.
        """
        return self.family.head == "masked"

    @property
    def encoder_decoder(self) -> bool:
        """True where an encoder reads the prompt and a decoder answers.

        Rows are then the encoder's layers, the decoder's, and its cross-attention's.
        """
        return self.family.head == "encoder-decoder"

    @property
    def classifier(self) -> bool:
        """True where the model names the class of an image or a sound, and says no tokens."""
        return self.family.head in ("image-class", "audio-class")

    @property
    def sections(self) -> tuple[tuple[Section, int], ...]:
        """The sections of an encoder-decoder model's rows, and how many rows each has."""
        counts = Counter(layer.section for layer in self.layers if layer.section)
        return tuple(counts.items())

    @property
    def hybrid(self) -> bool:
        """True where some blocks have no attention (Jamba): they keep states of another kind."""
        return not self.encoder_decoder and len(self.blocks) != len(self.layers)

    @property
    def can_share_prefix(self) -> bool:
        """Can several prompts go on from the keys and values of one prefix?

        Not in an encoder, where every token sees all others, nor behind one, nor in a hybrid
        model, whose blocks without attention keep more than keys and values, nor where prompts run
        :attr:`one_by_one`, nor in a model that keeps positions from forward to forward.
        """
        kept = self.encoder or self.encoder_decoder or self.classifier or self.hybrid
        kept = kept or self.prefix_dependent or not self.forgets or self.saw_media
        kept = kept or caches.keeps_positions(self.module)
        return not kept and not self.one_by_one

    def switches_rope(self, length: int) -> bool:
        """Does the model rotate an input of ``length`` tokens the long way (longrope)?

        An input that is rotated so never shares a batch with one that is not, nor a prefix.
        """
        return self.rope_switch is not None and length > self.rope_switch

    @property
    def shape(self) -> tuple[int, int]:
        """(layers with attention, query heads)."""
        return len(self.layers), self.n_heads

    @property
    def device(self) -> torch.device:
        """Where the input goes in."""
        if self.classifier:
            first: torch.Tensor = next(self.module.parameters())
            return first.device
        embedding = self.module.get_input_embeddings()
        device: torch.device = next(embedding.parameters()).device
        if device.type != "meta":
            return device
        if not hasattr(embedding, "_hf_hook"):  # of accelerate, which brings offloaded weights
            raise ValueError(
                f"the weights of {self.name} are not loaded (they are on the meta device), so it "
                "cannot be run; load them first."
            )
        return torch.device(embedding._hf_hook.execution_device)

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype."""
        dtypes = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        dtype: torch.dtype = next(dtypes)
        return dtype

    @property
    def final_norm(self) -> nn.Module | None:
        """The norm before the unembedding.

        None where the residual stream does not reach the logits linearly.
        """
        text = self.text
        if getattr(text, "apply_residual_connection_post_layernorm", False):
            return None  # a BLOOM whose stream goes through its norms
        norms_after = getattr(text, "do_layer_norm_before", True) is False
        projects = getattr(text, "word_embed_proj_dim", text.hidden_size) != text.hidden_size
        if norms_after or projects:
            return None  # OPT-350m: norms after each layer, and a projection behind them
        return submodule(self.module, self.family.final_norm) if self.family.final_norm else None

    def fingerprint(self) -> str:
        """A short text that tells the model's weights from others; "unknown" where they
        cannot be read."""
        return fingerprint(self.module)

    @property
    def readable(self) -> int:
        """How many tokens the model can read."""
        return int(self.module.get_input_embeddings().weight.shape[0])

    @property
    def vocabulary(self) -> int:
        """How many tokens the model can both read and answer with; a classifier's classes."""
        if self.classifier:
            return int(self.config.num_labels)
        read = self.readable
        answered: int | None = getattr(self.unembedding, "out_features", None)
        return read if answered is None else min(read, answered)

    def describe(self) -> str:
        """What the model is taken for, and how that is known.

        >>> import headwidget as hw
        >>> print(hw.load().describe().splitlines()[0])
        SmolLM2-135M-Instruct (Q4_1): llama, a known family
        """
        return describe(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or a pickle, is loaded anew: locks and what was checked stay behind."""
        return type(self)._anew, (self._outer, self.processor, self.name)

    @classmethod
    def _anew(cls, module: Any, tokenizer: Any, name: str) -> Model:
        return cls(module, tokenizer, name=name)

    def __repr__(self) -> str:
        layers, heads = self.shape
        return (
            f"Model({self.name}, {self.family.name}, {layers} layers x {heads} heads of "
            f"{self.head_dim}, {self.dtype}, {self.device})"
        )


def _config(module: Any) -> Any:
    if not hasattr(getattr(module, "config", None), "get_text_config"):
        raise TypeError(
            "hw.load takes a model of transformers, which has a config; got a "
            f"{type(module).__name__}."
        )
    return module.config


def _tokenizer(processor: Any) -> Any:
    """The tokenizer of a processor; whatever else there is stands for itself."""
    from transformers import ProcessorMixin

    return processor.tokenizer if isinstance(processor, ProcessorMixin) else processor


def _check_tokenizer(module: Any, tokenizer: Any) -> None:
    """Refuse what reads images or sounds in the place of a tokenizer."""
    from transformers import BaseImageProcessor, FeatureExtractionMixin

    no_text = isinstance(tokenizer, (BaseImageProcessor, FeatureExtractionMixin))
    if no_text and classifiers.classifies(module) is None:
        raise TypeError(
            f"{type(module).__name__} reads text, and a {type(tokenizer).__name__} reads none; "
            "load it with its tokenizer, or with the processor that has one."
        )


def _name(config: Any) -> str:
    """The name that the model was loaded by; of a folder, its last part."""
    name = str(getattr(config, "_name_or_path", "") or "")
    return Path(name).name if Path(name).is_absolute() else name


def _replaced(model: str, module: str) -> str:
    return (
        f"{module} of {model} is not the module that it was when the model was loaded (was an "
        "adapter added?); load it again: hw.load(model.module, model.tokenizer)."
    )


def _discovered(module: Any, text: Any) -> discovery.Found:
    """Discovery; whatever a model's own code raises is told in words."""
    try:
        return discovery.find(module, text)
    except ValueError:
        raise
    except Exception as error:
        raise tracing.in_words(module, error) from error


def _prove(model: Model) -> None:
    try:
        proof.prove(model)
    except ValueError:
        raise
    except Exception as error:
        raise tracing.in_words(model.module, error) from error


def _same_heads(layers: tuple[Layer, ...]) -> int:
    """How many heads a layer has: scores are a table of layers and heads."""
    counts = {layer.heads: layer for layer in reversed(layers)}
    if len(counts) > 1:
        (first, one), (second, other) = list(counts.items())[:2]
        raise ValueError(
            f"{one.name} has {first} heads and {other.name} {second}; headwidget scores models "
            "whose layers all have the same number of heads."
        )
    return layers[0].heads
