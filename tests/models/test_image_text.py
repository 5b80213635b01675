"""Image-text models with images: fed by their processor, every number equal to a plain loop."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers.processors import TemplateProcessing

import headwidget as hw
from headwidget.live import reading
from headwidget.scoring import gated_forward
from headwidget.scoring.encode import Encoded, encode
from tests.support import seeing, tiny
from tests.support.plain import ablation_by_loop, log_p, slopes_by_steps

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
    (label,) = scores.runs("Duplicate token")
    assert label.startswith("<image>abad [image ")


def test_knockout_attribution_and_the_prompts_labels() -> None:
    model = seeing.llava()
    scores = hw.score(model, task(), "attribution", progress=False)
    assert scores.runs("see")[0].startswith("<image>whatcat [image ")
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


@pytest.mark.parametrize("name", ["Qwen2VL", "Qwen3VL"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_what_an_image_leaves_behind_reaches_no_other_prompt(name: str, dtype: torch.dtype) -> None:
    """Qwen2-VL keeps moved positions; Qwen3-VL adds images between blocks."""
    model = hw.load(copy.deepcopy(seeing.qwen(name).module).to(dtype), seeing.QwenProcessor())
    one, two, _ = seeing.images()
    prompts = [
        (f"is {seeing.PICTURE} a", "cow"),
        ("plain text bc", "yz"),
        ("plain tex", "q"),
        (f"{seeing.PICTURE} or {seeing.PICTURE}", "e"),
    ]
    mixed = hw.Task("t", prompts, images=[one, None, None, [one, two]])
    text = hw.Task("t", [("a b c d e f", "g"), ("a b c d e", "h"), ("a b c d", "i")])
    hw.score(model, text, "gradient", progress=False)  # its checks need not be done again
    ours = hw.score(model, mixed, "ablation", progress=False).values("t")
    expected = ablation_by_loop(model, mixed)
    size = np.abs(expected).max()
    np.testing.assert_allclose(
        ours, expected, atol=(1e-5 if dtype == torch.float64 else 0.03) * size
    )
    gates = np.ones((1, *model.shape), np.float32)
    gates[0, 1, 2] = 0
    for landed in gated_forward.run(model, encode(text, model).examples, gates):
        for run, value in zip(landed.runs, landed.values[0, :, 0]):
            off = ablation_off(model, encode(text, model).examples[run])
            assert abs(value - off) <= (1e-5 if dtype == torch.float64 else 0.1) * abs(off)


def ablation_off(model: hw.Model, example: Encoded) -> float:
    """log p(answer) with head 2 of layer 1 off, by a plain forward."""

    def off(z: torch.Tensor, _: Encoded) -> torch.Tensor:
        z = z.clone()
        z[:, :, 2] = 0
        return z

    return log_p(model, example, {1: off})


def test_an_end_of_text_behind_a_prompt_is_not_fed() -> None:
    model, image = seeing.llava(), seeing.images(1)
    processor = copy.deepcopy(model.processor)
    end = ("<mask>", processor.tokenizer.mask_token_id)
    processor.tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="$A <mask>", special_tokens=[end]
    )
    (plain,) = encode(hw.Task("t", [("<image>ab", "cd")], images=image), model).examples
    ending = hw.load(model.module, processor)
    (ended,) = encode(hw.Task("t", [("<image>ab", "cd")], images=image), ending).examples
    assert ended.ids == plain.ids and ended.at == plain.at


def test_an_image_that_was_forgotten_is_asked_for() -> None:
    with pytest.raises(ValueError, match="place for an image and there is none"):
        hw.score(seeing.llava(), hw.Task("t", [("<image>what", "cat")]), progress=False)
    with pytest.raises(ValueError, match="place for an image"):
        reading.read(seeing.llava(), "<image>what")


def test_images_are_read_from_columns_and_from_a_files_folder(tmp_path: Path) -> None:
    (image,) = seeing.images(1)
    image.save(tmp_path / "one.png")
    (tmp_path / "t.csv").write_text("prompt,answer,image\n<image>a,b,one.png\nplain,c,\n")
    from_file = hw.Task.read(tmp_path / "t.csv")
    assert [len(example.media) for example in from_file] == [1, 0]
    rows = [{"prompt": "<image>a", "answer": "b", "image": image}]
    assert hw.Task.read(rows, "t").examples[0].media[0].content is image


def test_noise_on_an_images_way_is_found() -> None:
    module = copy.deepcopy(seeing.llava().module)
    module.model.multi_modal_projector = torch.nn.Sequential(
        module.model.multi_modal_projector, _Noise()
    )
    mixed = hw.Task("t", [("ab", "cd"), *PROMPTS[:1]], images=[None, *seeing.images(1)])
    with pytest.raises(RuntimeError, match="two different answers"):
        hw.score(hw.load(module, seeing.llava().processor), mixed, progress=False)


class _Noise(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


def test_a_processor_that_gives_no_tensor_is_refused() -> None:
    class Listing(hf.LlavaProcessor):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            made = super().__call__(*args, **kwargs)
            made["pixel_values"] = [made["pixel_values"]]
            return made

    own = seeing.llava().processor
    listing = Listing(own.image_processor, own.tokenizer, patch_size=8)
    refused(hw.load(seeing.llava().module, listing), "<image>what", "pixel_values as a list")


def test_the_same_image_has_the_same_label_in_any_order() -> None:
    one, two, _ = seeing.images()
    orders = ([one, two], [two, one])
    labels = [
        {
            e.label
            for e in encode(hw.Task("t", PROMPTS[:1] * 2, images=order), seeing.llava()).examples
        }
        for order in orders
    ]
    assert labels[0] == labels[1] and len(labels[0]) == 2


def refused(model: hw.Model, prompt: str, words: str, method: str = "ablation") -> None:
    shown = hw.Task("t", [(prompt, "cat"), (prompt, "dog")], images=seeing.images(2))
    with pytest.raises(ValueError, match=words):
        hw.score(model, shown, method, progress=False)


def test_what_cannot_be_read_is_a_sentence() -> None:
    model = seeing.llava()
    refused(model, "what", "no place for it. Write '<image>'")
    refused(model, "<image><image>what", "2 places for images .'<image>'. and 1 images")
    refused(model, "<image>what", "gating fits gates on batches", "gating")
    refused(hw.load(model.module, model.tokenizer), "<image>what", "load it with its processor")
    refused(hw.load(tiny.build("llama"), tiny.tokenizer()), "what", "reads text only")
    heard = hw.Task("t", [("what", "cat")], audio=seeing.sounds(1))
    with pytest.raises(ValueError, match="has a sound"):
        hw.score(model, heard, "ablation", progress=False)
