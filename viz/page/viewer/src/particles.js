// Particles: beads (shaded little balls) and smoke (soft puffs, blended from back to front).

import { BufferAttribute, BufferGeometry, Color, DynamicDrawUsage, Points, ShaderMaterial } from "three";
import { PREMULTIPLIED } from "./stage.js";

const REACH = 2.4; // radii at which puffs end, as those of `ecs-fluid show` do

const END = Math.exp(-0.5 * REACH * REACH);

const POINT_SIZE = `
  uniform float radius, pixels, scale, largest;
  float across(float share) { return min(2.0 * radius * scale * share * pixels / gl_Position.w, largest); }`;

/** A geometry whose attributes are made anew only when they are too short. */
class Rows {
  constructor(parts) {
    this.parts = parts; // name -> [numbers per row, array type, normalised]
    this.geometry = new BufferGeometry();
    this.capacity = 0;
  }

  /** Arrays for n rows, to be filled before the next drawing. */
  of(n) {
    if (n > this.capacity || !this.capacity) {
      this.capacity = Math.max(64, Math.ceil(1.25 * n));
      this.geometry.dispose();
      this.geometry = new BufferGeometry();
      for (const [name, [width, kind, normalised]] of Object.entries(this.parts)) {
        const attribute = new BufferAttribute(new kind(width * this.capacity), width, normalised);
        attribute.setUsage(DynamicDrawUsage);
        if (name === "index") this.geometry.setIndex(attribute);
        else this.geometry.setAttribute(name, attribute);
      }
    }
    this.geometry.setDrawRange(0, n);
    const arrays = {};
    for (const name of Object.keys(this.parts)) {
      const attribute = name === "index" ? this.geometry.index : this.geometry.getAttribute(name);
      attribute.clearUpdateRanges();
      attribute.addUpdateRange(0, n * attribute.itemSize);
      attribute.needsUpdate = true;
      arrays[name] = attribute.array;
    }
    return arrays;
  }
}

function points(rows, material) {
  const object = new Points(rows.geometry, material);
  object.frustumCulled = false;
  return object;
}

/** One population as balls of one radius [m], coloured by a map or plain. */
export class Beads {
  constructor(radius, plain, light, stage) {
    this.rows = new Rows({ position: [3, Float32Array], paint: [2, Float32Array] });
    this.material = new ShaderMaterial({
      uniforms: {
        radius: { value: radius },
        pixels: { value: 1 },
        scale: { value: 1 },
        largest: { value: 511 },
        plain: { value: new Color(...plain) },
        map: { value: null },
        crisp: { value: false },
        light: { value: light },
      },
      // paint: place in the map from 0 to 1, below 0 for the plain colour; share of the radius
      vertexShader: `
        attribute vec2 paint; uniform vec3 plain; uniform sampler2D map; uniform bool crisp; varying vec3 colour; varying float width;
        ${POINT_SIZE}
        void main() {
          gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
          width = max(across(paint.y), crisp ? 2.0 : 1.2);
          gl_PointSize = width;
          colour = paint.x < 0.0 ? plain : texture2D(map, vec2((clamp(paint.x, 0.0, 1.0) * 255.0 + 0.5) / 256.0, 0.5)).rgb;
          if (paint.y <= 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
        }`,
      fragmentShader: `
        uniform vec3 light; uniform bool crisp; varying vec3 colour; varying float width;
        void main() {
          vec2 p = 2.0 * gl_PointCoord - 1.0;
          float r = length(p);
          float edge = 1.0 - smoothstep(1.0 - 2.5 / width, 1.0, r);
          if (crisp) edge = step(r, 1.0); // without samples
          if (edge < 0.02) discard;
          vec3 normal = vec3(p.x, -p.y, sqrt(max(1.0 - r * r, 0.0)));
          float lit = max(dot(normal, normalize((viewMatrix * vec4(light, 0.0)).xyz)), 0.0);
          float head = normal.z;
          vec3 shaded = colour * (0.25 + 0.5 * lit + 0.35 * head) + 0.12 * pow(lit, 20.0);
          gl_FragColor = vec4(shaded * edge, edge);
        }`,
      // Edges cover some of the samples of a pixel, and mix there with what is behind.
      ...PREMULTIPLIED,
      alphaToCoverage: true,
      transparent: false,
      depthWrite: true,
    });
    this.object = points(this.rows, this.material);
    this.stage = stage;
  }

