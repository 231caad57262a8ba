// The data files: loaded by script tags, because a page opened from a disk may read nothing else; kept while
// they fit into memory.

import { bytesOf, inflated } from "./decode.js";

const AT_ONCE = 4;
const MOST_BYTES = 768 * 2 ** 20;

export class Store {
  /** `groups`: first frame of every group of frames; `changed` is called whenever something arrived. */
  constructor(groups, changed, failed) {
    this.groups = groups;
    this.changed = changed;
    this.failed = failed;
    this.kept = new Map(); // "stream/group" -> { meta, bytes, starts }
    this.coming = new Set();
    this.broken = new Set();
    this.size = 0;
    this.largest = 0;
    this.limit = MOST_BYTES;
    this.streams = [];
    this.group = 0;
  }

  /** Group of a frame. */
  groupOf(frame) {
    let low = 0;
    let high = this.groups.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.groups[middle] <= frame) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What a stream has for a frame: [description, bytes from its beginning]; null if not loaded. */
  get(stream, frame) {
    const group = this.groupOf(frame);
    const found = this.kept.get(`${stream}/${group}`);
    if (!found) return null;
    const which = frame - this.groups[group];
    return [found.meta[which], found.bytes.subarray(found.starts[which])];
  }

  /** Whether all these streams are there for a frame. */
  has(streams, frame) {
    const group = this.groupOf(frame);
    return streams.every((stream) => this.kept.has(`${stream}/${group}`));
  }

  /** Share of the groups of these streams that are there. */
  share(streams) {
    let there = 0;
    for (let group = 0; group < this.groups.length; group++) {
      for (const stream of streams) there += this.kept.has(`${stream}/${group}`);
    }
    return streams.length ? there / (this.groups.length * streams.length) : 1;
  }

  /** Load these streams, from a frame onwards and then from the start. */
  want(streams, frame) {
    this.streams = streams;
    this.group = this.groupOf(frame);
    this.fill();
  }

  fill() {
    const count = this.groups.length;
    for (let ahead = 0; ahead < count; ahead++) {
      const group = (this.group + ahead) % count;
      for (const stream of this.streams) {
        const key = `${stream}/${group}`;
        if (this.kept.has(key) || this.coming.has(key) || this.broken.has(key)) continue;
        if (this.coming.size >= AT_ONCE || !this.room(ahead)) return;
        this.load(stream, group, key);
      }
    }
  }

  /** Keep at most so many bytes from now on. */
  keep(bytes) {
    this.limit = bytes;
    while (this.size > bytes && this.kept.size) this.forget(this.last()[0]);
  }

  forget(key) {
    this.size -= this.kept.get(key).bytes.length;
    this.kept.delete(key);
  }

  /** Whether one more file may be loaded; what will be needed later than it, or not at all, makes room. */
  room(ahead) {
    const full = () => this.size + (this.coming.size + 1) * this.largest > this.limit;
    while (full() && this.kept.size) {
      const [key, last] = this.last();
      if (last <= ahead) return ahead <= 1; // what is needed at once is loaded all the same
      this.forget(key);
    }
    return true;
  }

  /** What is needed last of all that is kept, and in how many groups from now. */
  last() {
    const count = this.groups.length;
    let found = ["", -1];
    for (const key of this.kept.keys()) {
      const [stream, group] = key.split("/");
      const ahead = (Number(group) - this.group + count) % count;
      const late = ahead + (this.streams.includes(stream) ? 0 : count);
      if (late > found[1]) found = [key, late];
    }
    return found;
  }

  load(stream, group, key) {
    this.coming.add(key);
    const script = document.createElement("script");
    script.src = `data/${stream}_${String(group).padStart(5, "0")}.js`;
    script.onload = () => script.remove();
    script.onerror = () => {
      script.remove();
      this.coming.delete(key);
      this.broken.add(key);
      this.failed(script.getAttribute("src"));
    };
    document.head.append(script);
  }

  /** Called by a data file: its stream and group, [description, bytes] of every frame, base64 of zlib. */
  async put(stream, group, frames, text) {
    const key = `${stream}/${group}`;
    try {
      const bytes = await inflated(bytesOf(text));
      const starts = [];
      let at = 0;
      for (const [, length] of frames) {
        starts.push(at);
        at += length;
      }
      this.kept.set(key, { meta: frames.map(([meta]) => meta), bytes, starts });
      this.size += bytes.length;
      this.largest = Math.max(this.largest, bytes.length);
    } catch (error) {
      this.broken.add(key);
      this.failed(`data/${stream}_${String(group).padStart(5, "0")}.js`);
    }
    this.coming.delete(key);
    this.fill();
    this.changed();
  }
}
