// Time: which frame is shown, and how it goes on.

const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64];

export class Player {
  /** `times` [s] of the frames; `show(frame)` is called when another one is due. */
  constructor(times, interval, show) {
    this.times = times;
    this.interval = interval;
    this.show = show;
    this.last = times.length - 1;
    this.frame = 0;
    this.clock = times[0];
    this.playing = false;
    this.loop = true;
    this.speed = 1;
    // Real time, unless that would be over before one has seen it, or take more than a minute.
    const duration = times[this.last] - times[0] + interval;
    for (const speed of [...SPEEDS].reverse()) if (duration / this.speed < 1) this.speed = Math.min(this.speed, speed);
    for (const speed of SPEEDS) if (duration / this.speed > 60) this.speed = Math.max(this.speed, speed);
  }

  get speeds() {
    return SPEEDS;
  }

  /** Go to a frame; the clock follows. */
  go(frame) {
    this.frame = Math.min(Math.max(Math.round(frame), 0), this.last);
    this.clock = this.times[this.frame];
    this.show(this.frame);
  }

  toggle(playing = !this.playing) {
    if (playing && !this.loop && this.frame === this.last) this.go(0);
    this.playing = playing && this.last > 0;
  }

  /** Let `seconds` of the viewer's time pass; `ready(frame)` says whether a frame can be shown. */
  pass(seconds, ready) {
    if (!this.playing || !ready(this.frame)) return;
    let clock = this.clock + Math.min(seconds, 0.25) * this.speed;
    let next = this.frame;
    while (next < this.last && this.times[next + 1] <= clock) next++;
    if (next === this.last && clock >= this.times[this.last] + this.interval) {
      if (!this.loop) {
        this.playing = false;
        clock = this.times[this.last];
      } else {
        next = 0;
        clock = this.times[0];
      }
    }
    if (next !== this.frame && !ready(next)) return; // time stands still until the data is there
    this.clock = clock;
    if (next !== this.frame) {
      this.frame = next;
      this.show(next);
    }
  }
}
