"""USD: all frames in one ``NAME.usdc``; particles as Points, bodies as Spheres and Meshes with moving frames.

Stage: metres, y or z up, one time code per stored frame, ``timeCodesPerSecond`` of simulated time, so motion
blur from the velocities (m/s) is right. Rows keep their ids, so a renderer may follow them while their number
changes. Other columns are primvars with their unit as custom data, in single precision unless their component
says "double". With a `voxel` the stage holds the fields too, as a Volume of OpenVDB assets. Each population
has a material, in the colour of its recipe.

Source: OpenUSD, schemas UsdGeomPoints, UsdGeomMesh, UsdGeomXformable, UsdVolVolume, UsdVolOpenVDBAsset,
UsdShadeMaterial with UsdPreviewSurface.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.bodies import Placed
from ecs_fluid.exports.colours import SOLID, WATER, Colour, colours_of, linear, of_points
from ecs_fluid.exports.frames import Columns, Frame, Job
from ecs_fluid.exports.names import free_name, plain_names
from ecs_fluid.exports.surfaces import Liquid, Surfaces
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.vdb import write_vdb
from ecs_fluid.exports.volumes import Volumes, mean_spacing

try:
    from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdShade, UsdVol, Vt
except ImportError:
    raise StorageError(
        "USD needs the package usd-core, which is not installed; install it with: "
        "pip install 'ecs-fluid[usd]'"
    ) from None

MANY = 100
"""More balls than this in a population are written as points with widths: one prim, not thousands."""

COLOURS = "displayColor"
"""Primvar of the colours of a mesh, which viewers without materials show, too."""

VDB = "volumes"
"""Folder of the fields, beside the stage."""

_PENDING = 16 << 20  # bytes in memory before what is there is saved; each save also rewrites a small index


def write(job: Job) -> dict[str, Any]:
    """Write ``NAME.usdc``; see the module."""
    file = f"{job.frames.name}.usdc"
    try:
        about = _Stage(job, str(job.folder / file)).write()
    except Tf.ErrorException as error:
        if shutil.disk_usage(job.folder).free < _PENDING:  # USD's own words tell that only to experts
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        words = " ".join(str(error).split())
        raise StorageError(f"USD cannot write {job.target / file}: {words[:300]}") from None
    return {"file": file, **about}


class _Stage:
    def __init__(self, job: Job, path: str) -> None:
        frames = job.frames
        self.frames, self.surfaces = frames, Surfaces(frames)
        self.stage = stage = Usd.Stage.CreateNew(path)
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y if frames.up == "y" else UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(frames.rate)
        stage.SetFramesPerSecond(frames.rate)
        # Players step through whole codes: a last frame at 2.5 is held at 3, as its volumes are numbered.
        stage.SetStartTimeCode(math.floor(frames.codes[0]))
        stage.SetEndTimeCode(max(math.ceil(frames.codes[-1]), frames.files[-1]))
        from ecs_fluid import __version__

        stage.SetMetadata("comment", f"ecs_fluid {__version__}; SI units; one time code per stored frame")
        self.root = UsdGeom.Xform.Define(stage, f"/{_prim(frames.name)}")
        stage.SetDefaultPrim(self.root.GetPrim())
        self.colours = colours_of(frames)
        names = (*frames.particles, *frames.bodies, *([frames.surface] if frames.surface else []))
        self.prims = _prims(names, taken={"fields"} if job.voxel else set())
        self.clouds = {name: _Cloud(self, name) for name in frames.particles}
        self.bodies: dict[tuple[str, int], _Body] = {}
        self.surface = _SurfaceMesh(self, frames.surface) if frames.surface else None
        self.volume = _Fields(self, job) if job.voxel else None

    def write(self) -> dict[str, Any]:
        """Write all frames; returns what ``export.json`` says of them."""
        pending = 0
        for frame in self.frames:
            for name, columns in frame.particles.items():
                self.clouds[name].add(frame.code, columns)
                pending += sum(array.nbytes for array in columns.values())
            pending += self._add_bodies(frame)
            if self.surface:
                pending += self.surface.add(frame.code, self.surfaces.liquid(frame))
            if self.volume:
                self.volume.add(frame)
            if pending > _PENDING:
                self.stage.GetRootLayer().Save()
                pending = 0
        self.stage.GetRootLayer().Save()
        about = self.volume.volumes.about() if self.volume else {}
        return about | {"populations": {name: self.frames.told(name) for name in self.clouds}}

    def paint(
        self,
        prim: Any,
        population: str,
        colour: Colour,
        kind: str = "",
        varying: bool = False,
        **inputs: float,
    ) -> None:
        """Give a prim the material of its population, in that colour unless the recipe names another.

        ``kind`` distinguishes several materials of a population; with ``varying`` the colour is the one that
        each vertex has as `COLOURS`. ``inputs`` are those of UsdPreviewSurface beside the colour.
        """
        scope = UsdGeom.Scope.Define(self.stage, self.root.GetPath().AppendChild("_materials"))
        path = scope.GetPath().AppendChild(kind + self.prims[population])
        material = UsdShade.Material.Define(self.stage, path)
        shader = UsdShade.Shader.Define(self.stage, material.GetPath().AppendChild("surface"))
        shader.CreateIdAttr("UsdPreviewSurface")
        shown = Gf.Vec3f(*linear(self.colours.get(population, colour)).tolist())
        diffuse = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
        diffuse.Set(shown)
        if varying:
            reader = UsdShade.Shader.Define(self.stage, material.GetPath().AppendChild("colours"))
            reader.CreateIdAttr("UsdPrimvarReader_float3")
            reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set(COLOURS)
            reader.CreateInput("fallback", Sdf.ValueTypeNames.Float3).Set(shown)
            result = reader.CreateOutput("result", Sdf.ValueTypeNames.Float3)
            diffuse.ConnectToSource(result)
        for name, value in inputs.items():
            shader.CreateInput(name, Sdf.ValueTypeNames.Float).Set(value)
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)

    def _add_bodies(self, frame: Frame) -> int:
        """Add bodies, as points where there are many balls; returns how many bytes that keeps."""
        one_by_one: dict[str, Columns] = {}
        size = 0
        for name, columns in frame.bodies.items():
            size += sum(array.nbytes for array in columns.values())
            if name in self.clouds or ("BallShape.radius" in columns and len(columns["RowId.id"]) > MANY):
                if name not in self.clouds:
                    self.clouds[name] = _Cloud(self, name)
                self.clouds[name].add(frame.code, columns)
            else:
                one_by_one[name] = columns
        seen = set()
        for body in self.surfaces.placed(one_by_one):
            key = (body.population, body.row_id)
            seen.add(key)
            if key not in self.bodies:
                self.bodies[key] = _Body(self, body, hidden_before=frame.number != self.frames.numbers[0])
            self.bodies[key].add(frame.code, body)
        for key, made in self.bodies.items():
            if key not in seen:
                made.hide(frame.code)
        return size


class _Cloud:
    """One Points prim."""

    def __init__(self, stage: _Stage, name: str) -> None:
        self.name, self.frames = name, stage.frames
        self.points = UsdGeom.Points.Define(stage.stage, stage.root.GetPath().AppendChild(stage.prims[name]))
        columns = stage.frames.columns(name)
        stage.paint(self.points, name, of_points(columns))
        self.names = plain_names(columns)
        self.ids: np.ndarray | None = None
        self.width: float | None = None
        self.velocity = next((label for label, plain in self.names.items() if plain == "velocity"), None)
        places = self.points.CreatePointsAttr()
        places.SetCustomDataByKey("unit", "m")
        types = Sdf.ValueTypeNames
        self.primvars: dict[str, Any] = {}
        api = UsdGeom.PrimvarsAPI(self.points)
        for label, plain in self.names.items():
            if label in (self.velocity, "RowId.id"):
                continue
            column, double = columns[label], stage.frames.kind(label) == "double"
            kind = types.DoubleArray if double else types.FloatArray
            if column.dtype.lstrip("u").startswith("int"):
                kind = types.IntArray
            elif column.shape == (3,):
                kind = types.Vector3dArray if double else types.Vector3fArray
            primvar = api.CreatePrimvar(plain, kind, UsdGeom.Tokens.vertex)
            if column.shape != (3,) and column.width > 1:
                primvar.SetElementSize(column.width)
            primvar.GetAttr().SetCustomDataByKey("unit", stage.frames.unit(label))
            self.primvars[label] = primvar.GetAttr()
        if "RowId.id" in columns:
            self.id_primvar = api.CreatePrimvar("id", types.IntArray, UsdGeom.Tokens.vertex)
        if self.velocity:
            said = stage.frames.unit(self.velocity)
            self.points.CreateVelocitiesAttr().SetCustomDataByKey("unit", said)

    def add(self, code: float, columns: Columns) -> None:
        _set(self.points.GetPointsAttr(), columns["Position.x"], code)
        if self.velocity:
            _set(self.points.GetVelocitiesAttr(), columns[self.velocity], code)
        ids = columns.get("RowId.id")
        if ids is not None and (self.ids is None or not np.array_equal(ids, self.ids)):
            _set(self.points.CreateIdsAttr(), ids, code)
            # Blender 5.0 leaves out ids and reads primvars.
            _set(self.id_primvar.GetAttr(), ids, code)
            self.ids = ids
        self._set_widths(code, columns)
        for label, attribute in self.primvars.items():
            _set(attribute, columns[label], code)

    def _set_widths(self, code: float, columns: Columns) -> None:
        """Diameters: of balls, of cores, of balls with the particles' volume, or half the mean spacing."""
        widths = None
        if "BallShape.radius" in columns:
            widths = 2.0 * columns["BallShape.radius"]
        elif "CoreRadius.sigma" in columns:
            widths = 2.0 * columns["CoreRadius.sigma"]
        elif "Volume.volume" in columns:
            widths = np.cbrt(6.0 / math.pi * columns["Volume.volume"])
        if widths is not None:
            _set(self.points.GetWidthsAttr(), widths, code)
            self.points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
        elif self.width is None and len(columns["Position.x"]):
            self.width = 0.5 * mean_spacing(self.frames.fullest([self.name]))
            self.points.CreateWidthsAttr(Vt.FloatArray([self.width]))
            self.points.SetWidthsInterpolation(UsdGeom.Tokens.constant)
        if len(x := columns["Position.x"]):
            half = 0.5 * (np.full(1, self.width) if widths is None else widths)[:, None]
            _set_extent(self.points, (x - half).min(axis=0), (x + half).max(axis=0), code)


