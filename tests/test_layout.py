"""Packages on disk, links and the list that builds and installs read must be the same."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
LINKED = ("components", "systems", "viz", "worlds")


def packages_below(folder: Path, name: str) -> set[str]:
    """Import names of the packages in a folder, links not followed."""
    found = {name} if (folder / "__init__.py").is_file() else set()
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink() and child.name.isidentifier():
            found |= packages_below(child, f"{name}.{child.name}")
    return {package for package in found if "__pycache__" not in package}


def on_disk() -> set[str]:
    found = packages_below(ROOT / "ecs_fluid", "ecs_fluid")
    for name in LINKED:
        found |= packages_below(ROOT / name, f"ecs_fluid.{name}")
    return found


def test_the_list_of_packages_is_what_is_on_disk() -> None:
    """A package missing from the list vanishes from the wheel without an error."""
    listed = SETUPTOOLS["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == on_disk()


def test_the_architecture_page_names_every_file_of_the_engine() -> None:
    """Each once, and none that is gone."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## The engine, file by file")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+\.py)`", section)
    assert sorted(named) == sorted(path.name for path in (ROOT / "ecs_fluid").glob("*.py"))


def test_the_architecture_page_names_every_file_of_the_systems() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Systems, by subject")[2].partition("\n## ")[0]
    files = {path.name for path in (ROOT / "systems").rglob("*.py")} - {"__init__.py"}
    # The engine's `row_changes.py` is named beside the systems that use it.
    assert set(re.findall(r"`(?:[\w/]*/)?(\w+\.py)`", section)) == files | {"row_changes.py"}


def test_the_architecture_page_names_every_folder_of_kernels() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Kernels")[2].partition("\n## ")[0]
    folders = (path.parent.name for path in (ROOT / "ecs_fluid" / "kernels").glob("*/__init__.py"))
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.M)) == sorted(folders)


def test_every_folder_with_code_is_a_package() -> None:
    folders = {ROOT / "ecs_fluid", *(ROOT / name for name in LINKED)}
    for folder in list(folders):
        folders |= {path.parent for path in folder.rglob("*.py") if "__pycache__" not in path.parts}
    for folder in folders:
        assert (folder / "__init__.py").is_file(), folder


def test_links_and_package_dirs_agree() -> None:
    links = {path.name: os.readlink(path) for path in (ROOT / "ecs_fluid").iterdir() if path.is_symlink()}
    # Relative, so that a clone at any place works.
    assert links == {name: f"../{name}" for name in LINKED}
    assert SETUPTOOLS["package-dir"] == {
        "ecs_fluid": "ecs_fluid",
        **{f"ecs_fluid.{name}": name for name in LINKED},
    }
    for name in LINKED:
        assert (ROOT / "ecs_fluid" / name).resolve() == ROOT / name


def test_data_files_are_in_the_wheel() -> None:
    """Automatic inclusion is off, so what is no .py file must be listed by pattern."""
    assert SETUPTOOLS["include-package-data"] is False
    patterns = SETUPTOOLS["package-data"]
    for package in on_disk():
        folder = ROOT / package.replace("ecs_fluid.", "", 1) if package != "ecs_fluid" else ROOT / "ecs_fluid"
        if not folder.is_dir():
            folder = ROOT / Path(*package.split("."))
        for path in folder.iterdir():
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                assert any(path.match(pattern) for pattern in patterns.get(package, ())), path
    for package, listed in patterns.items():
        home = ROOT / "ecs_fluid" if package == "ecs_fluid" else ROOT / Path(*package.split("."))
        for pattern in listed:
            assert list(home.glob(pattern)), f"{package}: {pattern} matches nothing"
