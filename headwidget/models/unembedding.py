"""The unembedding: the last linear map, from the residual stream to a logit for every token."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

from headwidget.models import classifiers


def find(module: Any) -> nn.Module | None:
    """The unembedding; of a model that holds a language model and has none itself, that one's.

    A classifier, which answers once and as a whole, stands for its own.
    """
    if classifiers.classifies(module):
        return cast(nn.Module, module)
    head: nn.Module | None = module.get_output_embeddings()
    if head is not None:
        return head
    getters = (getattr(child, "get_output_embeddings", None) for child in module.children())
    inner = [head for get in getters if get is not None and (head := get()) is not None]
    return inner[0] if len(inner) == 1 else None


def checked(module: Any) -> nn.Module:
    """The unembedding; a sentence where there is none."""
    head = find(module)
    if head is None:
        raise ValueError(
            f"{type(module).__name__} has no language-model head, so it gives no answer to "
            "score; load the checkpoint with its head, e.g. AutoModelForCausalLM or "
            "AutoModelForMaskedLM."
        )
    return head
