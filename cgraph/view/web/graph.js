"use strict";

const NODE_WIDTH = 128, NODE_HEIGHT = 42, COLUMN = 146, ROW = 78;
const NEAR = 0.3; // scale below which names cannot be read
const MAPPED = 0.5; // share of the graph in sight below which there is a small map of the whole
const MAP_WIDTH = 150, MAP_LEAST = 24; // of the map, in pixels
const LONG = 6; // layers; longer edges are paler
const GROUP_PARTS = 2; // of a path: nodes whose paths begin alike are one group

/** The graph in layers: operands above users, colours by block. */
class GraphPicture {
  constructor(page) {
    this.page = page;
    this.items = records(page.data.items);
    this.updates = records(page.data.updates);
    this.users = this.items.map(() => []);
    this.items.forEach((item, i) => {
      for (const x of item.operands) this.users[x].push(i);
    });
    this.margins = [0, 0, 0, 0];
    this.uniform = true;
    this.groupOf = this.items.map((item) => (item.kind === "var" || item.kind === "const" ? "" : groupOf(item.name)));
    this.fold(this.items.some((item) => !item.folded));
  }

  /** Show constants, or leave them out. */
  fold(folded) {
    this.folded = folded;
    for (const item of this.items) {
      item.x = (folded ? item.column : item.whole_column) * COLUMN;
      item.y = (folded ? item.layer : item.whole_layer) * ROW;
      item.hidden = folded && item.folded === 1;
    }
    this.box = this.extent();
    this.groups = this.gathered();
  }

  /** The groups of layers: name and extent of nodes whose paths begin alike, where they follow one another. */
  gathered() {
    const groups = [], last = new Map();
    this.items.forEach(({ x, y, hidden }, i) => {
      const name = this.groupOf[i];
      if (!name || hidden) return;
      let group = last.get(name);
      if (!group || y - group.y1 > LONG * ROW) {
        group = { name, x0: x, y0: y, x1: x, y1: y, count: 0 };
        last.set(name, group);
        groups.push(group);
      }
      group.count++;
      group.x0 = Math.min(group.x0, x);
      group.x1 = Math.max(group.x1, x);
      group.y0 = Math.min(group.y0, y);
      group.y1 = Math.max(group.y1, y);
    });
    return groups.sort((before, after) => before.y0 - after.y0);
  }

