"use strict";

const MOST_ROWS = 200; // of the table of what is in use
const MOST_SLOWEST = 12; // steps that are listed with their times

/** What is chosen on the page, and the parts that show it. */
class Page {
  constructor(data) {
    this.data = data;
    this.step = data.peak;
    this.selected = { box: -1, item: -1 };
    this.matches = new Set(); // boxes, and items as their complement
    this.found = [];
    this.turn = -1;
    this.inks = new Map();
    this.ink = (name) => {
      if (!this.inks.has(name)) this.inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
      return this.inks.get(name);
    };
    this.colours = data.colours;
    this.stripes = makeStripes();
    this.memory = new MemoryPicture(this);
    this.graph = new GraphPicture(this);
    this.itemOfStep = new Map(this.graph.items.map((item, i) => [item.step, i]));
    this.memoryView = new Viewport(byId("memory"), this.memory);
    this.graphView = new Viewport(byId("graph"), this.graph);
    this.seconds = data.seconds.reduce((sum, x) => sum + x, 0);
    this.fill();
    this.fillSlowest();
    this.listen();
    this.setStep(data.peak);
    this.select(-1, -1);
    byId("legend").open = innerWidth >= 1000 && innerHeight >= 700;
  }

  colour(block) { return this.colours[block % this.colours.length]; }
  itemOfBox(i) { return this.itemOfStep.get(this.memory.boxes[i].first) ?? -1; }

  fill() {
    const { data } = this, ratio = data.lower_bound ? data.nbytes / data.lower_bound : 1;
    const figures = [["Arena", bytesText(data.nbytes)], ["Lower bound", bytesText(data.lower_bound)], ["Ratio", ratio.toFixed(4)],
      ["Unshared", bytesText(data.unshared)], ["Peak", `${bytesText(data.peak_nbytes)} at step ${data.peak}`], ["Graph", `${this.graph.items.length} nodes, ${this.memory.boxes.length} values`]];
    if (data.seconds.length) figures.push(["Time of all steps", secondsText(this.seconds)]);
    for (const [name, value] of figures) {
      const group = add(byId("figures"), "div");
      add(group, "dt", name);
      add(group, "dd", value);
    }
    byId("figures").title = data.summary;
    const slider = byId("step");
    slider.min = data.first;
    slider.max = data.last;
    for (const [tools, view] of [["memory-tools", this.memoryView], ["graph-tools", this.graphView]]) {
      const centre = (factor) => () => view.zoom(factor, factor, view.width / 2, view.height / 2);
      for (const [sign, about, action] of [["+", "Zoom in", centre(1.5)], ["−", "Zoom out", centre(1 / 1.5)],
        ["Fit", "Show all", () => view.fit()]]) {
        const button = add(byId(tools), "button", sign);
        button.title = about;
        button.addEventListener("click", action);
      }
    }
    const count = this.graph.items.filter((item) => item.folded).length;
    if (!count) return;
    const button = add(byId("graph-tools"), "button", count === 1 ? "1 constant" : `${count} constants`);
    button.id = "constants";
    button.title = "Show or leave out constants and views of them";
    button.addEventListener("click", () => this.fold(!this.graph.folded));
    this.fold(this.graph.folded);
  }

  /** Leave constants out of the graph, or show them. */
  fold(folded) {
    this.graph.fold(folded);
    byId("constants")?.setAttribute("aria-pressed", String(!folded));
    this.graphView.fitted ? this.graphView.fit() : this.graphView.keepInside();
  }

