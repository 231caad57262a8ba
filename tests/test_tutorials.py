"""Every tutorial runs in a process of its own, prints what its page says, and is its notebook."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from docs.generator import tutorials

SITE = Path(__file__).parents[1] / "properdocs.yml"


CALL_OTHERS = [name for name in tutorials.NAMES if tutorials.left_out(name, others=False)]


def check_pictures(name: str, folder: Path) -> None:
    """Those that were made show what those of the page do: places of 20 pixels are as bright there."""
    from PIL import Image

    made = [
        part.name
        for part in tutorials.read(name)
        if part.kind == "picture" and (folder / part.name).is_file()
    ]
    assert made
    for picture in made:
        image, shown = Image.open(folder / picture), Image.open(tutorials.FOLDER / name / picture)
        assert image.size == shown.size, picture
        coarse = (image.width // 20, image.height // 20)
        ours, told = (
            np.asarray(whole.convert("L").resize(coarse, Image.Resampling.BOX), dtype=float).ravel()
            for whole in (image, shown)
        )
        # Repeated ones keep 0.995; the floor of blender/rendered.png without the smoke above it has 0.93.
        assert np.corrcoef(ours, told)[0, 1] > 0.97, picture


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_it_runs_as_the_page_says(name: str, tmp_path: Path) -> None:
    """Its assertions hold, it prints what the page shows, warns of nothing, and makes its pictures."""
    assert tutorials.trouble(name, tmp_path) == ""
    check_pictures(name, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CALL_OTHERS)
def test_it_runs_with_blender_and_paraview(name: str, tmp_path: Path) -> None:
    if missing := tutorials.left_out(name, others=True):
        pytest.skip(f"not on this machine: {missing[0]}")
    assert tutorials.trouble(name, tmp_path, others=True) == ""
    check_pictures(name, tmp_path)
    assert all((tmp_path / part.name).is_file() for part in tutorials.read(name) if part.kind == "picture")


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_the_notebook_is_the_page(name: str) -> None:
    """Written by the generator from the page as it is now; the page tells of it."""
    stored = (tutorials.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert stored == tutorials.notebook(name), f"run python -m docs.generator.tutorials {name}"
    assert f"({name}.ipynb)" in (tutorials.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    program = [part.text for part in tutorials.read(name) if part.kind == "python"]
    cells = [
        "".join(cell["source"]) + "\n" for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code"
    ]
    assert [cell for cell in cells if cell in program] == program


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_the_pictures_are_those_of_the_page(name: str) -> None:
    """No picture is left over, and none is large."""
    shown = {part.name for part in tutorials.read(name) if part.kind == "picture"}
    there = {path.name for path in (tutorials.FOLDER / name).iterdir()}
    assert there == shown
    assert all((tutorials.FOLDER / name / picture).stat().st_size < tutorials.LARGEST for picture in shown)


def test_the_list_and_the_site_have_them_all_in_one_order() -> None:
    listed = re.findall(r"\]\((\w+)\.md\)", (tutorials.FOLDER / "index.md").read_text(encoding="utf-8"))
    in_site = re.findall(r"tutorials/(\w+)\.md", SITE.read_text(encoding="utf-8"))
    assert listed == in_site[1:] and sorted(listed) == tutorials.NAMES


PAGE = """\
# A page

```python
print(6 * 7)
```

```text
{answer}
```

`note.txt`:

```toml
a = 1
```

```python
print(open("note.txt").read(), end="")
```

```text
a = 1
```
"""


def test_a_wrong_answer_and_a_missing_picture_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tutorials, "FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(answer=42), encoding="utf-8")
    tutorials.play("page")
    page.write_text(PAGE.format(answer=43), encoding="utf-8")
    with pytest.raises(AssertionError, match="the page says:\n43\nprinted was:\n42"):
        tutorials.play("page")
    page.write_text(PAGE.format(answer=42) + "\n![Nothing](page/nothing.png)\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"nothing\.png was not made"):
        tutorials.play("page")