class _Fields:
    """The fields of `volumes` as one Volume, whose grids are in a .vdb file for each frame."""

    def __init__(self, stage: _Stage, job: Job) -> None:
        self.stage, self.folder, self.volumes = stage.stage, job.folder, Volumes(job)
        self.path = stage.root.GetPath().AppendChild("fields")
        self.prim = UsdVol.Volume.Define(self.stage, self.path)
        self.files: dict[str, Any] = {}
        (self.folder / VDB).mkdir()

    def add(self, frame: Frame) -> None:
        volume = self.volumes.of(frame)
        file = f"{VDB}/{frame_file('volume', frame.file, 'vdb')}"
        with open(self.folder / file, "wb") as handle:
            write_vdb(handle, volume)
        last = volume.first + volume.arrays["density"].shape[:3] - 1
        _set_extent(self.prim, volume.voxel * volume.first, volume.voxel * last, frame.code)
        for name in volume.arrays:
            if name not in self.files:
                asset = UsdVol.OpenVDBAsset.Define(self.stage, self.path.AppendChild(name))
                asset.CreateFieldNameAttr(name)
                self.prim.CreateFieldRelationship(name, asset.GetPath())
                self.files[name] = asset.CreateFilePathAttr()
            self.files[name].Set(Sdf.AssetPath(f"./{file}"), frame.code)


