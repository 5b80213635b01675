"""The tensor of head scores and what is known of it. Needs no torch."""

from __future__ import annotations

from headwidget.scores.head_scores import HeadScores as HeadScores
