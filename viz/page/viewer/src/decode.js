// What viz/page/codec.py wrote, back to numbers.

/** Bytes of base64 text. */
export function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Bytes of a zlib stream. */
export async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads one blob from its beginning to its end. */
export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  /** The next n bytes themselves. */
  raw(n) {
    const part = this.bytes.subarray(this.at, this.at + n);
    this.at += n;
    return part;
  }

  /** n whole numbers of `width` bytes: differences, high bytes of all first. */
  whole(n, width) {
    const { bytes, at } = this;
    const out = width === 2 ? new Uint16Array(n) : new Uint32Array(n);
    let value = 0;
    if (width === 2) {
      for (let i = 0; i < n; i++) out[i] = value = (value + (bytes[at + i] << 8) + bytes[at + n + i]) & 65535;
    } else {
      for (let i = 0; i < n; i++) {
        const step =
          (bytes[at + i] << 24) | (bytes[at + n + i] << 16) | (bytes[at + 2 * n + i] << 8) | bytes[at + 3 * n + i];
        out[i] = value = (value + step) | 0;
      }
    }
    this.at += n * width;
    return out;
  }

  /** n places as x, y, z, x, ... of `[n, width, low, step]`. */
  places([n, width, low, step]) {
    const out = new Float32Array(3 * n);
    for (let axis = 0; axis < 3; axis++) {
      const counts = this.whole(n, width);
      for (let i = 0; i < n; i++) out[3 * i + axis] = low[axis] + step[axis] * counts[i];
    }
    return out;
  }

  /** n numbers of `[n, low, step]`; NaN where there was none. */
  values([n, low, step]) {
    const out = new Float32Array(n);
    if (step === 0) return out.fill(low === null ? NaN : low);
    const counts = this.whole(n, 2);
    for (let i = 0; i < n; i++) out[i] = counts[i] === 65535 ? NaN : low + step * counts[i];
    return out;
  }

  /** n 32-bit floats. */
  floats(n) {
    const bytes = this.raw(4 * n).slice();
    return new Float32Array(bytes.buffer, 0, n);
  }
}