class _SurfaceMesh:
    """One Mesh whose vertices and faces change with every frame."""

    def __init__(self, stage: _Stage, name: str) -> None:
        self.mesh = UsdGeom.Mesh.Define(stage.stage, stage.root.GetPath().AppendChild(stage.prims[name]))
        self.mesh.CreateVelocitiesAttr().SetCustomDataByKey("unit", "m/s")
        self.colours: Any = None
        if stage.surfaces.colours:
            kind = Sdf.ValueTypeNames.Color3fArray
            primvars = UsdGeom.PrimvarsAPI(self.mesh)
            self.colours = primvars.CreatePrimvar(COLOURS, kind, UsdGeom.Tokens.vertex).GetAttr()
        stage.paint(self.mesh, name, WATER, varying=bool(stage.surfaces.colours), roughness=0.05, ior=1.333)

    def add(self, code: float, surface: Liquid | None) -> int:
        """Set the mesh at a time code, empty without a surface; returns how many bytes that keeps."""
        triangles = np.empty((0, 3), np.int64) if surface is None else surface.mesh.triangles
        vertices = np.empty((0, 3)) if surface is None else surface.vertices
        velocity = vertices if surface is None else surface.vertex_velocity
        _set(self.mesh.CreateVelocitiesAttr(), velocity, code)
        _set_mesh(self.mesh, vertices, np.full(len(triangles), 3), triangles, code)
        if self.colours:
            colour = None if surface is None else surface.vertex_colour
            _set(self.colours, vertices if colour is None else linear(colour), code)
        return 24 * len(vertices) + 16 * len(triangles)


