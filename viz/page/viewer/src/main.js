// The page: data/page.js calls ecsFluidPage.start, the other data files ecsFluidPage.put.

import { DataTexture, LinearFilter, RGBAFormat, Vector3 } from "three";
import { bytesOf, Reader } from "./decode.js";
import { Panel } from "./panel.js";
import { Beads, Smoke } from "./particles.js";
import { Player } from "./player.js";
import { Bodies, NUMBERS, Surface } from "./solids.js";
import { Stage } from "./stage.js";
import { Store } from "./store.js";

let viewer = null;

/** A colour map of 256 colours: texture, bytes, and the same as a CSS gradient. */
function colourMap(text) {
  const colours = bytesOf(text);
  const data = new Uint8Array(1024).fill(255);
  const stops = [];
  for (let k = 0; k < 256; k++) {
    data.set(colours.subarray(3 * k, 3 * k + 3), 4 * k);
    if (k % 15 === 0) stops.push(`rgb(${colours.slice(3 * k, 3 * k + 3).join(",")})`);
  }
  const texture = new DataTexture(data, 256, 1, RGBAFormat);
  texture.magFilter = texture.minFilter = LinearFilter;
  texture.needsUpdate = true;
  return { texture, colours, css: `linear-gradient(90deg,${stops.join(",")})` };
}

