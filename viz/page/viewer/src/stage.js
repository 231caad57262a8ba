// Camera, light and canvas. Everything is drawn into a picture of half floats first: puffs of smoke of opacity
// 0.01, thousands behind one another, would be lost in 8 bits per colour.

import {
  AmbientLight,
  ColorManagement,
  CustomBlending,
  DirectionalLight,
  HalfFloatType,
  LinearSRGBColorSpace,
  Mesh,
  NoBlending,
  OneFactor,
  OneMinusSrcAlphaFactor,
  OrthographicCamera,
  PerspectiveCamera,
  PlaneGeometry,
  Scene,
  ShaderMaterial,
  UnsignedByteType,
  Vector2,
  Vector3,
  WebGLRenderer,
  WebGLRenderTarget,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

ColorManagement.enabled = false; // colours are mixed as `ecs-fluid show` does, in display space

export const PREMULTIPLIED = {
  blending: CustomBlending,
  blendSrc: OneFactor,
  blendDst: OneMinusSrcAlphaFactor,
  blendSrcAlpha: OneFactor,
  blendDstAlpha: OneMinusSrcAlphaFactor,
  transparent: true,
  depthWrite: false,
};

export class Stage {
  /** `view`: lo, hi [m], points [m], towards, up, angle [degrees], room; `moved` is called with every change. */
  constructor(canvas, view, light, moved) {
    this.canvas = canvas;
    this.view = view;
    this.points = view.points.map((point) => new Vector3(...point));
    this.renderer = new WebGLRenderer({ canvas, alpha: true, antialias: false, powerPreference: "high-performance" });
    this.renderer.outputColorSpace = LinearSRGBColorSpace;
    this.renderer.setClearColor(0, 0);
    this.scene = new Scene();
    this.camera = new PerspectiveCamera(view.angle, 1, 0.1, 10);
    this.camera.up.set(...view.up);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.15;
    this.controls.addEventListener("change", moved);
    this.controls.addEventListener("start", () => (this.touched = true));
    const key = new DirectionalLight(0xffffff, 0.62 * Math.PI);
    key.position.set(...light);
    this.fill = new DirectionalLight(0xffffff, 0.35 * Math.PI);
    this.scene.add(key, this.fill, new AmbientLight(0xffffff, 0.25 * Math.PI));
    const half = ["EXT_color_buffer_float", "EXT_color_buffer_half_float"].some((name) =>
      this.renderer.getContext().getExtension(name),
    );
    const type = half ? HalfFloatType : UnsignedByteType;
    this.fine = new WebGLRenderTarget(1, 1, { type, samples: 4 });
    this.coarse = new WebGLRenderTarget(1, 1, { type });
    this.target = this.fine;
    this.picture = { value: null };
    [this.level, this.pace, this.paced] = [0, 40, 0];
    this.curtain = new Scene();
    this.curtain.add(
      new Mesh(
        new PlaneGeometry(2, 2),
        new ShaderMaterial({
          uniforms: { picture: this.picture },
          vertexShader: "varying vec2 at; void main() { at = uv; gl_Position = vec4(position.xy, 0.0, 1.0); }",
          // Half a step of noise hides the steps of 8 bits in smooth smoke.
          fragmentShader: `
            uniform sampler2D picture; varying vec2 at;
            float noise(vec2 p) { return fract(sin(dot(p, vec2(12.9898, 78.233))) * 43758.5453); }
            void main() {
              vec4 c = clamp(texture2D(picture, at), 0.0, 1.0);
              c.rgb += (noise(gl_FragCoord.xy) - 0.5) / 255.0 * step(0.002, c.a);
              gl_FragColor = vec4(clamp(c.rgb, 0.0, c.a), c.a);
            }`,
          depthTest: false,
          depthWrite: false,
          blending: NoBlending,
        }),
      ),
    );
    this.flat = new OrthographicCamera(-1, 1, 1, -1, 0, 1);
  }

  /** Fit the canvas to its place on the page, in device pixels; the camera stays unless nobody moved it. */
  resize() {
    const width = Math.max(this.canvas.clientWidth, 1);
    const height = Math.max(this.canvas.clientHeight, 1);
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
    const size = this.renderer.getDrawingBufferSize(new Vector2());
    this.fine.samples = size.x * size.y > 3e6 ? 2 : 4;
    this.fine.setSize(size.x, size.y);
    this.setLevel(this.level);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    if (!this.touched) this.fit();
  }

  /** Device pixels that something of 1 m takes up at a distance of 1 m. */
  get pixels() {
    return this.target.height / (2 * Math.tan((this.camera.fov * Math.PI) / 360));
  }

  /** The nearest place from which all points of the view are seen, in its direction; see viz/camera.py. */
  fit() {
    const { lo, hi, towards, up, room } = this.view;
    const centre = new Vector3(...lo).add(new Vector3(...hi)).multiplyScalar(0.5);
    const back = new Vector3(...towards).normalize();
    const right = new Vector3(...up).cross(back).normalize();
    const above = new Vector3().crossVectors(back, right);
    const tangent = Math.tan((this.camera.fov * Math.PI) / 360);
    const eye = [0, 0, 0];
    [right, above].forEach((axis, k) => {
      const slope = (k ? tangent : tangent * this.camera.aspect) / room[k];
      let most = -Infinity;
      let least = Infinity;
      for (const point of this.points) {
        const from = point.clone().sub(centre);
        const [across, near] = [from.dot(axis), from.dot(back) * slope];
        most = Math.max(most, across + near);
        least = Math.min(least, across - near);
      }
      eye[k] = 0.5 * (most + least);
      eye[2] = Math.max(eye[2], (0.5 * (most - least)) / slope);
    });
    const size = new Vector3(...hi).sub(new Vector3(...lo)).length() || 1;
    eye[2] = Math.max(eye[2], 0.02 * size);
    const place = (z) =>
      centre.clone().addScaledVector(right, eye[0]).addScaledVector(above, eye[1]).addScaledVector(back, z);
    this.size = size;
    this.camera.position.copy(place(eye[2]));
    this.controls.target.copy(place(0));
    this.controls.minDistance = 1e-3 * size;
    this.controls.maxDistance = 50 * Math.max(size, eye[2]);
    this.touched = false;
    this.controls.update();
  }

  /**
   * Choose the picture to draw into: while things move and frames take long, one of fewer pixels, down to a
   * quarter in each direction. True if it is not the fine one, so that another is due when all is at rest.
   */
  choose(moving, interval) {
    if (moving && interval !== null) {
      this.pace = 0.7 * this.pace + 0.3 * Math.min(interval, 500);
      this.paced++;
      if (this.pace > 70 && this.paced > 2 && this.level < 3) this.setLevel(this.pace > 150 ? 3 : this.level + 1);
      if (this.pace < 20 && this.paced > 90 && this.level > 0) this.setLevel(this.level - 1);
    }
    this.target = moving && this.level ? this.coarse : this.fine;
    return this.target === this.coarse;
  }

  setLevel(level) {
    [this.level, this.pace, this.paced] = [level, 40, 0];
    const part = 1 / (1 + level);
    this.coarse.setSize(Math.ceil(this.fine.width * part), Math.ceil(this.fine.height * part));
  }

  draw() {
    const distance = this.camera.position.distanceTo(this.controls.target);
    this.camera.near = Math.max(1e-3 * distance, distance - 3 * this.size);
    this.camera.far = distance + 20 * this.size;
    this.camera.updateProjectionMatrix();
    this.fill.position.copy(this.camera.position).sub(this.controls.target);
    this.renderer.setRenderTarget(this.target);
    this.renderer.clear();
    this.renderer.render(this.scene, this.camera);
    this.picture.value = this.target.texture;
    this.renderer.setRenderTarget(null);
    this.renderer.render(this.curtain, this.flat);
  }
}