class _Body:
    """One Sphere or Mesh with a moving frame."""

    def __init__(self, stage: _Stage, body: Placed, hidden_before: bool) -> None:
        place = stage.root.GetPath().AppendChild(stage.prims[body.population])
        parent = UsdGeom.Xform.Define(stage.stage, place)
        path = parent.GetPath().AppendChild(_prim(body.label))
        self.gprim: Any
        if body.ball:
            self.gprim = UsdGeom.Sphere.Define(stage.stage, path)
            self.gprim.CreateRadiusAttr(body.scale)
            low = Gf.Vec3f(-body.scale)
            self.gprim.CreateExtentAttr(Vt.Vec3fArray([low, -low]))
        else:
            self.gprim = UsdGeom.Mesh.Define(stage.stage, path)
            _set_mesh(self.gprim, body.mesh.vertices, body.mesh.sizes, body.mesh.corners)
        if body.container:  # what is inside must be seen
            self.gprim.CreateDisplayOpacityAttr(Vt.FloatArray([0.15]))
            stage.paint(self.gprim, body.population, SOLID, "_container_", opacity=0.15)
        else:
            stage.paint(self.gprim, body.population, SOLID)
        self.gprim.GetPrim().SetCustomDataByKey("container", body.container)
        self.translate = self.gprim.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
        self.orient = self.gprim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble)
        self.former = body.q
        self.shown = not hidden_before
        self.start = float(stage.frames.codes[0])
        if hidden_before:
            self._show(UsdGeom.Tokens.invisible, self.start)

    def add(self, code: float, body: Placed) -> None:

        # q and -q are one rotation; interpolation between frames takes the short way if they agree in sign.
        q = body.q if np.dot(body.q, self.former) >= 0.0 else -body.q
        self.former = q
        self.translate.Set(Gf.Vec3d(*body.x.tolist()), code)
        self.orient.Set(Gf.Quatd(q[0].item(), Gf.Vec3d(*q[1:].tolist())), code)
        if not self.shown:
            self._show(UsdGeom.Tokens.inherited, code)
            self.shown = True

    def hide(self, code: float) -> None:
        if self.shown:
            if not self.gprim.GetVisibilityAttr().HasAuthoredValue():
                self._show(UsdGeom.Tokens.inherited, self.start)  # the first sample holds for all before it
            self._show(UsdGeom.Tokens.invisible, code)
            self.shown = False

    def _show(self, how: str, code: float) -> None:
        self.gprim.CreateVisibilityAttr().Set(how, code)


def _set_mesh(mesh: Any, vertices: np.ndarray, sizes: np.ndarray, corners: np.ndarray, *code: float) -> None:
    """Set points and faces of a Mesh at a time code; without one, for all times."""
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    _set(mesh.CreatePointsAttr(), vertices, *code)
    _set(mesh.CreateFaceVertexCountsAttr(), sizes, *code)
    _set(mesh.CreateFaceVertexIndicesAttr(), corners, *code)
    if len(vertices):
        _set_extent(mesh, vertices.min(axis=0), vertices.max(axis=0), *code)


def _set_extent(prim: Any, low: np.ndarray, high: np.ndarray, *code: float) -> None:
    """Set the box of a prim at a time code, by which viewers frame and cull it.

    USD itself finds none for points of one width, and none for volumes.
    """
    _set(prim.CreateExtentAttr(), np.array([low, high]), *code)


def _set(attribute: Any, values: np.ndarray, *code: float) -> None:
    """Set an array of numbers at a time code, in USD's own type for it; without a code, for all times.

    Whole numbers have 32 bits, which Blender reads, until one needs 64.
    """
    if attribute.GetTypeName() == Sdf.ValueTypeNames.IntArray and np.abs(values).max(initial=0) >= 2**31:
        former = {time: np.array(attribute.Get(time)) for time in attribute.GetTimeSamples()}
        attribute.SetTypeName(Sdf.ValueTypeNames.Int64Array)
        for time, numbers in former.items():
            _set(attribute, numbers, time)
    kind = attribute.GetTypeName().type.pythonClass
    like = np.array(kind(1))
    rows = np.ascontiguousarray(values, dtype=like.dtype).reshape(-1, *like.shape[1:])
    attribute.Set(kind.FromNumpy(rows), *code)


def _prims(populations: Iterable[str], taken: Set[str]) -> dict[str, str]:
    """A prim name for each population; `a-b` and `a_b` get two, and none is `taken`."""
    names: dict[str, str] = {}
    for population in populations:
        names[population] = free_name(_prim(population), {*names.values(), *taken})
    return names


def _prim(name: str) -> str:
    """A name that USD allows: letters, digits, underscores."""
    return str(Tf.MakeValidIdentifier(name))
