"""Models whose weights are set by hand: one known head alone copies the answer, or some
known heads alone can tell tasks apart."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

import headwidget as hw
from tests.support import tiny

LAYER, HEAD = 1, 2


def planted() -> tuple[hw.Model, hw.Task, tuple[int, int]]:
    """A Llama in which head (1, 2) moves every earlier token to the last position; all
    other heads and the MLPs write small noise.

    The prompt is one letter, five times, and the answer is the letter that follows it
    in the alphabet: the unembedding is shifted by one against the embedding, so only
    what the head moved through its own 32 directions says which letter it is. The
    stream itself is unembedded to nothing, because embeddings use the first half of
    the width and the head writes to the second.
    """
    width, dim, letters = 64, 32, "abcdefghijklmnopqrstuvwxyz"
    module = tiny.build(
        "llama",
        hidden_size=width,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=dim,
        tie_word_embeddings=False,
    )
    model = hw.load(module, tiny.tokenizer())
    token = {c: tiny.tokenizer()(c)["input_ids"][0] for c in letters}
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 1e-3)
        basis = torch.linalg.qr(torch.randn(dim, dim))[0]
        embedding, unembedding = (
            module.get_input_embeddings().weight,
            module.get_output_embeddings().weight,
        )
        embedding.zero_()
        unembedding.zero_()
        for i, c in enumerate(letters):
            embedding[token[c], :dim] = basis[i]
            unembedding[token[letters[(i + 1) % 26]], dim:] = (
                0.5 * basis[i]
            )  # far from certain, so that a gradient is left
        head_rows = slice(HEAD * dim, (HEAD + 1) * dim)
        attention = module.model.layers[LAYER].self_attn
        attention.v_proj.weight[head_rows, :dim] = torch.eye(dim)
        attention.o_proj.weight[dim:, head_rows] = torch.eye(dim)
    task = hw.Task(
        "copy",
        [
            (c * 5, letters[(letters.index(c) + 1) % 26], letters[(letters.index(c) + 7) % 26])
            for c in letters[:12]
        ],
    )
    return model, task, (LAYER, HEAD)


LABELS, NOISE = "xyz", "abcdefghijklmnop"


def labelled(
    heads: Sequence[tuple[int, int]], *, dtype: torch.dtype = torch.float32, **changes: int
) -> hw.Model:
    """A Llama in which only ``heads`` see which of x, y, z a prompt holds; all others see
    the noise letters around it alone.

    Every head looks at all tokens evenly and writes nothing, so each layer sees the
    embeddings as they are. The three label letters embed in directions of their own,
    which only the given heads' W_V reads; all the noise letters' directions are read by
    every head.
    """
    sizes = {
        "hidden_size": 64,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 16,
        **changes,
    }
    module = tiny.build("llama", tie_word_embeddings=False, **sizes)
    token = {c: tiny.tokenizer()(c)["input_ids"][0] for c in LABELS + NOISE}
    torch.manual_seed(2)
    with torch.no_grad():
        embedding = module.get_input_embeddings().weight
        embedding.zero_()
        for i, c in enumerate(LABELS + NOISE):
            embedding[token[c], i] = 1.0
        for row, block in enumerate(module.model.layers):
            block.self_attn.q_proj.weight.zero_()  # even attention
            block.self_attn.o_proj.weight.zero_()
            block.mlp.down_proj.weight.zero_()
            value = block.self_attn.v_proj.weight  # (head * dim, width)
            value.normal_()
            blind = torch.tensor(
                [(row, head) not in set(heads) for head in range(sizes["num_attention_heads"])]
            )
            value[blind.repeat_interleave(sizes["head_dim"]), : len(LABELS)] = 0
    return hw.load(module.to(dtype), tiny.tokenizer())


def letters(
    count: int, *, shuffled: bool = False, seed: int = 0, held_out: int = 0
) -> list[hw.Task]:
    """Three tasks of ``count`` prompts, three noise letters with the task's own label
    letter somewhere among them; with ``shuffled``, anyone's."""
    rng = random.Random(seed)
    tasks = []
    for name in LABELS:
        examples = []
        for _ in range(count):
            text = rng.choices(NOISE, k=3)
            text.insert(rng.randrange(4), rng.choice(LABELS) if shuffled else name)
            examples.append(("".join(text), rng.choice(NOISE)))
        tasks.append(hw.Task(name, examples, held_out=range(held_out)))
    return tasks


HELPS, HARMS = (LAYER, HEAD), (2, 0)


def helped_and_harmed() -> tuple[hw.Model, hw.Task]:
    """The model of :func:`planted` with a second head that matters: (2, 0) writes
    with the same norm as (1, 2), but another letter's direction."""
    model, task, _ = planted()
    dim, letters = model.head_dim, 26
    head_rows = slice(HARMS[1] * dim, (HARMS[1] + 1) * dim)
    with torch.no_grad():
        directions = (
            2 * model.module.get_output_embeddings().weight[:, dim:]
        )  # as planted() chose them
        letter_directions = directions[directions.norm(dim=1) > 0.5]  # (letter, dim), by token
        assert len(letter_directions) == letters
        attention = model.module.model.layers[HARMS[0]].self_attn
        attention.v_proj.weight[head_rows, :dim] = torch.eye(dim)
        attention.o_proj.weight[dim:, head_rows] = (
            8 * letter_directions.roll(6, 0).T @ letter_directions
        )
    return model, task
