"""The command that describes a run: info."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ecs_fluid.api.stored import status_of
from ecs_fluid.arguments import refuse_unused
from ecs_fluid.cli import app, out
from ecs_fluid.errors import FluidError, StorageError
from ecs_fluid.io.checkpoint import list_checkpoints
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.validation_errors import nearest


@app.command
def info(folder: Path, /, *, plot: Path | None = None, diagnostics: str | None = None) -> None:
    """Show what a run is, how far it got, where its time went and what it conserved.

    Args:
        folder: folder of a run, such as runs/vortex_ring
        plot: draw the diagnostics over time to this .png; needs matplotlib, no OpenGL
        diagnostics: what to draw, at most nine: energy,impulse.z; default the usual ones
    """
    if plot is not None:
        from ecs_fluid.api.pictures import check_picture

        check_picture(plot, "--plot")
    else:
        refuse_unused({"--diagnostics": diagnostics is not None}, "without a picture; add --plot file.png")
    run = RunFolder.open(folder)
    about, status = run.read_info(), status_of(run)
    stored = run.read_trajectory()
    # run.json of a run under way, or killed, is as old as its last checkpoint; frames may be newer.
    ticks = max(about.get("ticks", 0), int(stored.ticks[-1]) if len(stored) else 0)
    simulated = max(about.get("time", 0.0), float(stored.times[-1]) if len(stored) else 0.0)
    if list_checkpoints(run.checkpoints):
        how = f"continue with: ecs-fluid resume {folder}"
    else:
        again = f"ecs-fluid run {run.path / 'world.toml'}"
        how = f"without a checkpoint, so it cannot continue; from the start: {again}"
    lines = {
        "world": about.get("world"),
        "command": about.get("command"),
        "status": f"killed; {how}" if status == "killed" else status,
        "ticks": f"{ticks} of {about.get('plan', {}).get('last_tick', '?')}",
        "simulated time": f"{simulated:.6g} s",
        "wall time": f"{about.get('wall_seconds', 0.0):.1f} s",
        "speed": f"{about.get('ticks_per_second', 0.0):.1f} ticks/s in the last stretch",
        "stored frames": str(len(stored)),
        "particles": ", ".join(f"{name} {n:,}" for name, n in about.get("particles", {}).items()),
        "state hash": about.get("state_hash"),
    }
    former: dict[str, str] = {}
    for stretch in about["stretches"]:
        now = {**stretch["computed_with"], **stretch.get("code", {})}
        new = ", ".join(f"{key} {value}" for key, value in now.items() if former.get(key) != value)
        changed = ", ".join(stretch.get("settings", ()))
        new = ", ".join(filter(None, (new, changed)))
        lines[f"from tick {stretch['first_tick']}"] = f"{stretch['started']}, {new or 'as before'}"
        former = now
    for key, value in lines.items():
        out.print(f"{key:<15} {value}")
    _systems(about.get("systems", {}))
    _records(run.records())
    if plot is not None:
        _plot(run, plot, diagnostics)
        out.print(f"wrote {plot}")


def _plot(run: RunFolder, target: Path, diagnostics: str | None) -> None:
    """Draw what was recorded, as for a sweep of one member."""
    from ecs_fluid.sweeps import plot
    from ecs_fluid.sweeps.member import Member

    records = run.records()
    known = list(dict.fromkeys(name for record in records for name in record))
    if not known:
        raise StorageError(
            f"{run.path} has recorded no diagnostics; every tenth tick is recorded, unless [fluid] "
            "diagnostics = { every = 5 } or the like says otherwise"
        )
    vectors = dict.fromkeys(name for record in records for name in record if isinstance(record[name], list))
    parts = [f"{name}.{axis}" for name in vectors for axis in "xyz"]
    names = [name.strip() for name in diagnostics.split(",")] if diagnostics is not None else None
    for name in names or ():
        if name not in (*known, *parts) or name in ("tick", "time"):
            raise StorageError(
                f"--diagnostics {name}: {run.path} did not record that; {nearest(name, [*known, *parts])}"
            )
    if len(names or ()) > plot.MOST_PANELS:
        raise FluidError(f"--diagnostics names {len(names or ())}; at most {plot.MOST_PANELS} can be drawn")
    usual = [name for name in dict.fromkeys((*plot.USUAL, *known)) if name not in ("tick", "time")]
    if not plot.plot(target, [Member(run.path.name, {}, run.path)], names, usual):
        raise StorageError(f"{run.path} has recorded no numbers that can be drawn over time")


def _systems(systems: dict[str, Any]) -> None:
    total = sum(entry["seconds"] for entry in systems.values())
    if not total:
        return
    table = Table("system", "calls", "ms per call", "share", title="time by system", title_justify="left")
    for name, entry in systems.items():
        each = 1e3 * entry["seconds"] / max(entry["calls"], 1)
        share = f"{100 * entry['seconds'] / total:.1f} %"
        table.add_row(name, str(entry["calls"]), f"{each:.3f}", share)
    out.print(table)


def _records(records: list[dict[str, Any]]) -> None:
    if not records:
        return
    names = ["strength", "impulse", "angular_impulse", "energy", "enstrophy", "overlap", "dt_grad_u"]
    names += [name for name in records[-1] if name.startswith("force_by_")]
    unasked = ("liquid_center",) if records[-1].get("liquid_work") else ("liquid_center", "liquid_work")
    liquid = [name for name in records[-1] if name.startswith("liquid_") and name not in unasked]
    if not liquid or any(record.get("vortons") for record in records):
        _table(records, "diagnostics", names)
    if liquid:
        _table(records, "liquid", liquid)
    errors = [record.get("velocity_error") for record in records]
    known = [error for error in errors if isinstance(error, int | float)]
    if known:
        out.print(f"{'velocity error':<15} {100.0 * max(known):.2g} % at most, RMS at a sample")
    from ecs_fluid.sweeps.plan import DIAGNOSTICS

    others = [name for name in records[-1] if name not in (*DIAGNOSTICS, "tick", "time")]
    if others:
        values = ", ".join(f"{name} {_text(records[-1][name])}" for name in others)
        out.print(f"{'other records':<15} {values} (last values)")


def _table(records: list[dict[str, Any]], title: str, names: list[str]) -> None:
    """Print up to nine records, vectors by their magnitude: three numbers each would not fit into a line."""
    vectors = [name for name in names if isinstance(records[-1].get(name), list)]
    heads = {name: name.removeprefix("liquid_").removesuffix("_impulse") for name in names}
    titles = (f"|{head}|" if name in vectors else head for name, head in heads.items())
    table = Table("tick", *titles, title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    step = max(1, (len(records) - 1) // 8)
    chosen = records[::step] if (len(records) - 1) % step == 0 else [*records[::step], records[-1]]
    for record in chosen:
        table.add_row(*(_text(record.get(name)) for name in ("tick", *names)))
    out.print(table, width=max(out.width, 110))  # numbers of a diverged run are long


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, int | float) for part in value):
        return f"{math.hypot(*value):.4g}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)[:40]  # a damaged file may hold anything