  listen() {
    byId("step").addEventListener("input", (event) => this.setStep(Number(event.target.value)));
    byId("previous").addEventListener("click", () => this.setStep(this.step - 1));
    byId("next").addEventListener("click", () => this.setStep(this.step + 1));
    byId("peak").addEventListener("click", () => this.setStep(this.data.peak));
    byId("search").addEventListener("input", (event) => this.search(event.target.value));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches("input");
      if (event.key === "Escape") this.select(-1, -1);
      if (typing) return;
      if (event.key === "ArrowLeft") this.setStep(this.step - 1);
      if (event.key === "ArrowRight") this.setStep(this.step + 1);
      if (event.key === "/") {
        event.preventDefault();
        byId("search").focus();
      }
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.inks.clear();
      this.redraw();
    });
  }

  redraw() {
    this.memoryView.request();
    this.graphView.request();
  }

  setStep(step) {
    const { data } = this;
    this.step = Math.max(data.first, Math.min(data.last, step));
    byId("step").value = this.step;
    const alive = this.alive();
    let i = 0; // the last change up to this step
    for (let high = data.changes.length; high - i > 1;) {
      const middle = (i + high) >> 1;
      if (data.changes[middle] <= this.step) i = middle;
      else high = middle;
    }
    const time = this.timeOf(this.step);
    byId("step-note").textContent = `step ${this.step} of ${data.last}: ${bytesText(data.in_use[i] || 0)} in use${time && `, ${time}`}`;
    byId("alive-note").textContent = `${alive.length} values at step ${this.step}`;
    this.fillAlive(alive);
    this.redraw();
  }

  /** How long a step takes and its share of all; empty where nobody measured it. */
  timeOf(step) {
    const time = this.data.seconds[step];
    return time === undefined ? "" : `${secondsText(time)}, ${(100 * time / (this.seconds || 1)).toFixed(1)} % of the time`;
  }

  fillSlowest() {
    const { seconds } = this.data, order = seconds.map((_, step) => step).sort((a, b) => seconds[b] - seconds[a]);
    byId("slowest").hidden = !order.length;
    for (const step of order.slice(0, MOST_SLOWEST)) {
      const item = this.itemOfStep.get(step) ?? -1, row = add(byId("slowest-rows"), "tr");
      add(row, "td", item < 0 ? `step ${step}` : this.graph.items[item].name, "name").title = `step ${step}, ${this.timeOf(step)}`;
      add(row, "td", secondsText(seconds[step]), "size");
      row.addEventListener("click", () => {
        this.setStep(step);
        if (item >= 0) this.select(this.graph.items[item].box, item, "both");
      });
    }
  }

  /** Boxes in use at the step, largest first. */
  alive() {
    const found = [];
    this.memory.boxes.forEach((b, i) => {
      if (b.nbytes && b.first <= this.step && this.step <= b.last) found.push(i);
    });
    return found.sort((a, b) => this.memory.boxes[b].nbytes - this.memory.boxes[a].nbytes || a - b);
  }

  fillAlive(alive) {
    const rows = alive.slice(0, MOST_ROWS).map((i) => {
      const b = this.memory.boxes[i], row = document.createElement("tr");
      const swatch = add(add(row, "td", "", "swatch"), "i");
      swatch.style.background = b.is_workspace ? "#9ca3af" : this.colour(b.block);
      add(row, "td", b.name, "name").title = `${b.name} ${b.spec}`;
      add(row, "td", bytesText(b.nbytes), "size");
      row.dataset.box = i;
      row.addEventListener("click", () => this.select(i, this.itemOfBox(i), "both"));
      return row;
    });
    byId("alive").replaceChildren(...rows);
    this.markRow();
  }

  markRow() {
    for (const row of byId("alive").children) row.classList.toggle("selected", Number(row.dataset.box) === this.selected.box);
  }

  /** Choose a box, an item, or the pair; `reveal` names the picture that moves there: memory, graph or both. */
  select(box, item, reveal = "") {
    this.selected = { box, item };
    if (box >= 0 && (reveal === "memory" || reveal === "both")) this.memory.reveal(this.memoryView, box);
    if (item >= 0 && (reveal === "graph" || reveal === "both")) this.graph.reveal(this.graphView, item);
    this.fillSelected();
    this.markRow();
    this.redraw();
  }

  fillSelected() {
    const { box, item } = this.selected, target = byId("selected");
    target.replaceChildren();
    if (box < 0 && item < 0) {
      add(target, "div", "Point at a value to read about it, click to select it in both pictures. The wheel zooms "
        + "(with Shift: steps only; with Alt: bytes only), dragging moves.", "hint");
      return;
    }
    const [title, ...facts] = (item >= 0 && (box < 0 || !this.memory.boxes[box].is_workspace)
      ? this.aboutItem(item) : this.aboutBox(box)).split("\n");
    add(target, "h3", title);
    for (const fact of facts) add(target, "div", fact);
    if (item < 0) return;
    this.addLinks(target, "reads", this.graph.items[item].operands);
    this.addLinks(target, "read by", this.graph.users[item]);
  }

  addLinks(target, title, items) {
    if (!items.length) return;
    add(target, "div", title, "hint");
    for (const i of items.slice(0, 50)) {
      const other = this.graph.items[i], link = add(target, "button", `${other.name} ${other.spec}`, "link");
      link.addEventListener("click", () => this.select(other.box, i, "both"));
    }
    if (items.length > 50) add(target, "div", `and ${items.length - 50} more`);
  }

  aboutBox(i) {
    const { boxes } = this.memory, b = boxes[i];
    const lines = [`${b.name} ${b.spec}`.trim(), `${bytesText(b.nbytes)} at [${b.offset}, ${b.offset + b.nbytes})`,
      `steps ${b.first}..${b.last}`, b.where];
    if (b.over >= 0) lines.push(`takes the bytes of ${boxes[b.over].name} (step ${boxes[b.over].first})`);
    if (b.inside >= 0) lines.push(`made inside ${boxes[b.inside].name} (step ${boxes[b.inside].first})`);
    return lines.filter(Boolean).join("\n");
  }

  aboutItem(i) {
    const item = this.graph.items[i], lines = [];
    const name = item.value ? `${item.name} = ${item.value}` : item.name;
    const owner = item.box >= 0 ? this.memory.boxes[item.box] : null;
    if (item.kind === "op" && owner) lines.push(...this.aboutBox(item.box).split("\n").slice(1));
    else lines.push(bytesText(item.nbytes), item.where);
    if (item.kind === "view") lines.push(owner ? `a view of ${owner.name} (step ${owner.first})` : "a view of a Var or Const");
    if (item.kind === "var") lines.push("Var: bytes outside the arena");
    if (item.kind === "const") lines.push("Const: bytes outside the arena");
    if (item.kind === "op" && this.timeOf(item.step)) lines.push(this.timeOf(item.step));
    if (item.output) lines.push("output");
    return [`${name} ${item.spec}`, ...lines].join("\n");
  }

  tip(text, event) {
    const tip = byId("tip");
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { innerWidth, innerHeight } = window;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  search(text) {
    const wanted = text.trim().toLowerCase();
    const has = (x) => `${x.name} ${x.spec} ${x.where}`.toLowerCase().includes(wanted);
    this.matches = new Set();
    this.found = [];
    this.turn = -1;
    if (wanted) {
      this.graph.items.forEach((item, i) => {
        if (!has(item)) return;
        this.matches.add(~i);
        if (item.box >= 0 && item.kind === "op") this.matches.add(item.box);
        this.found.push([item.box, i]);
      });
      this.memory.boxes.forEach((b, i) => {
        if (!b.is_workspace || !has(b)) return;
        this.matches.add(i);
        this.found.push([i, this.itemOfBox(i)]);
      });
    }
    byId("matches").textContent = !wanted ? "" : `${this.found.length} found`;
    this.redraw();
  }

  nextMatch(by) {
    const count = this.found.length;
    if (!count) return;
    this.turn = (this.turn + by + count) % count;
    byId("matches").textContent = `${this.turn + 1} of ${count}`;
    const [box, item] = this.found[this.turn];
    this.select(box, item, "both");
  }
}

/** Objects of a table's rows, by the names that the table brings along. */
function records({ fields, rows }) {
  return rows.map((row) => Object.fromEntries(row.map((value, i) => [fields[i], value])));
}

function byId(id) { return document.getElementById(id); }

function add(parent, tag, text = "", style = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (style) made.className = style;
  parent.append(made);
  return made;
}

/** The ground of workspaces. */
function makeStripes() {
  const tile = document.createElement("canvas"), pen = tile.getContext("2d");
  tile.width = tile.height = 8;
  pen.fillStyle = "#e5e7eb";
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = "#9ca3af";
  pen.lineWidth = 2;
  for (const x of [-4, 4, 12]) {
    pen.beginPath();
    pen.moveTo(x - 5, 9);
    pen.lineTo(x + 5, -1);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

window.cgraph = new Page(JSON.parse(byId("data").textContent)); // reachable from the console
