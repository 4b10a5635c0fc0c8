"use strict";

/**
 * A canvas that the wheel zooms and dragging moves. Places are in the picture's own units ("world"), y downwards.
 *
 * picture: `bounds()` -> [x0, y0, x1, y1]; `draw(pen, viewport)`; `pick(x, y)` -> index or -1; `hover(index, event)`;
 *   `click(index, x, y)`; `start(viewport)`: once, when its size is known; `margins`: [left, top, right, bottom] in pixels; `uniform`: one scale for both axes;
 *   `nearest`: pixels per unit that zooming stops at; `mapped(viewport, px, py)` -> [x, y] of a small map, or null
 */
class Viewport {
  constructor(canvas, picture) {
    this.canvas = canvas;
    this.picture = picture;
    this.pen = canvas.getContext("2d");
    this.scaleX = this.scaleY = 1;
    this.x = this.y = 0; // the world's place at the left top of the margins
    this.width = this.height = 0;
    this.fitted = true; // all is in sight, and stays so when the size changes
    this.started = false;
    this.waiting = false;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  get inner() {
    const [left, top, right, bottom] = this.picture.margins;
    return { left, top, width: Math.max(1, this.width - left - right), height: Math.max(1, this.height - top - bottom) };
  }

  toX(x) { return this.inner.left + (x - this.x) * this.scaleX; }
  toY(y) { return this.inner.top + (y - this.y) * this.scaleY; }
  fromX(px) { return this.x + (px - this.inner.left) / this.scaleX; }
  fromY(py) { return this.y + (py - this.inner.top) / this.scaleY; }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!this.fitted) return this.keepInside();
    this.fit();
    if (!this.started && this.width) {
      this.started = true;
      this.picture.start(this);
    }
    return undefined;
  }

  fit() {
    const [x0, y0, x1, y1] = this.picture.bounds();
    const { width, height } = this.inner;
    this.scaleX = width / Math.max(x1 - x0, 1e-9);
    this.scaleY = height / Math.max(y1 - y0, 1e-9);
    if (this.picture.uniform) {
      this.scaleX = this.scaleY = Math.min(this.scaleX, this.scaleY, 1);
      this.x = (x0 + x1) / 2 - width / 2 / this.scaleX;
      this.y = (y0 + y1) / 2 - height / 2 / this.scaleY;
    } else {
      this.x = x0;
      this.y = y0;
    }
    this.fitted = true;
    this.request();
  }

  /** Zoom by a factor for each axis around a place in pixels. */
  zoom(factorX, factorY, px, py) {
    const x = this.fromX(px), y = this.fromY(py);
    const [x0, y0, x1, y1] = this.picture.bounds();
    const { left, top, width, height } = this.inner;
    const wholeX = width / ((x1 - x0) || 1), wholeY = height / ((y1 - y0) || 1);
    const [mostX, mostY] = this.picture.nearest();
    if (this.picture.uniform) {
      const least = 0.5 * Math.min(wholeX, wholeY, 1);
      this.scaleX = this.scaleY = Math.min(Math.max(this.scaleX * factorX, least), mostX);
    } else {
      this.scaleX = Math.min(Math.max(this.scaleX * factorX, wholeX), Math.max(mostX, wholeX));
      this.scaleY = Math.min(Math.max(this.scaleY * factorY, wholeY), Math.max(mostY, wholeY));
    }
    this.x = x - (px - left) / this.scaleX;
    this.y = y - (py - top) / this.scaleY;
    this.fitted = false;
    this.keepInside();
  }

  /** Bring a place into the middle, unless all around it is in sight already. */
  show(x0, y0, x1, y1) {
    const { width, height } = this.inner;
    const spanX = width / this.scaleX, spanY = height / this.scaleY;
    if (x0 >= this.x && x1 <= this.x + spanX && y0 >= this.y && y1 <= this.y + spanY) return this.request();
    return this.centre((x0 + x1) / 2, (y0 + y1) / 2);
  }

  keepInside() {
    const [x0, y0, x1, y1] = this.picture.bounds();
    const { width, height } = this.inner;
    const spare = this.picture.uniform ? 0.5 : 0; // of a screen, beyond the picture
    const hold = (at, low, high, span) => {
      const slack = spare * span;
      return Math.max(low - slack, Math.min(at, Math.max(high - span, low) + slack));
    };
    this.x = hold(this.x, x0, x1, width / this.scaleX);
    this.y = hold(this.y, y0, y1, height / this.scaleY);
    this.request();
  }

  /** Draw once before the next frame, however often asked. */
  request() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.width || !this.height) return;
      this.pen.clearRect(0, 0, this.width, this.height);
      this.picture.draw(this.pen, this);
    });
  }

  /** Go to what a pointer shows on the picture's small map, if it has one there. */
  toMapped(event) {
    const place = this.picture.mapped(this, event.offsetX, event.offsetY);
    if (!place) return false;
    this.centre(...place);
    return true;
  }

  /** Bring a place into the middle. */
  centre(x, y) {
    this.x = x - this.inner.width / this.scaleX / 2;
    this.y = y - this.inner.height / this.scaleY / 2;
    this.fitted = false;
    this.keepInside();
  }

  listen() {
    const { canvas, picture } = this;
    let start = null, onMap = false;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const factor = Math.exp(-Math.max(-200, Math.min(200, event.deltaY || event.deltaX)) * 0.002);
      const acrossOnly = event.shiftKey, upOnly = event.altKey;
      this.zoom(upOnly ? 1 : factor, acrossOnly ? 1 : factor, event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      onMap = this.toMapped(event);
      if (onMap) return;
      start = { px: event.offsetX, py: event.offsetY, x: this.x, y: this.y, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (onMap) return this.toMapped(event);
      const x = this.fromX(event.offsetX), y = this.fromY(event.offsetY);
      if (!start) {
        const found = picture.pick(x, y, event);
        canvas.classList.toggle("over", found >= 0);
        return picture.hover(found, event);
      }
      const dx = event.offsetX - start.px, dy = event.offsetY - start.py;
      if (!start.moved && Math.hypot(dx, dy) < 4) return undefined;
      start.moved = true;
      canvas.classList.add("moving");
      picture.hover(-1, event);
      this.fitted = false;
      this.x = start.x - dx / this.scaleX;
      this.y = start.y - dy / this.scaleY;
      return this.keepInside();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (onMap) {
        onMap = false;
        return;
      }
      const clicked = start && !start.moved;
      start = null;
      canvas.classList.remove("moving");
      const x = this.fromX(event.offsetX), y = this.fromY(event.offsetY);
      if (clicked) picture.click(picture.pick(x, y, event), x, y);
    });
    canvas.addEventListener("pointercancel", () => { start = null; onMap = false; });
    canvas.addEventListener("pointerleave", (event) => picture.hover(-1, event));
    canvas.addEventListener("dblclick", () => this.fit());
  }
}

