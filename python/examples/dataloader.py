"""Trains on the rows of a table, which the workers of torch's DataLoader read from the archive.

    python dataloader.py [ARCHIVE]

Each worker gets the path of the archive, not the rows, and maps the file itself. A batch is one call, which reads
only the rows and columns that it needs.
"""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import tenarc


class Rows(Dataset):
    """Some columns of a table as a dataset. It is pickled as a path."""

    def __init__(self, path: str, name: str, columns: list[str]) -> None:
        self.table = tenarc.open(path).table(name)
        self.columns = columns

    def __len__(self) -> int:
        return len(self.table)

    def __getitems__(self, rows: list[int]) -> dict[str, torch.Tensor]:
        """A batch: DataLoader calls this with the numbers of all its rows."""
        batch = self.table.take(rows)
        return {name: torch.from_numpy(np.ascontiguousarray(batch.column(name))) for name in self.columns}


def as_it_is(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The batch is made already. Processes that are spawned find a function of the module, but no lambda."""
    return batch


def write(path: str) -> None:
    """Some days of measurements: each is a value, and all of them are one table."""
    random = np.random.default_rng(0)
    with open(path, "wb") as file, tenarc.Writer(file) as out:
        for _ in range(4):
            inputs = random.normal(size=(500, 3)).astype("f4")
            target = inputs @ np.array([1.0, -2.0, 0.5], "f4") + 3
            rows = np.arange(500)
            out.save(tenarc.Table({"id": rows, "inputs": inputs, "target": target}), name="days")


def main(path: str) -> None:
    write(path)
    loader = DataLoader(
        Rows(path, "days", ["id", "inputs", "target"]),
        batch_size=100,
        shuffle=True,
        num_workers=2,
        collate_fn=as_it_is,
        # A process that was forked would share the state of torch's threads.
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for epoch in range(6):
        total, seen = 0.0, 0
        for batch in loader:
            loss = (model(batch["inputs"])[:, 0] - batch["target"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, seen = total + loss.item(), seen + len(batch["id"])
        print(f"epoch {epoch}: {seen} rows, loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "days.tenarc")