  /** Places of n particles, numbers that colour them (or null) with their limits, and shares of the radius. */
  update(places, values, low, high, sizes) {
    const n = places.length / 3;
    const { position, paint } = this.rows.of(n);
    position.set(places);
    const factor = 1 / (high - low || 1);
    for (let i = 0; i < n; i++) {
      const share = values ? (values[i] - low) * factor : -1;
      paint[2 * i] = values && share === share ? Math.min(Math.max(share, 0), 1) : -1;
      paint[2 * i + 1] = sizes ? sizes(values[i]) : 1;
    }
    this.object.geometry = this.rows.geometry;
  }

  prepare(scale, map) {
    const { uniforms } = this.material;
    uniforms.pixels.value = this.stage.pixels;
    uniforms.largest.value = this.stage.largestPoint;
    uniforms.scale.value = scale;
    uniforms.map.value = map;
    uniforms.crisp.value = !this.stage.target.samples;
  }
}

/** All clouds together: puffs of two clouds can only be sorted together. */
export class Smoke {
  constructor(puff, stage) {
    this.opacity = puff.opacity;
    this.rows = new Rows({ position: [3, Float32Array], tint: [4, Uint8Array, true], index: [1, Uint32Array] });
    this.material = new ShaderMaterial({
      uniforms: {
        radius: { value: REACH * puff.radius },
        pixels: { value: 1 },
        scale: { value: 1 },
        largest: { value: 511 },
        opacity: { value: puff.opacity },
      },
      vertexShader: `
        attribute vec4 tint; varying vec4 colour;
        ${POINT_SIZE}
        void main() {
          gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
          gl_PointSize = max(across(1.0), 1.5);
          colour = tint;
        }`,
      fragmentShader: `
        uniform float opacity; varying vec4 colour;
        void main() {
          vec2 p = ${REACH.toFixed(1)} * (2.0 * gl_PointCoord - 1.0);
          float r2 = dot(p, p);
          if (r2 > ${(REACH * REACH).toFixed(2)}) discard;
          // A Gaussian that ends in nothing, or the rims of single puffs would be seen.
          float a = opacity * colour.a * (exp(-0.5 * r2) - ${END.toFixed(5)}) / ${(1 - END).toFixed(5)};
          gl_FragColor = vec4(colour.rgb * a, a);
        }`,
      ...PREMULTIPLIED,
    });
    this.object = points(this.rows, this.material);
    this.object.renderOrder = 10;
    this.stage = stage;
    this.places = new Float32Array(0);
    this.keys = new Uint16Array(0);
    this.view = "";
  }

  /** Clouds as [places, tint bytes (4 n)]. */
  update(clouds) {
    const n = clouds.reduce((sum, [places]) => sum + places.length / 3, 0);
    const { position, tint } = this.rows.of(n);
    let at = 0;
    for (const [places, tints] of clouds) {
      position.set(places, 3 * at);
      tint.set(tints, 4 * at);
      at += places.length / 3;
    }
    this.count = n;
    this.view = "";
    this.object.geometry = this.rows.geometry;
  }

  /** Sort for the present camera, in 65,536 layers: what is in one layer may be drawn in any order. */
  prepare(scale) {
    const { uniforms } = this.material;
    uniforms.pixels.value = this.stage.pixels;
    uniforms.largest.value = this.stage.largestPoint;
    uniforms.scale.value = scale;
    uniforms.opacity.value = Math.min(0.9, this.opacity / (scale * scale)); // as much smoke, in other lumps
    const e = this.stage.camera.matrixWorldInverse.elements;
    const view = `${e[2]} ${e[6]} ${e[10]}`;
    if (view === this.view || !this.count) return;
    this.view = view;
    const n = this.count;
    const { geometry } = this.rows;
    const x = geometry.getAttribute("position").array;
    const order = geometry.index.array;
    if (this.keys.length < n) {
      this.keys = new Uint16Array(geometry.index.count);
      this.depth = new Float32Array(geometry.index.count);
    }
    const { keys, depth } = this;
    let [least, most] = [Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      const z = e[2] * x[3 * i] + e[6] * x[3 * i + 1] + e[10] * x[3 * i + 2];
      depth[i] = z;
      if (z < least) least = z;
      if (z > most) most = z;
    }
    const factor = most > least ? 65535 / (most - least) : 0;
    const starts = new Uint32Array(65537);
    for (let i = 0; i < n; i++) {
      keys[i] = (depth[i] - least) * factor;
      starts[keys[i] + 1]++;
    }
    for (let k = 0; k < 65536; k++) starts[k + 1] += starts[k];
    for (let i = 0; i < n; i++) order[starts[keys[i]]++] = i;
    geometry.index.needsUpdate = true;
  }
}
