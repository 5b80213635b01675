"""Relations: every score against its definition, what is left out, and how it is shown."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import headwidget as hw
from headwidget.methods import extremes
from headwidget.methods.relations import Relations, encode
from headwidget.methods.relations import tokens as single_tokens
from headwidget.models import hooks, weights
from headwidget.scores import provenance
from headwidget.tasks.suites.relation_pairs import generated
from tests.support import tiny
from tests.support.words import LETTERS, VOCABULARY, following, ids, made, tokenizer


def copying() -> hw.Relation:
    return hw.Relation("same", [(a, a) for a in LETTERS[:40]], "Algorithmic")


def definition(
    model: hw.Model,
    pairs: list[tuple[int, int]],
    k: int,
    *,
    mlp: bool = True,
    bias: bool = True,
    largest: bool = True,
) -> np.ndarray:
    """(pair, layer, head): is the target among the top k of the head's logits? In float64.

    Each head's output in full width is projected to the whole vocabulary.
    """
    source, target = (torch.tensor(one) for one in zip(*pairs))
    u = model.unembedding.weight.detach().double()  # (vocabulary, width)
    found = np.zeros((len(pairs), *model.shape))
    with torch.no_grad():
        e = weights.embedded(model, source)
        above = weights.first_mlp(model, e) if mlp else e
        for row, layer in enumerate(model.layers):
            read = weights.values(model, layer)
            for head in range(layer.heads):
                group = head // (layer.heads // model.n_kv_heads)
                v = (above if layer.index else e).double() @ read.weight[group].double()
                if bias and read.bias is not None:
                    v = v + read.bias[group].double()
                logits = v @ layer.w_o()[head].double() @ u.T  # (pair, vocabulary)
                found[:, row, head] = (
                    logits.topk(k, largest=largest).indices == target[:, None]
                ).any(1)
    return found


# ---- the scores ----


@pytest.mark.parametrize("family", tiny.DECODERS)
@pytest.mark.parametrize("sample", [8192, 32])
def test_scores_are_the_definition(
    family: str, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in full where the vocabulary is small; settled on a sample first where it is not."""
    monkeypatch.setattr(extremes, "SAMPLE", sample)
    model = made(family)
    scores = hw.score(model, [following(), copying()], "relations", progress=False, chunk=4000)
    for relation, k in ((following(), 10), (copying(), 1)):
        pairs = ids(model, relation)
        np.testing.assert_array_equal(scores.values(relation.name), definition(model, pairs, k))
        np.testing.assert_array_equal(
            scores.aspects["suppression"].values(relation.name),
            definition(model, pairs, k, largest=False),
        )
        assert scores.meta["tasks"][relation.name]["k"] == k
    assert 0 < scores.values("following").mean() < 0.3
    assert scores.runs("following")[0] == "a → b" and scores.categories == {
        "following": "Algorithmic",
        "same": "Algorithmic",
    }


@pytest.mark.parametrize(
    ("family", "changes", "options"),
    [
        ("qwen2", {}, {"bias": False}),
        ("gpt2", {}, {"bias": False, "k": 3}),
        ("gpt2", {}, {"mlp": False}),
        ("llama", {"tie_word_embeddings": True}, {}),
        ("llama", {"tie_word_embeddings": False, "num_key_value_heads": 1}, {"k": 40}),
        ("llama", {"num_key_value_heads": 4}, {"mlp": False, "k": 5}),
        ("falcon", {"new_decoder_architecture": False, "multi_query": True}, {}),
    ],
)
def test_options_biases_and_ties_of_weights_are_the_definition(
    family: str, changes: dict[str, Any], options: dict[str, Any]
) -> None:
    model = made(family, **changes)
    assert (
        model.unembedding.weight is model.module.get_input_embeddings().weight
    ) is model.config.tie_word_embeddings
    scores = hw.score(model, following(), "relations", progress=False, **options)
    expected = definition(
        model,
        ids(model, following()),
        options.get("k", 10),
        mlp=options.get("mlp", True),
        bias=options.get("bias", True),
    )
    np.testing.assert_array_equal(scores.values("following"), expected)


