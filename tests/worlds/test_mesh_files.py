"""Mesh files of worlds: every format gives the same hull, and a forged file gives one sentence."""

from __future__ import annotations

import base64
import struct
import subprocess
import sys
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidWarning, RecipeError
from ecs_fluid.worlds import vtk_files
from ecs_fluid.worlds.hulls import hull_of_mesh, hull_of_vertices, hulls_of_mesh
from ecs_fluid.worlds.meshes import check_closed, read_mesh
from ecs_fluid.worlds.vtk_child import is_cut_short, limit
from ecs_fluid.worlds.vtk_files import MESHES

SIZES = np.array([1.0, 0.5, 0.25])


def box() -> object:
    """A box of 1 m x 1/2 m x 1/4 m away from the origin; all its corners are exact in single precision."""
    pyvista = pytest.importorskip("pyvista")
    return pyvista.Box((1.0, 2.0, 0.0, 0.5, -0.25, 0.0)).triangulate()


@pytest.mark.parametrize("ending", MESHES)
@pytest.mark.parametrize("binary", [True, False])
def test_a_box_of_every_format(tmp_path: Path, ending: str, binary: bool) -> None:
    """Volume 1/8 m^3, centre and six faces, as written by VTK. Inertia per density: m (b^2 + c^2) / 12."""
    path, mesh = tmp_path / f"box{ending}", box()
    if ending == ".vtu":
        mesh = mesh.cast_to_unstructured_grid()  # type: ignore[attr-defined]
    mesh.save(path, binary=binary)  # type: ignore[attr-defined]
    hull = hull_of_mesh(str(path))
    np.testing.assert_allclose(hull.volume, 0.125, rtol=1e-14)
    np.testing.assert_allclose(hull.center, [1.5, 0.25, -0.125], rtol=1e-14)
    expected = 0.125 * np.diag((SIZES**2).sum() - SIZES**2) / 12
    np.testing.assert_allclose(hull.inertia, expected, atol=1e-16)
    assert len(hull.table.planes) == 6


