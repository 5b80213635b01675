"""Image-text models with images: fed by their processor, every number equal to a plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

import headwidget as hw
from headwidget.scoring.encode import encode
from tests.support import seeing, tiny
from tests.support.plain import ablation_by_loop, slopes_by_steps

PROMPTS = [("<image>what", "cat", "dog"), ("<image>what", "dog"), ("is <image> a", "cow")]


def task() -> hw.Task:
    return hw.Task("see", PROMPTS, images=seeing.images())


@pytest.mark.parametrize("where", ["all", "last"])
@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_ablation_is_one_forward_a_head(where: str, replace: str) -> None:
    model = seeing.llava()
    options = {"where": where, "replace": replace}
    ours = hw.score(model, task(), "ablation", progress=False, **options).values("see")
    expected = ablation_by_loop(model, task(), **options)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 0.1, "images must matter"


def test_gradient_is_the_slope() -> None:
    ours = hw.score(seeing.llava(), task(), "gradient", progress=False).values("see")
    expected = slopes_by_steps(seeing.llava(), task(), step=1e-2)  # its norms are in float32
    np.testing.assert_allclose(ours, expected, rtol=2e-2, atol=5e-3 * np.abs(expected).max())


def test_what_is_fed_is_what_the_processor_makes() -> None:
    model = seeing.llava()
    for example, (prompt, answer, *_), image in zip(
        encode(task(), model).examples, PROMPTS, seeing.images()
    ):
        made = model.processor(text=prompt, images=image, return_tensors="pt")
        said = model.tokenizer(answer, add_special_tokens=False)["input_ids"]
        assert example.ids == (*made["input_ids"][0].tolist(), *said[:-1])
        assert example.answer == tuple(said) and example.at[0] == made["input_ids"].shape[1] - 1
        assert example.media is not None
        torch.testing.assert_close(
            example.media.tensors["pixel_values"], made["pixel_values"].double()
        )


def test_prompts_with_and_without_images_are_scored_together() -> None:
    model, (one, *_) = seeing.llava(), seeing.images()
    mixed = hw.Task("t", [("<image>ab", "cd"), ("some text", "x")], images=[one, None])
    alone = hw.Task("t", [("some text", "x")])
    ours = hw.score(model, mixed, "ablation", progress=False).values("t")
    text = hw.score(model, alone, "ablation", progress=False).values("t")
    np.testing.assert_allclose(ours[1:], text, rtol=1e-4, atol=1e-6)


def test_several_images_in_a_prompt() -> None:
    one, two, _ = seeing.images()
    several = hw.Task(
        "t", [("<image> or <image>", "cd"), ("<image>", "cd")], images=[[one, two], one]
    )
    ours = hw.score(seeing.llava(), several, "ablation", progress=False).values("t")
    np.testing.assert_allclose(
        ours, ablation_by_loop(seeing.llava(), several), rtol=1e-3, atol=1e-5
    )


def test_pieces_of_an_image_are_no_copies_of_each_other() -> None:
    prompts = [("<image>abc", "d"), ("<image>aba", "d")]
    shown = hw.Task("t", prompts, images=seeing.images(2))
    scores = hw.score(seeing.llava(), shown, "patterns", progress=False)
    assert scores.runs("Duplicate token") == ("<image>abad [image 1]",)


def test_knockout_attribution_and_the_prompts_labels() -> None:
    model = seeing.llava()
    scores = hw.score(model, task(), "attribution", progress=False)
    assert scores.runs("see")[0] == "<image>whatcat [image 0]"
    effect = hw.knockout(model, scores, task(), progress=False, draws=2, k=2)
    assert np.isfinite(effect.summary()[["top", "control"]]).all(axis=None)


def test_a_saved_model_is_loaded_with_its_processor(tmp_path: Path) -> None:
    model = seeing.llava()
    model.module.save_pretrained(tmp_path)
    model.processor.save_pretrained(tmp_path)
    again = hw.load(tmp_path, dtype="float64")
    same = hw.load(model.module, hf.AutoProcessor.from_pretrained(tmp_path))
    ours, theirs = (
        hw.score(m, task(), "gradient", progress=False).values("see") for m in (again, same)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def refused(model: hw.Model, prompt: str, words: str, method: str = "ablation") -> None:
    shown = hw.Task("t", [(prompt, "cat"), (prompt, "dog")], images=seeing.images(2))
    with pytest.raises(ValueError, match=words):
        hw.score(model, shown, method, progress=False)


def test_what_cannot_be_read_is_a_sentence() -> None:
    model = seeing.llava()
    refused(model, "what", "no place for it. Write '<image>'")
    refused(model, "<image><image>what", "cannot read the prompt with its image")
    refused(model, "<image>what", "gating fits gates on batches", "gating")
    refused(hw.load(model.module, model.tokenizer), "<image>what", "load it with its processor")
    refused(hw.load(tiny.build("llama"), tiny.tokenizer()), "what", "reads text only")
    heard = hw.Task("t", [("what", "cat")], audio=seeing.sounds(1))
    with pytest.raises(ValueError, match="has a sound"):
        hw.score(model, heard, "ablation", progress=False)
