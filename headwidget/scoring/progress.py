"""The progress bar of scoring and of interventions."""

from __future__ import annotations


class Progress:
    """A tqdm bar that names method and task; ``unit`` is what is counted, such as prompts."""

    def __init__(self, total: float, unit: str, method: str, shown: bool) -> None:
        from tqdm.auto import tqdm

        self.method = method
        self.bar = tqdm(
            total=total,
            desc=method,
            disable=not shown,
            bar_format=f"{{l_bar}}{{bar}}| {{n:.0f}}/{{total}} {unit} [{{elapsed}}<{{remaining}}]",
        )

    def note(self, task: str, steps: float) -> None:
        """Show ``task`` and count ``steps``; without steps the new title shows at once."""
        self.bar.set_description(f"{self.method} · {task}", refresh=not steps)
        # thirds of a prompt do not always sum to one, and a bar below its total ends red
        done = self.bar.n + steps
        whole = round(done)
        done = min(whole if abs(done - whole) < 1e-6 else done, self.bar.total)
        self.bar.update(done - self.bar.n)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()