class Viewer {
  constructor(page) {
    this.page = page;
    this.began = performance.now();
    // Everything that has a switch: particles, bodies, surface.
    page.parts = [...page.populations, ...page.bodies, ...(page.surface ? [page.surface] : [])];
    this.shown = page.parts.map((part) => part.shown);
    this.size = 1;
    this.colour = page.colour;
    this.maps = { sequential: colourMap(page.maps.sequential), signed: colourMap(page.maps.signed) };
    const { look } = page;
    const style = document.documentElement.style;
    style.setProperty("--back", look.background);
    style.setProperty("--back-top", look.background_top);
    style.setProperty("--text", look.text);
    document.documentElement.style.colorScheme = look.dark ? "dark" : "light";
    this.store = new Store(page.groups, () => this.arrived(), (file) => this.lost(file));
    this.player = new Player(page.times, page.interval, () => this.invalidate(true));
    this.panel = new Panel(page, this.acts(), this.player.speeds);
    this.load(); // data come while the browser makes ready to draw
    this.canvas = document.getElementById("picture");
    this.stage = new Stage(this.canvas, page.view, look.light, () => this.invalidate());
    const limits = this.stage.renderer.getContext().getParameter(0x846d); // ALIASED_POINT_SIZE_RANGE
    this.stage.largestPoint = limits ? limits[1] : 64;
    this.fill();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    window.addEventListener("resize", () => this.resize());
    document.addEventListener("keydown", (event) => this.key(event));
    this.last = performance.now();
    this.touched = -1e9;
    this.changed = true;
    this.stage.resize();
    this.player.toggle(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    this.invalidate(true);
  }

  /** Put the layers on the stage. */
  fill() {
    const { page, stage } = this;
    const light = new Vector3(...page.look.light).normalize();
    this.beads = page.populations.map((part) => new Beads(part.radius, part.plain, light, stage));
    this.smoke = page.puff ? new Smoke(page.puff, stage) : null;
    this.bodies = new Bodies(page.bodies.map((part) => part.name), page.shapes, page.look, stage);
    this.surface = page.surface ? new Surface(page.surface.plain) : null;
    for (const layer of [...this.beads, this.bodies]) stage.scene.add(layer.object);
    if (this.smoke) stage.scene.add(this.smoke.object);
    if (this.surface) stage.scene.add(this.surface.object);
  }

  acts() {
    const { player } = this;
    return {
      toggle: () => {
        player.toggle();
        this.invalidate(true);
      },
      go: (frame) => {
        player.toggle(false);
        player.go(frame);
      },
      step: (count) => {
        player.toggle(false);
        player.go(player.frame + count);
      },
      speed: (speed) => {
        player.speed = speed;
      },
      loop: (on) => {
        player.loop = on;
      },
      colour: (field) => {
        this.colour = field;
        this.load();
        this.invalidate(true);
      },
      size: (size) => {
        this.size = size;
        this.invalidate();
      },
      show: (part, on) => {
        this.shown[part] = on;
        this.load();
        this.invalidate(true);
      },
      fit: () => {
        this.stage.fit();
        this.invalidate();
      },
    };
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof HTMLElement ? event.target : document.body;
    const { player } = this;
    const act = this.acts();
    const many = event.shiftKey ? 10 : 1;
    const deeds = {
      " ": act.toggle,
      ArrowLeft: () => act.step(-many),
      ArrowRight: () => act.step(many),
      Home: () => act.go(0),
      End: () => act.go(player.last),
      f: act.fit,
    };
    const deed = deeds[event.key];
    // Lists and the slider of sizes keep their own keys; a button or a switch keeps its space.
    const own = on.tagName === "SELECT" || on.id === "size";
    if (!deed || own || (event.key === " " && ["BUTTON", "INPUT"].includes(on.tagName) && on.id !== "time")) return;
    event.preventDefault();
    deed();
  }

  /** Number of the field that colours a population, -1 if none does. */
  fieldOf(part) {
    if (this.colour < 0) return part.natural;
    return part.fields.includes(this.colour) ? this.colour : -1;
  }

  /** Streams that the present picture needs. */
  streams() {
    const { page } = this;
    const wanted = new Set(["x"]);
    page.populations.forEach((part, k) => {
      const field = this.fieldOf(part);
      if (field >= 0 && this.shown[k]) wanted.add(`f${field}`);
    });
    if (page.surface && this.shown[page.parts.length - 1]) wanted.add("s");
    return [...wanted];
  }

  load() {
    this.store.want(this.streams(), this.player.frame);
    this.tellLoading();
  }

  arrived() {
    this.tellLoading();
    if (this.store.share(this.streams()) === 1) this.all ??= performance.now();
    this.invalidate();
  }

  lost(file) {
    this.panel.fail(`${file} is missing or damaged; the folder of this page must be kept whole.`);
  }

  tellLoading() {
    const streams = this.streams();
    this.panel.loading(this.store.share(streams), !this.store.has(streams, this.player.frame));
  }

  resize() {
    this.stage.resize();
    this.invalidate();
  }

  /** Draw at the next opportunity; `changed`: another frame, colour or choice. */
  invalidate(changed = false) {
    this.changed ||= changed;
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    this.pending = false;
    const { player, store, stage } = this;
    const streams = this.streams();
    const interval = now - this.last;
    player.pass(interval / 1000, (frame) => store.has(streams, frame));
    this.last = now;
    if (store.groupOf(player.frame) !== store.group) this.load();
    const due = this.changed && store.has(streams, player.frame);
    if (due) {
      this.changed = false;
      this.showFrame(player.frame);
      this.tellLoading();
    }
    const turning = stage.controls.update();
    const moving = player.playing || turning || due || now - this.touched < 200;
    if (turning) this.touched = now;
    clearTimeout(this.rest);
    // How long a picture takes is known only where one follows another without a pause.
    if (stage.choose(moving, this.steady ? interval : null)) this.rest = setTimeout(() => this.invalidate(), 300);
    stage.camera.updateMatrixWorld();
    this.prepare();
    stage.draw();
    if (!this.changed) this.first ??= performance.now();
    this.draws = (this.draws || 0) + 1;
    if (player.playing) this.invalidate();
    else if (this.changed) this.panel.tell(player, this.rows || []);
    this.steady = this.pending;
  }

  /** The map and limits of the field that is shown by the legend; null if there is none. */
  scaleField() {
    const { page } = this;
    if (this.colour >= 0) return page.fields[this.colour];
    const painted = page.populations.some((part, k) => part.planes === 4 && this.shown[k]);
    if (page.painted && painted) return page.painted;
    const drawn = page.populations.find((part, k) => part.natural >= 0 && this.shown[k]);
    return drawn ? page.fields[drawn.natural] : null;
  }

  mapOf(field) {
    return field && field.signed ? this.maps.signed : this.maps.sequential;
  }

  prepare() {
    const map = this.mapOf(this.scaleField()).texture;
    for (const layer of this.beads) layer.prepare(this.size, map);
    if (this.smoke) this.smoke.prepare(this.size);
    this.bodies.prepare();
  }

  /** Give all layers the data of a frame. */
  showFrame(frame) {
    const { page, store } = this;
    const [told, bytes] = store.get("x", frame);
    const reader = new Reader(bytes);
    const clouds = [];
    this.rows = [];
    page.populations.forEach((part, k) => this.showParticles(part, k, told.populations[k], reader, frame, clouds));
    page.bodies.forEach((part, k) => {
      const n = told.bodies[k];
      this.bodies.update(k, reader.floats(NUMBERS * n));
      this.bodies.show(k, this.shown[page.populations.length + k]);
      this.rows.push(n);
    });
    if (this.smoke) {
      this.smoke.update(clouds);
      this.smoke.object.visible = clouds.length > 0;
    }
    if (page.surface) this.showSurface(frame);
    const field = this.scaleField();
    this.panel.legend(field, this.mapOf(field).css);
    this.panel.tell(this.player, this.rows);
  }

  showParticles(part, k, told, reader, frame, clouds) {
    const n = told[0];
    const places = reader.places(told);
    const painted = part.planes ? reader.raw(n * part.planes) : null;
    const field = this.fieldOf(part);
    const layer = this.beads[k];
    const puffs = painted && field < 0;
    this.rows.push(n);
    layer.object.visible = this.shown[k] && !puffs && n > 0;
    if (!this.shown[k] || !n) return;
    if (puffs) {
      clouds.push([places, tints(part, painted, n)]);
      return;
    }
    const { fields, small } = this.page;
    let values = null;
    let [low, high] = [0, 1];
    if (field >= 0) {
      values = this.values(field, k, frame);
      [low, high] = fields[field].range;
    }
    // Within smoke, vortons are beads as small as they are weak, so that they do not hide it.
    const shrink = this.colour < 0 && part.natural >= 0 && this.page.puff;
    const sizes = shrink ? (value) => small * Math.cbrt(Math.min(Math.max(value / high, 0), 1)) : null;
    layer.update(places, values, low, high, sizes);
  }

  /** Values of a field for population k: those of the populations before it are passed over. */
  values(field, k, frame) {
    const [told, bytes] = this.store.get(`f${field}`, frame);
    const reader = new Reader(bytes);
    const owners = this.page.fields[field].populations;
    for (let which = 0; which < owners.length; which++) {
      if (owners[which] === k) return reader.values(told[which]);
      const [n, , step] = told[which];
      if (step !== 0) reader.raw(2 * n);
    }
    throw new Error(`population ${k} has no field ${field}`);
  }

  showSurface(frame) {
    const { page, store, surface } = this;
    const shown = this.shown[page.parts.length - 1];
    this.rows.push(null);
    surface.object.visible = false;
    if (!shown) return;
    const [told, bytes] = store.get("s", frame);
    if (!told) return;
    const reader = new Reader(bytes);
    const places = reader.places(told.vertices);
    const triangles = reader.whole(3 * told.triangles, 4);
    const field = this.colour >= 0 && this.colour === page.surface.field ? page.fields[this.colour] : null;
    let colours = null;
    if (field) {
      const { colours: map } = this.mapOf(field);
      const [low, high] = field.range;
      colours = new Float32Array(places.length);
      reader.values(told.speed).forEach((value, i) => {
        const k = Math.round(Math.min(Math.max((value - low) / (high - low), 0), 1) * 255);
        for (let c = 0; c < 3; c++) colours[3 * i + c] = map[3 * k + c] / 255;
      });
    } else if (told.coloured) {
      if (told.speed) reader.values(told.speed); // which stand before the colours
      const n = told.vertices[0];
      const planes = reader.raw(3 * n);
      colours = new Float32Array(3 * n);
      for (let i = 0; i < n; i++) for (let c = 0; c < 3; c++) colours[3 * i + c] = planes[c * n + i] / 255;
    }
    surface.update(places, triangles, colours);
    surface.object.visible = told.triangles > 0;
    this.rows[this.rows.length - 1] = told.triangles;
  }

  /** For tests and the curious. */
  state() {
    const { player, stage } = this;
    return {
      frame: player.frame,
      time: player.times[player.frame],
      playing: player.playing,
      speed: player.speed,
      loaded: this.store.share(this.streams()),
      drawn: !this.changed,
      colour: this.colour < 0 ? null : this.page.fields[this.colour].name,
      rows: this.rows,
      bytes: this.store.size,
      draws: this.draws,
      fine: stage.target === stage.fine,
      level: stage.level, // of coarseness while something moves
      began: this.began, // ms from opening the page to its script, the first picture, and all data of it
      first: this.first,
      all: this.all,
      camera: stage.camera.position.toArray(),
      target: stage.controls.target.toArray(),
    };
  }
}

/** Colours of puffs (4 n bytes) from what was stored: light (1 plane), or red, green, blue and cover (4). */
function tints(part, painted, n) {
  const out = new Uint8Array(4 * n);
  if (part.planes === 4) {
    for (let i = 0; i < n; i++) for (let c = 0; c < 4; c++) out[4 * i + c] = painted[c * n + i];
    return out;
  }
  const table = new Uint8Array(1024);
  for (let k = 0; k < 256; k++) {
    for (let c = 0; c < 3; c++) {
      table[4 * k + c] = Math.round(255 * (part.shade[c] + (k / 255) * (part.lit[c] - part.shade[c])));
    }
    table[4 * k + 3] = 255;
  }
  for (let i = 0; i < n; i++) for (let c = 0; c < 4; c++) out[4 * i + c] = table[4 * painted[i] + c];
  return out;
}

window.ecsFluidPage = {
  start(page) {
    try {
      viewer = new Viewer(page);
    } catch (error) {
      document.getElementById("waiting").hidden = true;
      const trouble = document.getElementById("trouble");
      trouble.hidden = false;
      trouble.textContent = `This page needs WebGL 2, which this browser does not offer now (${error.message}).`;
      throw error;
    }
  },
  put: (...data) => viewer && viewer.store.put(...data),
  state: () => viewer && viewer.state(),
  /** Bytes of data that may be kept in memory. */
  limit: (bytes) => viewer.store.keep(bytes),
};