@pytest.mark.parametrize("ending", [".vtp", ".vtk"])
def test_strips_of_triangles(tmp_path: Path, ending: str) -> None:
    """A cylinder whose side and ends VTK lays in strips: the triangles, senses and volume of the faces."""
    pyvista = pytest.importorskip("pyvista")
    mesh = pyvista.Cylinder(radius=1.0, height=2.0, resolution=12).triangulate().clean()
    strips = mesh.strip()
    assert strips.n_strips
    strips.save(tmp_path / f"strips{ending}")
    mesh.save(tmp_path / f"faces{ending}")
    one, other = (read_mesh(str(tmp_path / f"{name}{ending}"), 1.0) for name in ("strips", "faces"))
    np.testing.assert_allclose(one.volume, other.volume, rtol=1e-12)
    assert np.isclose(one.volume, 2 * 6 * np.sin(np.pi / 6), rtol=1e-6)
    assert len(one.triangles) == len(other.triangles)
    check_closed(one, "strips")


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_a_ply_that_is_cut_short_is_refused_wherever_it_is_cut(tmp_path: Path, form: str) -> None:
    """VTK went on in memory that it had not written, and took half of a mesh; or the process ended.

    A pyramid on a square: faces of three and of four corners, with a colour.
    """
    x = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 1)]
    faces = [(3, 2, 1, 0), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
    head = f"ply\nformat {form} 1.0\ncomment a pyramid\nelement vertex 5\n{XYZ.decode()}element face 5\n"
    head += "property uchar red\nproperty list uchar int vertex_indices\nend_header\n"
    if form == "ascii":
        rows = [*x, *((200, len(face), *face) for face in faces)]
        body = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    else:
        way = ">" if "big" in form else "<"
        body = b"".join(struct.pack(way + "3f", *point) for point in x)
        body += b"".join(struct.pack(f"{way}BB{len(f)}i", 200, len(f), *f) for f in faces)
    content, path = head.encode() + body, tmp_path / "pyramid.ply"
    path.write_bytes(content)
    assert read_mesh(str(path), 1.0).volume == pytest.approx(1 / 3)
    for size in range(len(content) - (form == "ascii")):  # the last line may do without its end
        path.write_bytes(content[:size])
        assert is_cut_short(str(path)), size
    with pytest.raises(RecipeError, match=r"is not a readable \.ply file: it is cut short"):
        read_mesh(str(path), 1.0)


@pytest.mark.parametrize("binary", [True, False])
def test_an_stl_that_is_cut_short_is_refused_wherever_it_is_cut(tmp_path: Path, binary: bool) -> None:
    """What ended with a whole triangle was read; a text of 84 + 50 n bytes, as n triangles of its letters."""
    path = tmp_path / "box.stl"
    box().save(path, binary=binary)  # type: ignore[attr-defined]
    content = path.read_bytes()
    assert not is_cut_short(str(path))
    for size in range(84, len(content) - 20):
        path.write_bytes(content[:size])
        assert is_cut_short(str(path)), size
    with pytest.raises(RecipeError, match=r"is not a readable \.stl file: it is cut short"):
        read_mesh(str(path), 1.0)


XYZ = b"property float x\nproperty float y\nproperty float z\n"
PLY = b"ply\nformat %s 1.0\nelement vertex %d\n" + XYZ + b"end_header\n"
FORGED: dict[str, tuple[bytes, str]] = {
    "other.vtm": (b"<VTKFile/>", r"ending in \.stl"),
    "many.ply": (PLY % (b"ascii", 99_999_999_999), "is not a readable"),
    "short.ply": (PLY % (b"binary_little_endian", 9_000_000) + bytes(36), "is not a readable"),
    "words.ply": (PLY % (b"ascii", 1) + b"a b c\n", "is not a readable|at least 4"),
    "none.ply": (b"ply\nformat ascii 1.0\nend_header\n", "is not a readable"),
    "many.stl": (bytes(80) + struct.pack("<I", 2**32 - 1), "is not a readable"),
    "empty.stl": (b"", "is not a readable"),
    "none.obj": (b"f 1 2 3\n", "is not a readable"),
    "few.obj": (b"v 1 2 3\nv 1 2 4\n", "at least 4"),
    "face.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 999999\n", "corner that is no point of it"),
    "nan.obj": (b"v 1 2 nan\nv 1 2 3\nv 1 2 3\nv 1 2 4\n", "is not a readable|at least 4"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_plain_files_give_a_sentence(tmp_path: Path, name: str) -> None:
    content, words = FORGED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecipeError, match=words) as caught:
        hull_of_mesh(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def forged_xml(blocks: int, block: int, packed: bytes, points: int = 4) -> bytes:
    """A .vtp whose compressed points claim `blocks` blocks of `block` bytes, of which one is there."""
    head = struct.pack("<QQQQ", blocks, block, 0, len(packed))
    data = base64.b64encode(head).decode() + base64.b64encode(packed).decode()
    return f"""<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64"
 compressor="vtkZLibDataCompressor"><PolyData><Piece NumberOfPoints="{points}" NumberOfVerts="0">
<Points><DataArray type="Float32" NumberOfComponents="3" format="binary">{data}</DataArray></Points>
</Piece></PolyData></VTKFile>""".encode()


SMALL = zlib.compress(np.arange(12, dtype=np.float32).tobytes())
FORGED_VTK: dict[str, bytes] = {
    "block.vtp": forged_xml(1, 2**62, SMALL),
    "blocks.vtp": forged_xml(2**60, 48, SMALL),
    "points.vtp": forged_xml(1, 48, SMALL, 2**40),
    "torn.vtp": forged_xml(1, 48, SMALL)[:300],
    "bomb.vtp": b"",  # made when it is asked for: to pack 256 MiB takes longer than to read all tests
    "none.vtp": b"<VTKFile type='PolyData'><PolyData/></VTKFile>",
    "points.vtk": b"# vtk DataFile Version 3.0\na\nBINARY\nDATASET POLYDATA\nPOINTS 999999999999 double\n",
    "cells.vtk": b"# vtk DataFile Version 3.0\na\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\n"
    b"CELLS 99999999999 999999999999\n",
    "words.vtu": b"no XML at all",
}


@pytest.mark.parametrize("name", FORGED_VTK)
def test_forged_vtk_files_do_not_end_the_process(tmp_path: Path, name: str) -> None:
    """VTK 9.7.2 ends the process at four of them, if it is read there: this test would not come back."""
    content = FORGED_VTK[name] or forged_xml(1, 2**32, zlib.compress(bytes(2**28), 1), 2**31)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecipeError, match="is not a readable") as caught:
        hull_of_mesh(str(tmp_path / name))
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_reading_may_not_take_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that sleeps is ended when its time is up."""
    (tmp_path / "child.py").write_text("import time; time.sleep(60)")
    (tmp_path / "a.vtp").write_bytes(b"x")
    monkeypatch.setattr(vtk_files, "CHILD", tmp_path / "child.py")
    monkeypatch.setattr(vtk_files, "SECONDS", 0.2)
    started = time.monotonic()
    with pytest.raises(RecipeError, match=r"longer to read than the 0 s"):
        hull_of_mesh(str(tmp_path / "a.vtp"))
    assert time.monotonic() - started < 30


def test_the_hull_is_that_of_the_points(tmp_path: Path) -> None:
    """Through a file and directly, bit for bit: points of a file in single precision keep their bits."""
    x = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)
    (tmp_path / "a.obj").write_text("".join(f"v {a!r} {b!r} {c!r}\n" for a, b, c in x.tolist()))
    through, direct = hull_of_mesh(str(tmp_path / "a.obj")), hull_of_vertices(x)
    assert through.volume == direct.volume
    np.testing.assert_array_equal(through.table.planes, direct.table.planes)


@pytest.mark.parametrize("ending", [".stl", ".vtu"])
def test_a_mesh_that_its_hull_fills_up_is_told(tmp_path: Path, ending: str) -> None:
    """Two boxes of 1 m^3 with 2 m between them: their hull has 4 m^3."""
    pyvista = pytest.importorskip("pyvista")
    first, second = pyvista.Box((0, 1, 0, 1, 0, 1)), pyvista.Box((3, 4, 0, 1, 0, 1))
    mesh, path = (first + second).triangulate(), tmp_path / f"two{ending}"
    (mesh.cast_to_unstructured_grid() if ending == ".vtu" else mesh).save(path)
    with pytest.warns(FluidWarning, match=r"faces enclose 2 m\^3, and the body is its convex hull of 4 m\^3"):
        hull_of_mesh(str(path))
    first.triangulate().flip_faces().save(tmp_path / "inside_out.stl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isclose(hull_of_mesh(str(tmp_path / "inside_out.stl")).volume, 1.0, rtol=1e-6)


def in_pieces(path: Path, *pieces: Any) -> str:
    """Meshes one after the other in a file; PyVista writes .stl and .obj with some faces turned around."""
    whole = sum(pieces[1:], start=pieces[0])
    if path.suffix == ".vtp":
        whole.save(path)
    elif path.suffix == ".obj":
        lines = ["v {} {} {}".format(*point) for point in whole.points.tolist()]
        lines += ["f {} {} {} {}".format(*(face + 1)) for face in whole.regular_faces]
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
    else:
        whole = whole.triangulate()
        vertices = [
            "vertex {} {} {}\n".format(*p) for face in whole.regular_faces for p in whole.points[face]
        ]
        facets = ["".join(vertices[k : k + 3]) for k in range(0, len(vertices), 3)]
        text = "".join(f"facet normal 0 0 0\nouter loop\n{one}endloop\nendfacet\n" for one in facets)
        path.write_text(f"solid parts\n{text}endsolid parts\n", encoding="ascii")
    return str(path)


@pytest.mark.parametrize("ending", [".stl", ".obj", ".vtp"])
def test_every_closed_surface_of_a_file_is_a_part(tmp_path: Path, ending: str) -> None:
    """A box cut in three that share faces, edges and corners: 1 x 1 x 1, 2 x 1 x 1, 1 x 1 x 3 m^3, doubled.

    Where surfaces share points, as all do in an STL, only their order tells them apart. Faces have four
    corners where the format allows that.
    """
    pyvista = pytest.importorskip("pyvista")
    boxes = (0, 1, 0, 1, 0, 1), (1, 3, 0, 1, 0, 1), (0, 1, 0, 1, 1, 4)
    file = in_pieces(tmp_path / f"cut{ending}", *(pyvista.Box(box) for box in boxes))
    hulls = hulls_of_mesh(file, 2.0, 3)
    np.testing.assert_allclose([hull.volume for hull in hulls], [8.0, 16.0, 24.0], rtol=1e-12)
    centers = [(1, 1, 1), (4, 1, 1), (1, 1, 5)]
    np.testing.assert_allclose([hull.center for hull in hulls], centers, rtol=1e-12)
    with pytest.raises(RecipeError, match="has 3 closed surfaces; at most 2 are allowed"):
        hulls_of_mesh(file, 1.0, 2)


def test_a_body_of_a_file_is_that_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mass, centre, inertia and motion, with a further part that has a density of its own."""
    pyvista = pytest.importorskip("pyvista")
    in_pieces(tmp_path / "two.vtp", pyvista.Box((0, 1, 0, 1, 0, 1)), pyvista.Box((1, 3, 0, 1, 0, 1)))
    monkeypatch.chdir(tmp_path)

    def part(size: list[float], center: list[float], **more: float) -> dict[str, object]:
        return {"shape": {"shape": "box", "size": size}, "center": center, **more}

    foot = part([1.0, 1.0, 0.5], [0.5, 0.5, -0.25], density=3000.0)
    boxes = [part([1.0, 1.0, 1.0], [0.5, 0.5, 0.5]), part([2.0, 1.0, 1.0], [2.0, 0.5, 0.5])]
    found = []
    for shape in ({"parts": [foot], "file": "two.vtp"}, {"parts": [foot, *boxes]}):
        body = {"kind": "body", "name": "b", "shape": {"shape": "compound", **shape}, "density": 500.0}
        spin = {"angular_velocity": [1.0, 2.0, 0.5], "velocity": [0.5, 0.0, 0.1]}
        world = ef.load({"world": {"dt": 0.01, "precision": "double"}, "entity": [{**body, **spin}]})
        world.step(10)
        found.append(
            [world["b"][ef.Pose].x, world["b"][ef.RigidMotion].angular_velocity, world["b"][ef.Body].mass]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert world["b"][ef.Body].mass.sum() == pytest.approx(1500.0 + 500.0 * 3)


def test_surfaces_that_are_no_parts_are_told(tmp_path: Path) -> None:
    """One that does not close, a hollow, points, one that is flat, one that is not convex (3 of 3.5)."""
    pyvista = pytest.importorskip("pyvista")
    box, other = pyvista.Box((0, 1, 0, 1, 0, 1)), pyvista.Box((2, 4, 0, 1, 0, 1)).triangulate()
    open_box = in_pieces(
        tmp_path / "open.vtp",
        box,
        other.extract_cells(range(10)).extract_surface(algorithm="dataset_surface"),
    )
    with pytest.raises(RecipeError, match="1 of them are closed, and its last 10 triangles do not close"):
        hulls_of_mesh(open_box, 1.0, 9)
    hollow = pyvista.Box((0.2, 0.8, 0.2, 0.8, 0.2, 0.8)).triangulate().flip_faces()
    with pytest.raises(RecipeError, match="closed surface 1 faces inward, and others do not"):
        hulls_of_mesh(in_pieces(tmp_path / "hollow.vtp", box.triangulate(), hollow), 1.0, 9)
    far = in_pieces(tmp_path / "far.stl", box.translate((1e9, 1e9, 1e9)))
    with pytest.raises(RecipeError, match="it has no faces, or all of them have corners in one place"):
        hulls_of_mesh(far, 1.0, 9)
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    flat = pyvista.PolyData(square, [3, 0, 1, 2, 3, 0, 2, 3, 3, 2, 1, 0, 3, 3, 2, 0])
    with pytest.raises(RecipeError, match=r"closed surface 1: the 12 points of a polytope lie in a plane"):
        hulls_of_mesh(in_pieces(tmp_path / "flat.vtp", box.triangulate(), flat), 1.0, 9)
    outline = np.array([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [1, 1, 0], [1, 2, 0], [0, 2, 0]])
    ends = [6, *range(5, -1, -1), 6, *range(6, 12)]
    sides = [number for k in range(6) for number in (4, k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6)]
    bent = pyvista.PolyData(np.concatenate([outline, outline + np.array([0.0, 0, 1])]), ends + sides)
    with pytest.warns(
        FluidWarning, match=r"1 of its 2 closed surfaces are not convex.* number 1.* 3\.5 m\^3"
    ):
        hulls_of_mesh(in_pieces(tmp_path / "bent.vtp", box.triangulate(), bent), 1.0, 9)


@pytest.mark.parametrize(("size", "code"), [(1.0, 0), (1e20, 2)])
def test_validate_tells_a_doubt_of_what_is_valid_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: float, code: int
) -> None:
    """Two boxes, whose hull fills them up; of 1e20 m each, with an inertia that is no number."""
    pyvista = pytest.importorskip("pyvista")
    boxes = pyvista.Box((0, 1, 0, 1, 0, 1)) + pyvista.Box((3, 4, 0, 1, 0, 1))
    boxes.triangulate().scale(size).save(tmp_path / "two.stl")
    world = tmp_path / "world.toml"
    shape = '{ shape = "mesh", file = "two.stl" }'
    world.write_text(f"[[entity]]\nkind = 'body'\nname = 'a'\ndensity = 500.0\nshape = {shape}\n")
    assert main(["validate", str(world)]) == code
    printed, said = capsys.readouterr()
    assert said.startswith("error: " if code else "warning: file = 'two.stl': the mesh is not convex")
    # The hull of both is a box from 0 to (4, 1, 1), whose middle is the origin of the body's frame.
    frame = "frame  a: its shape's own origin is at (-2, -0.5, -0.5) m in its axes"
    assert (frame in printed.splitlines()) == (code == 0)
    assert said.count("the mesh is not convex") == (code == 0)
    assert said.count("error: ") == (code == 2)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e7])
