"""Models that name the class of an image or a sound: every number equal to a plain loop."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image

import headwidget as hw
from headwidget.models import attention
from headwidget.scoring import trust
from headwidget.scoring.encode import encode
from tests.support import seeing, tiny
from tests.support.plain import ablation_by_loop, slopes_by_steps

ALL = (*seeing.SEEING, *seeing.HEARING)


@pytest.fixture(params=ALL)
def family(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_heads_are_found_and_proven(family: str) -> None:
    model = seeing.classifier(family)
    assert model.shape == (3, 4) and not model.family.table
    what = "an image" if family in seeing.SEEING else "a sound"
    assert model.describe().endswith(f"answers: the class of {what}")


@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_ablation_is_one_forward_a_head(family: str, replace: str) -> None:
    model, task = seeing.classifier(family), seeing.task(family)
    ours = hw.score(model, task, "ablation", replace=replace, progress=False)
    expected = ablation_by_loop(model, task, replace=replace)
    np.testing.assert_allclose(ours.values("animals"), expected, rtol=1e-3, atol=1e-5)
    assert (np.abs(expected).max(axis=(0, 2)) > 1e-4).all(), "every layer must matter"


def test_gradient_is_the_slope(family: str) -> None:
    model, task = seeing.classifier(family), seeing.task(family)
    ours = hw.score(model, task, "gradient", progress=False).values("animals")
    expected = slopes_by_steps(model, task, step=1e-4)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_patterns_are_those_of_the_attention_weights(family: str) -> None:
    model, task = seeing.classifier(family), seeing.task(family)
    scores = hw.score(model, task, "patterns", progress=False)
    names = ("Previous token", "Current token", "First token", "Entropy")
    assert scores.tasks == names
    assert set(scores.meta["left_out"]) == {"Duplicate token", "Induction", "Retrieval"}
    first = encode(task, model).examples[0]
    assert first.media is not None
    for row in range(3):
        w = attention.weights(model, first.media.tensors, row)[0].double()  # (head, query, key)
        places = range(2, w.shape[1])
        assert w.shape[1] == len(first.ids) and torch.allclose(w.sum(-1), torch.ones(()).double())
        expected = {
            "Previous token": sum(w[:, i, i - 1] for i in places) / len(places),
            "Current token": sum(w[:, i, i] for i in places) / len(places),
            "First token": w[:, 2:, 0].mean(-1),
            "Entropy": -(w * w.log()).sum(-1)[:, 2:].mean(-1) / np.log(w.shape[1]),
        }
        for name, value in expected.items():
            ours = scores.values(name)[0, row]
            np.testing.assert_allclose(ours, value.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_fed_is_what_the_processor_makes() -> None:
    model = seeing.classifier("vit")
    examples = encode(seeing.task("vit"), model).examples
    for example, image in zip(examples, seeing.images()):
        pixels = seeing.image_processor()(images=image, return_tensors="pt")["pixel_values"]
        assert example.media is not None
        torch.testing.assert_close(example.media.tensors["pixel_values"], pixels.double())
    assert [e.answer for e in examples] == [(1,), (0,), (4,)] and examples[0].foil == 2
    assert re.fullmatch(r"one → dog \[image [0-9a-f]{6}\]", examples[0].label)


def test_an_array_and_a_file_are_the_same_image(tmp_path: Path) -> None:
    model, image = seeing.classifier("vit"), seeing.images(1)[0]
    image.save(tmp_path / "noise.png")
    array, path = np.asarray(image), tmp_path / "noise.png"
    task = hw.Task("t", [("a", "dog"), ("a", "dog"), ("a", "dog")], images=[image, array, path])
    values = hw.score(model, task, "gradient", progress=False).values("t")
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])
    labels = [example.label for example in encode(task, model).examples]
    assert labels[0] == labels[1] and labels[2] == labels[0].replace("image", "noise.png")


def test_images_that_differ_give_scores_that_differ_and_order_does_not_matter() -> None:
    model, (one, two, three) = seeing.classifier("vit"), seeing.images()
    names = [("a", "dog")] * 3
    forth = hw.score(model, hw.Task("t", names, images=[one, two, three]), progress=False)
    back = hw.score(model, hw.Task("t", names, images=[three, two, one]), progress=False)
    assert np.abs(forth.values("t")[0] - forth.values("t")[1]).max() > 1e-3
    np.testing.assert_allclose(forth.values("t"), back.values("t")[::-1], rtol=1e-5, atol=1e-7)


def test_gating_knockout_and_samples_run() -> None:
    model, task = seeing.classifier("dinov2"), seeing.task("dinov2")
    gated = hw.score(model, task, "gating", updates=2, fits=2, progress=False)
    assert gated.shape == (3, 4) and np.isfinite(gated.values("animals")).all()
    scores = hw.score(model, task, "ablation", progress=False)
    effect = hw.knockout(model, scores, task, progress=False, draws=2, k=2)
    assert np.isfinite(effect.summary()[["top", "control"]]).all(axis=None)
    sample = task.sample(2, seed=1)
    assert [len(example.media) for example in sample] == [1, 1]
    assert hw.score(model, sample, "gradient", progress=False).shape == (3, 4)


def test_sounds_of_several_lengths_do_not_disturb_each_other() -> None:
    model = seeing.classifier("wav2vec2")
    (rate, long), short = seeing.sounds(1)[0], seeing.sounds(1)[0][1][:4000]
    task = hw.Task("t", [("long", "dog"), ("short", "cat")], audio=[(rate, long), (rate, short)])
    ours = hw.score(model, task, "ablation", progress=False).values("t")
    np.testing.assert_allclose(ours, ablation_by_loop(model, task), rtol=1e-3, atol=1e-5)
    scores = hw.score(model, task, "patterns", progress=False)
    for run, example in enumerate(encode(task, model).examples):
        assert example.media is not None
        weights = attention.weights(model, example.media.tensors, 1)[0]  # (head, query, key)
        first = weights[:, 2:, 0].mean(-1).numpy()
        np.testing.assert_allclose(scores.values("First token")[run, 1], first, rtol=1e-4)


def test_images_that_affect_each_other_in_a_batch_run_alone() -> None:
    module = copy.deepcopy(seeing.classifier("vit").module)
    module.classifier = torch.nn.Sequential(_LessTheBatchMean(), module.classifier)
    model = hw.load(module, seeing.image_processor())
    one, two, three = seeing.images()
    odd = hw.Task("t", [("a", "dog"), ("b", "cat"), ("c", "cow")], images=[one, two, three])
    examples = encode(odd, model).examples
    trust.check(model, examples)
    assert model.batch_dependent and model.one_by_one


class _LessTheBatchMean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0) if len(x) > 1 else x


def test_every_size_of_sound_is_tried_in_a_batch() -> None:
    model = seeing.classifier("wav2vec2")
    (rate, long), (_, other), (_, third) = seeing.sounds()
    sounds = [(rate, long[:4000]), (rate, other), (rate, third)]
    task = hw.Task("t", [("a", "dog"), ("b", "cat"), ("c", "cow")], audio=sounds)
    examples = encode(task, model).examples
    assert trust._pairs(examples, model) == [(examples[1], examples[2])]


@pytest.mark.parametrize("family", ["vit", "ast"])
def test_a_saved_classifier_is_loaded_by_its_folder(family: str, tmp_path: Path) -> None:
    model = seeing.classifier(family)
    model.module.save_pretrained(tmp_path)
    model.processor.save_pretrained(tmp_path)
    again = hw.load(tmp_path, dtype="float64")
    assert again.family.head == model.family.head and again.shape == model.shape
    auto = hf.AutoImageProcessor if family == "vit" else hf.AutoFeatureExtractor
    same = hw.load(model.module, auto.from_pretrained(tmp_path))  # by torchvision where it is
    task = seeing.task(family)
    ours, theirs = (
        hw.score(m, task, "gradient", progress=False).values("animals") for m in (again, same)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["attribution", "relations", "probe"])
def test_methods_that_need_tokens_refuse_by_name(method: str) -> None:
    with pytest.raises(ValueError, match=f"{method} .* names the class of an image; use method="):
        hw.score(seeing.classifier("vit"), seeing.task("vit"), method, progress=False)


def test_windows_of_an_image_are_refused() -> None:
    config = hf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1])
    config.num_heads, config.window_size = [2, 4], 4
    with pytest.raises(ValueError, match="in windows of the input"):
        hw.load(hf.SwinForImageClassification(config).eval(), seeing.image_processor())


@pytest.mark.parametrize("family", ["vit", "ast"])
def test_salient_is_refused_by_its_own_name(family: str) -> None:
    with pytest.raises(ValueError, match="hw.salient reads .* names the class of"):
        hw.salient(seeing.classifier(family), 0, 0)


def test_a_tokenizer_is_no_processor_of_images() -> None:
    vit = hw.load(seeing.classifier("vit").module, tiny.tokenizer())
    refused(vit, seeing.task("vit"), "needs its image processor or feature extractor")


def test_attention_to_fewer_patches_is_refused() -> None:
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [16, 16]}
    stages = {"num_attention_heads": [2, 2], "patch_sizes": [4, 2], "strides": [4, 2]}
    config = hf.PvtConfig(
        **sizes, **stages, image_size=32, sequence_reduction_ratios=[2, 1], mlp_ratios=[2, 2]
    )
    with pytest.raises(ValueError, match="or over a part of it"):
        hw.load(hf.PvtForImageClassification(config).eval(), seeing.image_processor())


def test_a_model_without_attention_gets_that_sentence() -> None:
    config = hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1])
    with pytest.raises(ValueError, match="has no attention heads to score"):
        hw.load(hf.ResNetForImageClassification(config).eval(), seeing.image_processor())


def test_attention_in_one_call_of_torch_is_refused_by_its_name() -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    convs = {"conv_dim": (16,) * 7, "num_conv_pos_embeddings": 16}
    groups = {"num_conv_pos_embedding_groups": 4, "intermediate_size": 48}
    wavlm = hf.WavLMForSequenceClassification(hf.WavLMConfig(**sizes, **convs, **groups))
    with pytest.raises(ValueError, match="by torch's multi_head_attention_forward"):
        hw.load(wavlm.eval(), seeing.listener("wav2vec2"))


def refused(model: hw.Model, task: hw.Task, words: str, **options: Any) -> None:
    with pytest.raises(ValueError, match=words):
        hw.score(model, task, "ablation", progress=False, **options)


def test_bad_tasks_are_sentences_before_any_forward() -> None:
    vit, ast, image = seeing.classifier("vit"), seeing.classifier("ast"), seeing.images(1)
    names = [("a", "dog")]
    refused(vit, hw.Task("t", names), r"classifies one image an example; .*images=\[")
    refused(vit, hw.Task("t", names, audio=seeing.sounds(1)), "classifies one image")
    refused(vit, hw.Task("t", names, images=[image * 2]), "classifies one image")
    refused(vit, hw.Task("t", [("a", "dgo")], images=image), "'dgo' is not one of the 5 .*'dog'")
    refused(vit, hw.Task("t", [("a", "zebra")], images=image), "they are 'cat', 'dog', 'cow'")
    refused(vit, hw.Task("t", [("a", "dog", " dog")], images=image), "the same class")
    refused(vit, seeing.task("vit"), "has no such position", where="last")
    (_, samples), *_ = seeing.sounds(1)
    refused(ast, hw.Task("t", names, audio=[(8000, samples)]), "8000 samples a second and .*16000")
    with pytest.raises(ValueError, match="reads no tokens; give what its processor"):
        attention.weights(vit, [1, 2, 3], 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"images": []}, "has 1 examples and 0 entries in images"),
        ({"images": "cat.png"}, "a list with an entry for each example"),
        ({"images": [np.zeros((4, 4, 3))]}, "holds bytes, 0 to 255 .*float64"),
        ({"images": [np.zeros((3, 8, 8), np.uint8)]}, r"got an array \(3, 8, 8\)"),
        ({"images": [7]}, "got a int"),
        ({"audio": [np.zeros(9, np.float32)]}, "a sound is"),
        ({"audio": [(16000, np.zeros((2, 9), np.float32))]}, "one channel"),
        ({"audio": [(16000, np.zeros(9, np.int16))]}, "floating-point numbers"),
        ({"audio": [(16000, np.zeros(0, np.float32))]}, "a sound has samples"),
        ({"audio": [(16000, np.full(9, np.nan, np.float32))]}, "numbers of about -1 to 1"),
        ({"audio": [(16000, np.full(9, 3e4, np.float32))]}, "the largest 3e.04"),
        ({"images": ["https://a.b/c.png"]}, "fetches no image"),
    ],
)
def test_bad_images_and_sounds_are_refused_when_the_task_is_made(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hw.Task("t", [("a", "dog")], **options)


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no image file"):
        hw.Task("t", [("a", "dog")], images=[tmp_path / "none.png"])
    (tmp_path / "text.png").write_text("no image")
    task = hw.Task("t", [("a", "dog")], images=[tmp_path / "text.png"])
    refused(seeing.classifier("vit"), task, "text.png cannot be read as an image")


# ---- what looks right and is not ----


def changed_vit(**settings: Any) -> hw.Model:
    module = copy.deepcopy(seeing.classifier("vit").module)
    for name, value in settings.items():
        setattr(module.config, name, value)
    return hw.load(module, seeing.image_processor())


def test_two_classes_of_one_name_are_told_apart_by_number() -> None:
    vit = changed_vit(id2label={0: "crane", 1: "dog", 2: "crane", 3: "owl", 4: "yak"})
    image = seeing.images(1)
    refused(vit, hw.Task("t", [("a", "crane")], images=image), "2 classes of .*, 0 and 2; .*'0'")
    (by_number,) = encode(hw.Task("t", [("a", "2", "0")], images=image), vit).examples
    assert by_number.answer == (2,) and by_number.foil == 0


@pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
def test_heads_that_choose_no_class_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="not with one class of several"):
        changed_vit(problem_type=kind)


def test_logits_that_are_not_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="gives 5 logits, and its configuration names 2"):
        changed_vit(id2label={0: "a", 1: "b"})


def test_a_class_of_ones_own_is_known_by_the_class_it_is_made_of() -> None:
    class Mine(hf.ViTForImageClassification):  # type: ignore[misc]
        pass

    mine = Mine(seeing.classifier("vit").module.config).eval()
    assert hw.load(mine, seeing.image_processor()).classifier


def test_an_image_is_turned_as_its_file_says(tmp_path: Path) -> None:
    (image,) = seeing.images(1)
    exif = image.getexif()
    exif[0x0112] = 6  # to be turned by a quarter
    image.save(tmp_path / "turned.png", exif=exif)
    images = [tmp_path / "turned.png", image.rotate(-90, expand=True)]
    task = hw.Task("t", [("a", "dog"), ("b", "dog")], images=images)
    turned, upright = encode(task, seeing.classifier("vit")).examples
    assert turned.media is not None and upright.media is not None
    pixels = [each.tensors["pixel_values"] for each in (turned.media, upright.media)]
    torch.testing.assert_close(*pixels)


@pytest.mark.parametrize("mode", ["I", "F", "I;16"])
def test_images_whose_numbers_are_no_bytes_are_refused(mode: str) -> None:
    task = hw.Task("t", [("a", "dog")], images=[Image.new(mode, (4, 4))])
    refused(seeing.classifier("vit"), task, "whose numbers are not bytes")


def test_a_sound_that_is_cut_off_is_refused() -> None:
    ast, (rate, samples) = seeing.classifier("ast"), seeing.sounds(1)[0]
    long = np.tile(samples, 3)
    refused(ast, hw.Task("t", [("a", "dog")], audio=[(rate, long)]), "cuts its end off")


def test_sounds_are_taken_as_datasets_and_scipy_give_them() -> None:
    rate, samples = seeing.sounds(1)[0]
    forms = [(np.int64(rate), samples), {"array": list(samples), "sampling_rate": rate}]
    task = hw.Task("t", [("a", "dog"), ("b", "cat")], audio=forms)
    assert [example.media[0].rate for example in task] == [rate, rate]


def test_what_a_model_cannot_read_names_the_example() -> None:
    wrong = hw.load(
        seeing.classifier("vit").module, hf.ViTImageProcessorPil(size={"height": 32, "width": 32})
    )
    refused(wrong, seeing.task("vit"), "cannot read what its processor made of example")


def test_an_image_processor_is_no_tokenizer() -> None:
    with pytest.raises(TypeError, match="reads text, and a ViTImageProcessor"):
        hw.load(tiny.build("llama"), seeing.image_processor())


def test_media_belong_to_the_task() -> None:
    with pytest.raises(ValueError, match="give images and sounds to the task"):
        hw.Task("t", [hw.tasks.Example("a", "b", None, ("x.png",))])


def test_a_folder_without_its_processor_says_so(tmp_path: Path) -> None:
    seeing.classifier("vit").module.save_pretrained(tmp_path)
    with pytest.raises((OSError, ValueError), match="its processor could not be"):
        hw.load(tmp_path)


def test_a_checkpoint_with_another_head_is_refused(tmp_path: Path) -> None:
    config = copy.deepcopy(tiny.build("llama").config)
    config.tie_word_embeddings = True
    hf.LlamaForSequenceClassification(config).save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="saved as LlamaForSequenceClassification"):
        hw.load(tmp_path)
