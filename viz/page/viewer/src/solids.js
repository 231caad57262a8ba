// Bodies (balls, polytopes, edges of containers) and the surface of a liquid.

import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  Group,
  InstancedMesh,
  Matrix4,
  Mesh,
  MeshPhongMaterial,
  Quaternion,
  SphereGeometry,
  Vector3,
} from "three";
import { LineMaterial } from "three/examples/jsm/lines/LineMaterial.js";
import { LineSegments2 } from "three/examples/jsm/lines/LineSegments2.js";
import { LineSegmentsGeometry } from "three/examples/jsm/lines/LineSegmentsGeometry.js";

export const NUMBERS = 12; // of a body: place, turn (w, x, y, z), size, shape, colour

function material(colour, more) {
  return new MeshPhongMaterial({ color: new Color(...colour), specular: 0x0b0b0b, shininess: 20, ...more });
}

/** All populations of bodies; `shapes[k]` has vertices, triangles and edges, as flat lists; 0 is the ball. */
export class Bodies {
  constructor(names, shapes, look, stage) {
    this.groups = names.map(() => new Group());
    this.object = new Group();
    for (const group of this.groups) this.object.add(group);
    this.smooth = material([1, 1, 1], {}); // times the colour of each ball
    this.wire = new LineMaterial({ color: new Color(...look.edge).getHex(), linewidth: 2 });
    this.stage = stage;
    this.ball = new SphereGeometry(1, 48, 32);
    this.shapes = shapes.map((shape) => {
      const solid = new BufferGeometry();
      solid.setAttribute("position", new BufferAttribute(new Float32Array(shape.vertices), 3));
      solid.setIndex(shape.triangles);
      const corner = (k) => shape.vertices.slice(3 * k, 3 * k + 3);
      const edges = new LineSegmentsGeometry();
      edges.setPositions(shape.edges.flatMap(corner));
      return { solid: solid.toNonIndexed(), edges };
    });
    this.balls = names.map(() => null);
    this.meshes = names.map(() => []);
  }

  show(which, shown) {
    this.groups[which].visible = shown;
  }

  /** Bodies of one population, nine numbers each. */
  update(which, rows) {
    const n = rows.length / NUMBERS;
    const balls = [];
    const colours = [];
    let used = 0;
    for (let k = 0; k < n; k++) {
      const row = rows.subarray(NUMBERS * k, NUMBERS * (k + 1));
      const place = new Matrix4().compose(
        new Vector3(row[0], row[1], row[2]),
        new Quaternion(row[4], row[5], row[6], row[3]).normalize(),
        new Vector3(row[7], row[7], row[7]),
      );
      const colour = new Color(row[9], row[10], row[11]);
      if (row[8] === 0) {
        balls.push(place);
        colours.push(colour);
        continue;
      }
      const mesh = this.mesh(which, used++, row[8]);
      mesh.matrix.copy(place);
      if (row[8] > 0) mesh.material.color = colour;
    }
    this.meshes[which].forEach((mesh, k) => (mesh.visible = k < used));
    this.place(which, balls, colours);
  }

  /** The mesh in use number `k`, of shape |shape| - 1; negative ones are containers. */
  mesh(which, k, shape) {
    const meshes = this.meshes[which];
    if (!meshes[k] || meshes[k].userData.shape !== shape) {
      if (meshes[k]) {
        this.groups[which].remove(meshes[k]);
        if (meshes[k].material !== this.wire) meshes[k].material.dispose();
      }
      const { solid, edges } = this.shapes[Math.abs(shape) - 1];
      meshes[k] = shape > 0 ? new Mesh(solid, material([1, 1, 1], { flatShading: true })) : new LineSegments2(edges, this.wire);
      meshes[k].matrixAutoUpdate = false;
      meshes[k].frustumCulled = false;
      meshes[k].userData.shape = shape;
      this.groups[which].add(meshes[k]);
    }
    return meshes[k];
  }

  place(which, balls, colours) {
    let mesh = this.balls[which];
    if (balls.length > (mesh ? mesh.instanceMatrix.count : 0)) {
      if (mesh) {
        this.groups[which].remove(mesh);
        mesh.dispose();
      }
      mesh = this.balls[which] = new InstancedMesh(this.ball, this.smooth, Math.ceil(1.25 * balls.length));
      mesh.frustumCulled = false;
      this.groups[which].add(mesh);
    }
    if (!mesh) return;
    mesh.count = balls.length;
    balls.forEach((matrix, k) => {
      mesh.setMatrixAt(k, matrix);
      mesh.setColorAt(k, colours[k]);
    });
    mesh.instanceMatrix.needsUpdate = true;
    if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
  }

  prepare() {
    // In CSS pixels, and never thinner than a pixel of the picture that is drawn into.
    this.wire.linewidth = Math.max(2, (1.3 * this.stage.canvas.clientHeight) / this.stage.target.height);
  }
}

/** The surface of a liquid: a mesh that is another one in every frame. */
export class Surface {
  constructor(plain) {
    const shine = { specular: 0x1c1c1c, shininess: 30, side: DoubleSide };
    this.plain = material(plain, shine);
    this.coloured = material([1, 1, 1], { ...shine, vertexColors: true });
    this.object = new Mesh(new BufferGeometry(), this.plain);
    this.object.visible = false; // drawn without normals once, a material would stay flat
    this.object.frustumCulled = false;
  }

  /** Vertices, triangles, and colours (three numbers per vertex, or null). */
  update(places, triangles, colours) {
    this.object.geometry.dispose();
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(places, 3));
    geometry.setIndex(new BufferAttribute(triangles, 1));
    if (colours) geometry.setAttribute("color", new BufferAttribute(colours, 3));
    geometry.computeVertexNormals();
    this.object.geometry = geometry;
    this.object.material = colours ? this.coloured : this.plain;
  }
}
