"use strict";

/** The plan of the memory: one rectangle for each value; below it the bytes in use. */
class MemoryPicture {
  constructor(page) {
    this.page = page;
    this.boxes = records(page.data.boxes);
    this.reserved = records(page.data.reserved);
    this.margins = [74, 12, 14, 92];
    this.uniform = false;
    this.top = Math.max(page.data.nbytes, 1);
  }

  bounds() {
    const { first, last } = this.page.data;
    return [first, 0, last + 1, this.top];
  }

  nearest() { return [400, 400]; }

  pick(x, y) {
    const at = this.top - y;
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const b = this.boxes[i];
      if (x >= b.first && x < b.last + 1 && at >= b.offset && at < b.offset + b.nbytes) return i;
    }
    return -1;
  }

  start() {}
  mapped() { return null; }

  hover(i, event) { this.page.tip(i < 0 ? "" : this.page.aboutBox(i), event); }

  click(i, x) {
    if (i < 0) this.page.setStep(Math.floor(x));
    this.page.select(i, i < 0 ? -1 : this.page.itemOfBox(i), "graph");
  }

  /** Left, top, width and height in pixels. */
  place(view, offset, nbytes, first, last) {
    const x = view.toX(first), y = view.toY(this.top - offset - nbytes);
    return [x, y, view.toX(last + 1) - x, view.toY(this.top - offset) - y];
  }

  reveal(view, i) {
    const b = this.boxes[i];
    view.show(b.first, this.top - b.offset - b.nbytes, b.last + 1, this.top - b.offset);
  }

  draw(pen, view) {
    const { left, top, width, height } = view.inner;
    this.drawGrid(pen, view);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    for (const { offset, nbytes, first, last, block } of this.reserved) {
      pen.fillStyle = this.page.colour(block);
      pen.globalAlpha = 0.25;
      pen.fillRect(...this.place(view, offset, nbytes, first, last));
    }
    pen.globalAlpha = 1;
    const labels = [];
    this.boxes.forEach((b, i) => this.drawBox(pen, view, b, i, labels));
    pen.font = "11px system-ui, sans-serif";
    for (const [text, x, y, turned, dye] of labels) {
      pen.fillStyle = dye;
      turned ? upright(pen, text, x, y) : pen.fillText(text, x, y);
    }
    this.drawMarks(pen, view);
    pen.restore();
    this.drawUse(pen, view);
    this.drawStep(pen, view);
  }

  drawBox(pen, view, b, i, labels) {
    if (!b.nbytes) return;
    const { left, top, width, height } = view.inner;
    const [x, y, w, h] = this.place(view, b.offset, b.nbytes, b.first, b.until);
    if (x > left + width || x + w < left || y > top + height || y + h < top) return;
    const { step, ink } = this.page;
    const alive = b.first <= step && step <= b.last;
    const opacity = alive ? 1 : 0.72;
    pen.globalAlpha = opacity;
    pen.fillStyle = b.is_workspace ? this.page.stripes : this.page.colour(b.block);
    const gap = w > 4 && h > 4 ? 1 : 0;
    pen.fillRect(x, y, Math.max(w - gap, 0.6), Math.max(h - gap, 0.6));
    pen.globalAlpha = 1;
    if (b.over >= 0 && w > 7 && h > 3) {
      pen.fillStyle = "#111827b0";
      pen.fillRect(x - 0.5, y, 1.5, h - gap);
    }
    if (this.page.matches.has(i)) this.outline(pen, ink("--match"), Math.min(2.5, Math.max(0.6, w / 4)), x, y, w, h);
    const from = Math.max(x, left), to = Math.min(x + w, left + width), low = Math.min(y + h, top + height);
    const across = h < 13 ? "" : fitted(b.name, to - from - 8, 6.4);
    const dye = textOn(b.is_workspace ? "#c4c8ce" : this.page.colour(b.block), opacity, ink("--ground"));
    if (across) return labels.push([across, from + 4, Math.max(y, top) + 12, false, dye]);
    const along = to - from < 13 ? "" : fitted(b.name, low - Math.max(y, top) - 8, 6.4);
    if (along) labels.push([along, from + 11, low - 4, true, dye]);
    return undefined;
  }

  outline(pen, colour, width, x, y, w, h) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.strokeRect(x, y, Math.max(w - 1, 1), Math.max(h - 1, 1));
  }

  drawMarks(pen, view) {
    const { data, ink, selected } = this.page;
    const bound = view.toY(this.top - data.lower_bound), { left, width } = view.inner;
    for (const x of selected.item < 0 ? [] : this.page.graph.items[selected.item].operands) {
      const read = this.boxes[this.page.graph.items[x].box];
      if (read) this.outline(pen, ink("--accent"), 2, ...this.place(view, read.offset, read.nbytes, read.first, read.until));
    }
    if (selected.box >= 0) {
      const b = this.boxes[selected.box];
      this.outline(pen, ink("--ink"), 3, ...this.place(view, b.offset, b.nbytes, b.first, b.until));
    }
    pen.strokeStyle = ink("--peak");
    pen.lineWidth = 1.5;
    pen.setLineDash([7, 4]);
    pen.beginPath();
    pen.moveTo(left, bound);
    pen.lineTo(left + width, bound);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = ink("--peak");
    pen.globalAlpha = 0.1;
    const peak = view.toX(data.peak), wide = Math.max(view.scaleX, 2);
    pen.fillRect(peak, 0, wide, view.height);
    pen.globalAlpha = 1;
    this.drawPeak(pen, peak + wide / 2, view.inner);
  }

  /** A mark above the step with the most bytes, however narrow it is. */
  drawPeak(pen, x, { left, top, width }) {
    pen.beginPath();
    pen.moveTo(x, top + 8);
    pen.lineTo(x - 5, top);
    pen.lineTo(x + 5, top);
    pen.fill();
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = x > left + width / 2 ? "right" : "left";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = this.page.ink("--ground"); // the name of a value may stand behind it
    pen.strokeText("peak", x + (x > left + width / 2 ? -8 : 8), top + 10);
    pen.fillText("peak", x + (x > left + width / 2 ? -8 : 8), top + 10);
    pen.textAlign = "left";
  }

  drawGrid(pen, view) {
    const { ink } = this.page, { left, top, width, height } = view.inner;
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textAlign = "right";
    const low = this.top - view.fromY(top + height), high = this.top - view.fromY(top);
    const [size, unit] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].find(([n]) => high >= n) || [1, "B"];
    let tick = 1;
    while ((high - low) / tick > 9) tick *= 2;
    for (let at = Math.ceil(low / tick) * tick; at <= high; at += tick) {
      const y = Math.round(view.toY(this.top - at)) + 0.5;
      pen.strokeStyle = ink("--line");
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(left + width, y);
      pen.stroke();
      pen.fillStyle = ink("--soft");
      pen.fillText(`${+(at / size).toPrecision(6)} ${unit}`, left - 6, y + 4);
    }
    pen.textAlign = "left";
  }

  /** The strip of bytes in use, with the steps below it. */
  drawUse(pen, view) {
    const { data, ink } = this.page, { left, top, width, height } = view.inner;
    const ground = top + height + 62, tall = 46 / Math.max(data.peak_nbytes, 1);
    pen.save();
    pen.beginPath();
    pen.rect(left, top + height, width, 80);
    pen.clip();
    pen.beginPath();
    pen.moveTo(view.toX(data.first), ground);
    let y = ground;
    data.changes.forEach((step, i) => {
      const x = view.toX(step);
      pen.lineTo(x, y);
      y = ground - data.in_use[i] * tall;
      pen.lineTo(x, y);
    });
    pen.fillStyle = ink("--use");
    pen.fill();
    pen.fillStyle = ink("--peak");
    pen.globalAlpha = 0.25;
    pen.fillRect(view.toX(data.peak), ground - 50, Math.max(view.scaleX, 2), 50);
    pen.restore();
    pen.fillStyle = ink("--soft");
    pen.textAlign = "right";
    pen.fillText("in use", left - 6, ground - 18);
    pen.textAlign = "center";
    this.drawSteps(pen, view, ground);
    pen.textAlign = "left";
  }

  drawSteps(pen, view, ground) {
    const { left, width } = view.inner;
    const low = view.fromX(left), high = view.fromX(left + width);
    let tick = 1;
    for (let i = 0; (high - low) / tick > width / 70; i++) tick *= [2, 2.5, 2][i % 3];
    for (let at = Math.ceil(low / tick) * tick; at < high; at += tick) {
      const x = view.toX(at + (view.scaleX > 14 ? 0.5 : 0));
      if (x <= left + width) pen.fillText(String(at), x, ground + 16);
    }
  }

  drawStep(pen, view) {
    const { ink, step } = this.page, { left, top, width, height } = view.inner;
    const x = view.toX(step), w = Math.max(view.scaleX, 1.5);
    if (x + w < left || x > left + width) return;
    pen.fillStyle = ink("--accent");
    pen.globalAlpha = 0.16;
    pen.fillRect(Math.max(x, left), top, w, height + 62);
    pen.globalAlpha = 1;
    pen.fillRect(Math.max(x, left), top, 1.5, height + 62);
  }
}

/** Text that is read from below. */
function upright(pen, text, x, y) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-Math.PI / 2);
  pen.fillText(text, 0, 0);
  pen.restore();
}