/** A byte count for people, as `bytes_text` in Python. */
function bytesText(nbytes) {
  let size = nbytes, unit = "B";
  for (const next of ["KiB", "MiB", "GiB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${size.toFixed(Number.isInteger(size) ? 0 : size >= 100 ? 1 : 2)} ${unit}`;
}

/** A time for people, as `seconds_text` in Python. */
function secondsText(seconds) {
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, size]) => seconds >= size) || ["µs", 1e-6];
  return `${+(seconds / size).toPrecision(3)} ${unit}`;
}

/** As much of a text as fits in some pixels, as `fit_name` in Python: the last parts of a path say most. */
function fitted(text, pixels, letter) {
  const room = Math.floor(pixels / letter);
  if (text.length <= room) return text;
  const name = text.replace(/ \([^()]*\)/, ""), parts = name.split(/(?<=[./])/);
  for (let i = 0; i < parts.length; i++) {
    const tail = parts.slice(i).join("");
    if (tail.length <= room && /[^\d.]/.test(tail)) return tail; // a number alone says nothing
  }
  return room >= 8 ? `${parts[parts.length - 1].slice(0, room - 1)}…` : "";
}

/** Dark or light text: whichever is read more easily on a colour drawn over the ground with this opacity. */
function textOn(colour, opacity, ground) {
  const below = channels(ground);
  const [red, green, blue] = channels(colour).map((x, i) => ((x * opacity + below[i] * (1 - opacity)) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#111827" : "#f8fafc";
}

/** The red, green and blue of ``#rrggbb``. */
function channels(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
}