def test_every_option_changes_what_is_read() -> None:
    model = made("gpt2")
    plain = hw.score(model, following(), "relations", progress=False).values("following")
    for option in ({"bias": False}, {"mlp": False}, {"k": 30}):
        assert (
            hw.score(model, following(), "relations", progress=False, **option).values("following")
            != plain
        ).any(), option
    np.testing.assert_array_equal(
        hw.score(model, following(), "relations", progress=False, chunk=1).values("following"),
        plain,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_any_dtype_is_the_definition_of_its_own_weights(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extremes, "SAMPLE", 32)
    model = hw.load(tiny.build("qwen2", vocab_size=VOCABULARY).to(dtype), tokenizer())
    scores = hw.score(model, following(), "relations", progress=False, mlp=False)
    np.testing.assert_array_equal(
        scores.values("following"), definition(model, ids(model, following()), 10, mlp=False)
    )
    assert (
        np.abs(
            hw.score(model, following(), "relations", progress=False).values("following")
            - definition(model, ids(model, following()), 10)
        ).mean()
        < 0.01
    )


def test_scores_of_the_embedded_model_are_the_definition() -> None:
    model = hw.load()
    relations = [
        r for r in hw.tasks.suite("relations") if r.name in ("country to capital", "name copying")
    ]
    found = {}
    for relation in relations:
        pairs = ids(model, relation.sample(20))
        for largest in (True, False):
            with hooks.scoring(model):
                found[relation.name, largest] = definition(
                    _only(model, (0, 23)),
                    pairs,
                    1 if relation.name == "name copying" else 10,
                    largest=largest,
                )
    scores = hw.score(
        _only(model, (0, 23)), [r.sample(20) for r in relations], "relations", progress=False
    )
    for relation in relations:
        np.testing.assert_array_equal(scores.values(relation.name), found[relation.name, True])
        np.testing.assert_array_equal(
            scores.aspects["suppression"].values(relation.name), found[relation.name, False]
        )
        assert scores.values(relation.name).mean(0).max() > 0.3


def _only(model: hw.Model, rows: tuple[int, ...]) -> hw.Model:
    """The same model with some of its layers scored."""
    some = hw.Model(model.module, model.tokenizer)
    some.layers = tuple(some.layers[row] for row in rows)
    return some


@pytest.mark.parametrize("sample", [8192, 64])
def test_no_tensor_is_larger_than_the_chunk(sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremes, "SAMPLE", sample)
    made_of: list[Any] = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = function(*args, **(kwargs or {}))
            made_of.extend(
                (one.untyped_storage().nbytes() // one.itemsize, str(function))
                for one in (out if isinstance(out, (tuple, list)) else [out])
                if isinstance(one, Tensor)
            )
            return out

    x, w_o, u = (
        torch.randn(4, 60, 8),
        torch.randn(4, 8, 16).bfloat16(),
        torch.randn(900, 16).bfloat16(),
    )
    largest = {}
    for chunk in (4000, 16_000):
        made_of.clear()
        with Sizes():
            extremes.extremes(x, w_o, u, torch.arange(60), torch.full((60,), 10), chunk)
        ours = [
            (size, name)
            for size, name in made_of
            if size not in (x.numel(), w_o.numel(), u.numel())
        ]  # views of what was given
        largest[chunk] = max(ours)
        assert largest[chunk][0] <= chunk, largest


def test_ties_do_not_count_against_a_target() -> None:
    x, w_o = torch.ones(1, 3, 1), torch.ones(1, 1, 1)
    u = torch.tensor([[3.0], [2.0], [2.0], [2.0], [1.0]])
    top, bottom = extremes.extremes(
        x, w_o, u, torch.tensor([0, 3, 4]), torch.tensor([1, 2, 1]), 100
    )
    assert top.tolist() == [[1, 1, 0]] and bottom.tolist() == [[0, 1, 1]]
    assert (
        extremes.extremes(
            x, w_o, u * torch.nan, torch.tensor([0, 3, 4]), torch.tensor([1, 2, 1]), 100
        )[0]
        .isnan()
        .all()
    )


@pytest.mark.parametrize("rank", [0, 1, 4, 5, 200, 396, 398, 399])
def test_what_a_sample_settles_is_settled(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets of every rank, just inside and just outside k; each is in the sample for some."""
    monkeypatch.setattr(extremes, "SAMPLE", 150)
    rng = torch.Generator().manual_seed(rank)
    x, w_o, u = (
        torch.randn(*shape, generator=rng) for shape in ((2, 300, 8), (2, 8, 16), (400, 16))
    )
    for head in range(2):
        order = (x[head].double() @ w_o[head].double() @ u.double().T).argsort(
            dim=1, descending=True
        )
        for k in (1, 2, 5):
            top, bottom = extremes.extremes(
                x, w_o, u, order[:, rank], torch.full((300,), k), 10_000
            )
            assert (
                top[head].tolist() == [float(rank < k)] * 300
                and bottom[head].tolist() == [float(399 - rank < k)] * 300
            )
    assert not extremes._open(x, w_o, u, order[:, 200], torch.ones(300), 10_000)[
        1
    ].any()  # nothing of the middle is left to count


def test_the_published_rule_of_k(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwidget.methods.relations import rule

    same, other = [(1, 1), (2, 2)], [(1, 1), (2, 3)]
    assert [rule(Relations(), v, p) for v in (100_000, 100_001) for p in (same, other)] == [
        1,
        10,
        3,
        25,
    ]
    assert rule(Relations(k=7), 200_000, same) == 7


def test_the_first_mlp_is_left_out_of_very_large_models(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwidget.methods import relations

    model = made("llama")
    assert hw.score(model, following(), "relations", progress=False).meta["mlp"] is True
    monkeypatch.setattr(relations, "VERY_LARGE", 100)
    scores = hw.score(model, following(), "relations", progress=False)
    assert scores.meta["mlp"] is False
    np.testing.assert_array_equal(
        scores.values("following"), definition(model, ids(model, following()), 10, mlp=False)
    )


# ---- pairs that are left out, and what is said ----


def test_pairs_that_are_not_single_tokens_are_dropped_and_counted() -> None:
    mixed = hw.Relation(
        "mixed", [*zip(LETTERS[:32], LETTERS[20:]), ("ab", "c"), ("c", "de"), ("ä", "a")]
    )
    few = hw.Relation("few", [("a", "b"), ("cat", "d")])
    none = hw.Relation("none", [("cat", "dog"), ("a", "bc")])
    scores = hw.score(made("llama"), [mixed, few, none], "relations", progress=False)
    known = scores.meta["tasks"]
    assert scores.tasks == ("mixed", "few") and len(scores.runs("mixed")) == 32
    assert known["mixed"]["pairs"] == 35
    assert (
        known["mixed"]["dropped"]
        == [{"why": "source or target is not a single token behind a space", "count": 3}]
        and "warning" not in known["mixed"]
    )
    assert provenance.note(scores, "mixed") == "3 pairs dropped"
    assert (
        provenance.warning(scores, "few")
        == "Only 1 of its 2 pairs are single tokens of this model: "
        "with fewer than 30 pairs a relation's scores are unreliable."
    )
    assert (
        dict(provenance.about(scores))["left out"] == "none none of its 2 pairs are single tokens"
    )


def test_a_word_is_looked_up_behind_a_space() -> None:
    model = hw.load()
    (paris, oslo, cat, nothing) = single_tokens(model, ["Paris", "Oslo", "cat", "Ouagadougou"])
    assert (
        model.tokenizer.convert_ids_to_tokens([paris, oslo, cat]) == ["ĠParis", "ĠOslo", "Ġcat"]
        and nothing is None
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "k is a whole number, 1 or more; got 0"),
        ({"chunk": 1.5}, "chunk is a whole number, 1 or more; got 1.5"),
        ({"mlp": "yes"}, "mlp must be True, False or None to choose; got 'yes'"),
        ({"bias": None}, "bias must be True or False; got None"),
        ({"top": 3}, "method 'relations' has no option 'top'; its options are k, mlp, bias, chunk"),
        ({"only_correct": True}, "asks the model no questions"),
    ],
)
def test_wrong_options_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        hw.score(made("llama"), following(), "relations", progress=False, **options)


def test_wrong_relations_get_a_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"relation 'x': pairs is a list of \(source, target\); got 'a b'"
    ):
        hw.Relation("x", "a b")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError,
        match=r"relation 'x', pair 1: a pair is \(source, target\), two words; got \('a', ''\)",
    ):
        hw.Relation("x", [("a", "b"), ("a", "")])
    with pytest.raises(
        ValueError, match="of the 1 pairs there is none whose two words are single tokens"
    ):
        hw.score(made("llama"), hw.Relation("x", [("cat", "dog")]), "relations", progress=False)
    with pytest.raises(ValueError, match="predicts masked ones"):
        hw.score(tiny.model("bert"), following(), "relations", progress=False)


def test_a_relation_is_a_task_too() -> None:
    some = following().sample(5)
    assert isinstance(some, hw.Relation) and len(some) == 5
    assert hw.score(made("llama"), some, "gradient", progress=False).values("following").shape == (
        5,
        3,
        4,
    )
    plain = hw.Task("plain", [("a", " b"), ("c", " d")])
    assert hw.score(made("llama"), plain, "relations", progress=False).runs("plain") == (
        "a → b",
        "c → d",
    )


# ---- the suite ----

PUBLISHED = {
    "Algorithmic": "copying, name copying, word to first letter, word to last letter, "
    "year to following",
    "Knowledge": "country to capital, country to language, object to superclass, "
    "product by company, work to location",
    "Linguistic": "word to antonym, adjective to comparative, adjective to superlative, "
    "noun to pronoun, verb to past tense, word to compound, "
    "word to homophone, word to synonym",
    "Translation": "English to French, English to Spanish",
}


def test_the_suite_has_the_twenty_published_relations() -> None:
    suite = hw.tasks.suite("relations")
    assert {
        c: ", ".join(r.name for r in suite if r.category == c) for c in PUBLISHED
    } == PUBLISHED and len(suite) == 20
    for relation in suite:
        assert isinstance(relation, hw.Relation) and len(relation) >= 50, relation
        assert max(Counter(relation.pairs).values()) == 1, relation
        assert all(word.isalnum() for pair in relation.pairs for word in pair), relation
        if relation.name not in ("copying", "name copying"):
            assert not [pair for pair in relation.pairs if pair[0] == pair[1]], relation


def test_relations_that_are_rules_are_generated() -> None:
    by_name = {r.name: r.pairs for r in hw.tasks.suite("relations")}
    words, names = ([source for source, _ in by_name[name]] for name in ("copying", "name copying"))
    years = [int(year) for year, _ in by_name["year to following"]]
    assert years == list(range(years[0], years[-1] + 1))
    for name, pairs in generated(words, names, years).items():
        assert list(by_name[name]) == pairs


def test_enough_pairs_are_left_for_the_embedded_model() -> None:
    """All but years, which it reads digit by digit."""
    model, suite = hw.load(), hw.tasks.suite("relations")
    left = {task.name: len(task.examples) for task in encode(suite, model, Relations(), 0)}
    assert {r.name for r in suite} - set(left) == {"year to following"}
    assert min(left.values()) >= 30, left


# ---- how they are shown ----


def test_relations_start_by_category_at_the_published_threshold() -> None:
    relations = [following(), hw.Relation("copy", copying().pairs, "Other")]
    scores = hw.score(made("llama"), relations, "relations", progress=False)
    explorer = hw.explore(scores)
    assert (explorer.view, explorer.threshold, explorer.rule) == ("categories", 0.15, "value")
    assert (hw.explore(scores, view="tasks").view, hw.explore(scores, threshold=0.3).threshold) == (
        "tasks",
        0.3,
    )
    assert hw.explore(scores, rule="top").threshold == 10  # 0.15 is no number of heads
    assert not scores.by_size
    alone = hw.explore(scores.select("copy"))
    assert alone.threshold == 0.15
    assert (
        hw.explore(hw.score(made("llama"), following(), "relations", progress=False)).view
        == "tasks"
    )


def test_suppression_is_kept_in_the_same_file(tmp_path: Any) -> None:
    scores = hw.score(made("llama"), following(), "relations", progress=False)
    back = hw.open(scores.save(tmp_path / "relations.safetensors"))
    assert "suppress" in str(back.aspects["suppression"].record.meaning)
    np.testing.assert_array_equal(
        back.aspects["suppression"].values("following"),
        scores.aspects["suppression"].values("following"),
    )
    assert back.meta == scores.meta and not back.partial