  extent() {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y, hidden } of this.items) {
      if (hidden) continue;
      x0 = Math.min(x0, x);
      x1 = Math.max(x1, x);
      y0 = Math.min(y0, y);
      y1 = Math.max(y1, y);
    }
    if (x0 > x1) return [0, 0, 1, 1];
    return [x0 - NODE_WIDTH, y0 - NODE_HEIGHT, x1 + NODE_WIDTH, y1 + NODE_HEIGHT];
  }

  bounds() { return this.box; }
  nearest() { return [3, 3]; }

  pick(x, y) {
    for (let i = this.items.length - 1; i >= 0; i--) {
      const item = this.items[i];
      if (item.hidden) continue;
      if (Math.abs(item.x - x) <= NODE_WIDTH / 2 && Math.abs(item.y - y) <= NODE_HEIGHT / 2) return i;
    }
    return -1;
  }

  /** A large graph begins at the peak, near enough to read. */
  start(view) {
    const i = this.page.itemOfStep.get(this.page.data.peak);
    if (view.scaleX < NEAR && i !== undefined) this.reveal(view, i);
  }

  hover(i, event) { this.page.tip(i < 0 ? "" : this.page.aboutItem(i), event); }
  click(i) { this.page.select(i < 0 ? -1 : this.items[i].box, i, "memory"); }

  reveal(view, i) {
    if (this.items[i].hidden) this.page.fold(false);
    const { x, y } = this.items[i];
    if (view.scaleX < NEAR) view.zoom(0.75 / view.scaleX, 1, view.width / 2, view.height / 2);
    view.show(x - NODE_WIDTH, y - NODE_HEIGHT * 2, x + NODE_WIDTH, y + NODE_HEIGHT * 2);
  }

  draw(pen, view) {
    const sight = [view.fromX(0), view.fromY(0), view.fromX(view.width), view.fromY(view.height)];
    const { ink, selected } = this.page;
    this.drawGroups(pen, view, sight);
    pen.lineWidth = Math.max(0.5, Math.min(1.4, view.scaleX * 1.6));
    const isLong = (x, i) => this.items[i].y - this.items[x].y > LONG * ROW;
    const isShown = (x, i) => !this.items[x].hidden && !this.items[i].hidden;
    const edges = (long) => (i) => this.items[i].operands.filter((x) => isShown(x, i) && isLong(x, i) === long)
      .map((x) => [x, i]);
    pen.globalAlpha = 0.3;
    this.drawEdges(pen, view, sight, ink("--edge"), edges(true));
    pen.globalAlpha = 1;
    this.drawEdges(pen, view, sight, ink("--edge"), edges(false));
    this.drawUpdates(pen, view);
    if (selected.item >= 0) {
      pen.lineWidth = Math.max(1.5, 2.2 * view.scaleX);
      const near = [...this.items[selected.item].operands.map((x) => [x, selected.item]),
        ...this.users[selected.item].map((user) => [selected.item, user])].filter(([x, i]) => isShown(x, i));
      this.drawEdges(pen, view, sight, ink("--accent"), (i) => (i === selected.item ? near : []));
    }
    this.items.forEach((item, i) => {
      const { x, y, hidden } = item;
      if (hidden) return;
      if (x + NODE_WIDTH < sight[0] || x - NODE_WIDTH > sight[2]) return;
      if (y + NODE_HEIGHT < sight[1] || y - NODE_HEIGHT > sight[3]) return;
      this.drawNode(pen, view, item, i);
    });
    this.drawMap(pen, view);
  }

  /** A ground behind each group, with its name beside it; from afar, where nodes have no names, these remain. */
  drawGroups(pen, view, sight) {
    const { ink } = this.page;
    let free = -Infinity; // pixels below the last name
    pen.font = "11px system-ui, sans-serif";
    for (const { name, x0, y0, x1, y1, count } of this.groups) {
      if (count < 2 || y1 + ROW < sight[1] || y0 - ROW > sight[3]) continue;
      const near = Math.max(NODE_WIDTH * 0.62, 9 / view.scaleX);
      const left = view.toX(x0 - near), right = view.toX(x1 + near);
      const top = view.toY(y0 - ROW * 0.42), bottom = view.toY(y1 + ROW * 0.42);
      pen.fillStyle = ink("--panel");
      pen.strokeStyle = ink("--line");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.roundRect(left, top, right - left, bottom - top, Math.min(6, (bottom - top) / 2));
      pen.fill();
      pen.stroke();
      const at = bottom - top < 16 ? (top + bottom) / 2 + 4 : Math.min(Math.max(top + 12, 12), bottom - 2);
      if (at < Math.max(free, 8)) continue;
      pen.fillStyle = ink("--soft");
      pen.textAlign = "right";
      pen.fillText(name, left - 6, at);
      free = at + 13;
    }
    pen.textAlign = "left";
  }

  /** Where the small map of the whole graph stands, when much of it is out of sight: left, top and scale. */
  map(view) {
    const [x0, y0, x1, y1] = this.box, { width, height } = view;
    const part = Math.min(1, width / view.scaleX / (x1 - x0)) * Math.min(1, height / view.scaleY / (y1 - y0));
    if (part > MAPPED) return null;
    const scale = Math.min(MAP_WIDTH / (x1 - x0), (height * 0.6) / (y1 - y0));
    const wide = Math.max((x1 - x0) * scale, MAP_LEAST), tall = (y1 - y0) * scale;
    return { left: width - wide - 10, top: 10, wide, tall, scaleX: wide / (x1 - x0), scaleY: scale };
  }

  drawMap(pen, view) {
    const map = this.map(view);
    if (!map) return;
    const { ink, selected, step } = this.page, [x0, y0] = this.box;
    const toX = (x) => map.left + (x - x0) * map.scaleX, toY = (y) => map.top + (y - y0) * map.scaleY;
    pen.globalAlpha = 0.92;
    pen.fillStyle = ink("--panel");
    pen.fillRect(map.left - 4, map.top - 4, map.wide + 8, map.tall + 8);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink("--line");
    pen.lineWidth = 1;
    pen.strokeRect(map.left - 4, map.top - 4, map.wide + 8, map.tall + 8);
    const w = Math.max(2, NODE_WIDTH * map.scaleX), h = Math.max(1, NODE_HEIGHT * map.scaleY);
    this.items.forEach((item, i) => {
      if (item.hidden) return;
      const strong = i === selected.item || item.step === step;
      pen.fillStyle = strong ? ink("--accent") : item.box >= 0 ? this.page.colour(item.block) : ink("--edge");
      const grown = strong ? 2 : 0;
      pen.fillRect(toX(item.x) - w / 2 - grown, toY(item.y) - h / 2 - grown, w + 2 * grown, h + 2 * grown);
    });
    const bound = (at, low, span) => Math.max(low - 4, Math.min(at, low + span + 4));
    const left = bound(toX(view.fromX(0)), map.left, map.wide), right = bound(toX(view.fromX(view.width)), map.left, map.wide);
    const top = bound(toY(view.fromY(0)), map.top, map.tall), bottom = bound(toY(view.fromY(view.height)), map.top, map.tall);
    pen.strokeStyle = ink("--ink");
    pen.lineWidth = 1.5;
    pen.strokeRect(left, top, right - left, bottom - top);
  }

  /** The place in the graph that a place on the small map shows; null beside it. */
  mapped(view, px, py) {
    const map = this.map(view);
    if (!map || px < map.left - 4 || px > map.left + map.wide + 4 || py < map.top - 4 || py > map.top + map.tall + 4) return null;
    return [this.box[0] + (px - map.left) / map.scaleX, this.box[1] + (py - map.top) / map.scaleY];
  }

  drawEdges(pen, view, sight, colour, edgesOf) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.beginPath();
    const heads = [];
    for (let i = 0; i < this.items.length; i++) {
      for (const [a, b] of edgesOf(i)) {
        const from = this.items[a], to = this.items[b];
        if (Math.max(from.x, to.x) + COLUMN * 2 < sight[0] || Math.min(from.x, to.x) - COLUMN * 2 > sight[2]) continue;
        if (to.y < sight[1] || from.y > sight[3]) continue;
        this.traceEdge(pen, view, from, to);
        heads.push(to);
      }
    }
    pen.stroke();
    if (view.scaleX > 0.4) for (const to of heads) this.drawHead(pen, view.toX(to.x), view.toY(to.y - NODE_HEIGHT / 2), view.scaleX);
  }

  /** A curve from a node's lower edge to a user's upper one; it goes round the nodes between two of one column. */
  traceEdge(pen, view, from, to) {
    const span = (to.y - from.y) / ROW;
    const y0 = from.y + NODE_HEIGHT / 2, y1 = to.y - NODE_HEIGHT / 2;
    const aside = span > 1.5 && Math.abs(to.x - from.x) < NODE_WIDTH ? NODE_WIDTH * 0.9 + Math.min(span, 30) * 4 : 0;
    const reach = aside ? Math.min(ROW, (y1 - y0) / 3) : (y1 - y0) / 2;
    pen.moveTo(view.toX(from.x), view.toY(y0));
    pen.bezierCurveTo(
      view.toX(from.x + aside), view.toY(y0 + reach), view.toX(to.x + aside), view.toY(y1 - reach),
      view.toX(to.x), view.toY(y1),
    );
  }

  drawHead(pen, x, y, scale) {
    const size = 5 * Math.min(scale, 1.4);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x - size, y - size * 1.6);
    pen.lineTo(x + size, y - size * 1.6);
    pen.fill();
  }

  drawUpdates(pen, view) {
    const { ink, selected } = this.page;
    pen.strokeStyle = ink("--peak");
    pen.setLineDash([6, 4]);
    for (const { source, target } of this.updates) {
      const from = this.items[source], to = this.items[target];
      const isClear = [source, target].includes(selected.item) || Math.abs(to.y - from.y) <= LONG * ROW;
      pen.globalAlpha = isClear ? 1 : 0.2;
      pen.beginPath();
      const side = Math.max(from.x, to.x) + COLUMN;
      pen.moveTo(view.toX(from.x), view.toY(from.y));
      pen.bezierCurveTo(
        view.toX(side), view.toY(from.y), view.toX(side), view.toY(to.y), view.toX(to.x), view.toY(to.y),
      );
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  }

  drawNode(pen, view, item, i) {
    const { ink, matches, selected, step } = this.page, scale = view.scaleX;
    const w = NODE_WIDTH * scale, h = NODE_HEIGHT * scale;
    const x = view.toX(item.x) - w / 2, y = view.toY(item.y) - h / 2;
    const box = item.box >= 0 ? this.page.memory.boxes[item.box] : null;
    pen.fillStyle = ink("--ground");
    const round = item.kind === "var" ? h / 2 : item.kind === "const" ? 0 : 7 * scale;
    pen.beginPath();
    pen.roundRect(x, y, w, h, round);
    pen.fill(); // hides the edges below a node that is pale
    const pale = box && !(box.first <= step && step <= box.last);
    const opacity = pale ? 0.45 : 1;
    pen.globalAlpha = opacity;
    const fill = box ? this.page.colour(item.block) : ink(item.kind === "var" ? "--leaf" : "--const");
    pen.fillStyle = fill;
    pen.fill();
    pen.globalAlpha = 1;
    this.drawOutline(pen, item, scale, [x, y, w, h, round], selected.item === i ? ink("--ink")
      : item.step === step ? ink("--accent") : matches.has(~i) ? ink("--match") : null);
    if (scale > 0.28) this.drawText(pen, item, x, y, w, scale, textOn(fill, opacity, ink("--ground")));
  }

  drawOutline(pen, item, scale, [x, y, w, h, round], strong) {
    pen.strokeStyle = strong || this.page.ink("--edge");
    pen.lineWidth = strong ? 3 : 1;
    if (item.kind === "view") pen.setLineDash([4, 3]);
    pen.stroke();
    pen.setLineDash([]);
    if (!item.output) return;
    const gap = 3.5 * Math.max(scale, 0.4);
    pen.lineWidth = strong ? 2 : 1;
    pen.beginPath();
    pen.roundRect(x - gap, y - gap, w + 2 * gap, h + 2 * gap, round + gap);
    pen.stroke();
  }

  drawText(pen, item, x, y, w, scale, dye) {
    const name = item.value ? `${item.name} = ${item.value}` : item.name;
    pen.fillStyle = dye;
    pen.textAlign = "center";
    pen.font = `600 ${12 * scale}px system-ui, sans-serif`;
    pen.fillText(fitted(name, (w / scale - 12), 6.9), x + w / 2, y + 17 * scale, w - 8 * scale);
    if (scale > 0.45) {
      pen.font = `${10.5 * scale}px system-ui, sans-serif`;
      pen.fillText(fitted(item.spec, (w / scale - 12), 5.6), x + w / 2, y + 32 * scale);
    }
    pen.textAlign = "left";
  }
}

/** The first parts of a node's path, without its kind: ``parts.4`` of ``parts.4.conv (stream)``; empty without a path. */
function groupOf(name) {
  const path = name.replace(/ \([^()]*\)$/, "").replace(/^(gradient|update) of /, "").split(/[./]/), parts = path.filter(Boolean);
  return parts.length < 2 ? "" : parts.slice(0, GROUP_PARTS).join(".");
}
