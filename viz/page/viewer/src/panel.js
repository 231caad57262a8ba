// What stands around the picture. All names come from a file: they are put in as text, never as markup.

const byId = (id) => document.getElementById(id);

/** A number with four digits at most. */
export function short(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

function option(select, value, text) {
  const item = document.createElement("option");
  item.value = value;
  item.textContent = text;
  select.append(item);
}

export class Panel {
  /** `act`: what the controls do: toggle, go(frame), step(n), speed(s), loop(on), colour(k), size(s), show(k, on), fit. */
  constructor(page, act, speeds) {
    this.page = page;
    this.last = page.times.length - 1;
    byId("title").textContent = page.title;
    this.slider = byId("time");
    this.slider.max = String(this.last);
    this.slider.addEventListener("input", () => act.go(Number(this.slider.value)));
    byId("play").addEventListener("click", () => act.toggle());
    byId("first").addEventListener("click", () => act.go(0));
    byId("back").addEventListener("click", () => act.step(-1));
    byId("next").addEventListener("click", () => act.step(1));
    byId("fit").addEventListener("click", () => act.fit());
    byId("loop").addEventListener("change", (event) => act.loop(event.target.checked));
    const menu = byId("menu");
    menu.addEventListener("click", () => {
      const open = document.body.classList.toggle("open");
      menu.setAttribute("aria-expanded", String(open));
    });
    this.speed = byId("speed");
    for (const speed of speeds) option(this.speed, speed, `${speed}\u00d7`);
    this.speed.addEventListener("change", () => act.speed(Number(this.speed.value)));
    this.colour = byId("colour");
    option(this.colour, "-1", `${page.look_name} look`);
    page.fields.forEach((field, k) => option(this.colour, k, field.name));
    this.colour.value = String(page.colour);
    this.colour.addEventListener("change", () => act.colour(Number(this.colour.value)));
    byId("size").addEventListener("input", (event) => act.size(2 ** Number(event.target.value)));
    byId("size").disabled = !page.populations.length;
    this.switches = page.parts.map((part, k) => this.addSwitch(part, k, act));
  }

  addSwitch(part, k, act) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    const name = document.createElement("span");
    const rows = document.createElement("small");
    box.type = "checkbox";
    box.checked = part.shown;
    name.textContent = part.name;
    label.append(box, name, rows);
    box.addEventListener("change", () => act.show(k, box.checked));
    byId("parts").append(label);
    return { box, rows };
  }

  /** Show time, frame, numbers of rows, and whether it plays. */
  tell(player, rows) {
    const { page } = this;
    this.slider.value = String(player.frame);
    const digits = Math.max(0, Math.min(6, Math.ceil(1 - Math.log10(page.interval))));
    const time = `t = ${page.times[player.frame].toFixed(digits)} s`;
    this.slider.setAttribute("aria-valuetext", time);
    byId("clock").textContent = time;
    byId("frame").textContent = `frame ${player.frame + 1} of ${this.last + 1}`;
    rows.forEach((n, k) => (this.switches[k].rows.textContent = n === null ? "" : n.toLocaleString("en")));
    this.playing(player);
  }

  playing(player) {
    const play = byId("play");
    play.textContent = player.playing ? "\u275a\u275a" : "\u25b6";
    play.setAttribute("aria-label", player.playing ? "pause" : "play");
    if (this.speed.value !== String(player.speed)) this.speed.value = String(player.speed);
  }

  /** Share of the data that is there, and whether the picture waits for some. */
  loading(share, waiting) {
    this.slider.style.setProperty("--there", `${(100 * share).toFixed(1)}%`);
    const text = byId("waiting");
    text.hidden = !waiting;
    text.textContent = `loading ${Math.floor(100 * share)} %`;
  }

  /** The scale of a field, or none. */
  legend(field, css) {
    byId("legend").hidden = !field;
    if (!field) return;
    const [low, high] = field.range;
    byId("field").textContent = field.title;
    byId("scale").style.background = css;
    // Close values, such as densities, need another digit to differ.
    const digits = high - low < 0.1 * Math.abs(high) ? 4 : 3;
    byId("ticks").replaceChildren(
      ...[0, 1, 2, 3].map((k) => {
        const tick = document.createElement("span");
        tick.textContent = short(low + ((high - low) * k) / 3, digits);
        return tick;
      }),
    );
  }

  fail(text) {
    byId("trouble").hidden = false;
    byId("trouble").textContent = text;
  }
}
