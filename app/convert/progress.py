"""What a long job yields: each value is also the place where the job can be stopped."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`done` of `total` bytes; `text` says what is being done, for a person."""

    done: int
    total: int
    text: str

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0
