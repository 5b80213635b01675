"""A model whose weights are set by hand so that one known head alone copies the answer."""

from __future__ import annotations

import torch

import headwidget as hw
from tests import tiny

LAYER, HEAD = 1, 2


def planted() -> tuple[hw.Model, hw.Task, tuple[int, int]]:
    """A Llama in which head (1, 2) moves every earlier token to the last position; all other heads and the MLPs whisper noise.

    The prompt is one letter, five times, and the answer is the letter that follows it in the alphabet: the unembedding is shifted by
    one against the embedding, so only what the head moved through its own 32 directions says which letter it is. The stream itself
    is unembedded to nothing, because embeddings live in the first half of the width and the head writes to the second.
    """
    width, dim, letters = 64, 32, "abcdefghijklmnopqrstuvwxyz"
    module = tiny.build("llama", hidden_size=width, num_attention_heads=4, num_key_value_heads=4, head_dim=dim, tie_word_embeddings=False)
    model = hw.load(module, tiny.tokenizer())
    token = {c: tiny.tokenizer()(c)["input_ids"][0] for c in letters}
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 1e-3)
        basis = torch.linalg.qr(torch.randn(dim, dim))[0]
        embedding, unembedding = module.get_input_embeddings().weight, module.get_output_embeddings().weight
        embedding.zero_()
        unembedding.zero_()
        for i, c in enumerate(letters):
            embedding[token[c], :dim] = basis[i]
            unembedding[token[letters[(i + 1) % 26]], dim:] = 0.5 * basis[i]  # far from certain, so that a gradient is left
        own = slice(HEAD * dim, (HEAD + 1) * dim)
        attention = module.model.layers[LAYER].self_attn
        attention.v_proj.weight[own, :dim] = torch.eye(dim)
        attention.o_proj.weight[dim:, own] = torch.eye(dim)
    task = hw.Task("copy", [(c * 5, letters[(letters.index(c) + 1) % 26], letters[(letters.index(c) + 7) % 26]) for c in letters[:12]])
    return model, task, (LAYER, HEAD)
