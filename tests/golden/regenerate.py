"""Record the golden values anew: `python -m tests.golden.regenerate`, and say why in the commit message."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.golden.recorded import EXPECTED, record


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = record(Path(folder))
    EXPECTED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {EXPECTED.name}: {found['rows']} rows, losses {found['losses']}")


if __name__ == "__main__":
    main()