def test_corners_too_coarse_for_their_polytope_are_refused(far: float) -> None:
    """Points on a ball of 1 m: in single precision at 1,000 km planes made of them enclosed 14 % more than
    their hull, at 3,000 km 26 %, and at 10,000 km there was a ValueError."""
    x = np.random.default_rng(3).normal(size=(200, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    near, there = hull_of_vertices(x), (x + far).astype(np.float32)
    if far < 1e5:
        assert np.isclose(hull_of_vertices(there).volume, near.volume, rtol=1e-4)
        return
    with pytest.raises(RecipeError, match=r"corners are accurate to 0\.\d+ m only"):
        hull_of_vertices(there)
    assert np.isclose(hull_of_vertices(x + far).volume, near.volume, rtol=1e-6)


def test_hulls_of_too_many_corners_are_refused_before_their_faces_are_made() -> None:
    """Points on a sphere are all corners; faces of 200,000 took 50 s to be found too many."""
    x = np.random.default_rng(3).normal(size=(33_000, 3))
    with pytest.raises(RecipeError, match="has 33,000 corners; at most 32,768 are allowed"):
        hull_of_vertices(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_less_memory_than_reading_may_take_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """A process under ulimit gives its child what it has, not the 2 TB that a large file might ask for."""
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n")
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9, 4 * 10**9))
from pathlib import Path
from ecs_fluid.worlds import vtk_files
vtk_files.MEMORY = 2**41
print(len(vtk_files.read_vtk(Path(sys.argv[1]), 10)["x"]))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.obj")]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.stdout == "4\n", child.stderr


def test_limits_that_a_system_refuses_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS refuses any limit of addresses (github.com/dask/distributed/pull/7457); no mesh could be read."""
    resource = pytest.importorskip("resource")
    asked = {}

    def refuse(kind: int, most: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_AS:
            raise ValueError("current limit exceeds maximum limit")
        asked[kind] = most

    monkeypatch.setattr(resource, "setrlimit", refuse)
    limit(2**31, 7)
    assert set(asked) == {resource.RLIMIT_CORE, resource.RLIMIT_CPU} and asked[resource.RLIMIT_CPU][0] == 7
