"""Rebuild the lab's base model: tokenizer, pretraining, Hugging Face folder, checksums."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path

from autosft.lab.base import ASSET_DIR, write_checksums
from autosft.lab.pretraining import PretrainSettings, pretrain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ASSET_DIR, help="folder to write (default: the shipped one)"
    )
    for field in fields(PretrainSettings):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default
        )
    args = vars(parser.parse_args())
    out = args.pop("out")
    measured = pretrain(
        out,
        PretrainSettings(**args),
        on_step=lambda step, steps, loss, wall_s: print(
            f"{step}/{steps} loss {loss:.3f} {wall_s:.0f} s", flush=True
        ),
    )
    write_checksums(out)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
