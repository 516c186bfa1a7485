// The timeline of one Service: a lane for each track, in time, at any zoom.

const laneH = 20, labelW = 190, axisH = 30;

// How important a class is: within one pixel the highest is shown, as on the screen.
const ranks = ["empty", "existed", "had", "agrees", "blind", "gap", "behind", "stale", "stopped", "ready", "pending", "starting", "terminating", "unready", "span", "point", "alert"];
// Where a class is drawn in its lane: [top, height]. Shapes differ, not only colours.
const shapes = {
  agrees: [8, 4], ready: [7, 6], behind: [5, 10], stale: [2, 16], gap: [3, 14], blind: [9, 2], had: [7, 6], existed: [9, 2],
  stopped: [9, 2], pending: [9, 2], starting: [8, 4], unready: [5, 10], terminating: [5, 10], span: [6, 8],
};

class Timeline {
  constructor(box, data, service, filter) {
    Object.assign(this, { box, data, service, filter });
    this.full = { from: 0, to: Math.max(data.end, 1) };
    const pad = (this.full.to - this.full.from) * 0.01;
    this.full = { from: -pad, to: this.full.to + pad };
    this.view = { ...this.full };
    this.svg = draw("svg", { role: "img", tabindex: "0" });
    box.replaceChildren(this.svg);
    this.listen();
    this.busy();
  }

  // busy shows where something happened, when that is a small part of the whole.
  busy() {
    const moments = this.service.tracks.filter(t => t.kind === "episodes" || t.kind === "actions").flatMap(t => t.spans);
    const from = Math.min(...moments.map(s => s.a)), to = Math.max(...moments.map(s => s.b));
    if (moments.length && to - from < 0.5 * (this.full.to - this.full.from)) this.show(from, to);
    else this.render();
  }

  width() { return Math.max(300, this.box.clientWidth); }
  lanesW() { return this.width() - labelW - 10; }
  x(ms) { return labelW + (ms - this.view.from) / (this.view.to - this.view.from) * this.lanesW(); }
  time(x) { return this.view.from + (x - labelW) / this.lanesW() * (this.view.to - this.view.from); }

  tracks() { return this.service.tracks.filter(t => matches(t.label + " " + t.kind, this.filter) || t.kind === "actions" || t.kind === "episodes"); }

  // zoom keeps the moment under x in its place.
  zoom(factor, x) {
    const at = this.time(x === undefined ? labelW + this.lanesW() / 2 : x);
    const span = Math.min(Math.max((this.view.to - this.view.from) * factor, 0.1), (this.full.to - this.full.from) * 1.5);
    const share = (at - this.view.from) / (this.view.to - this.view.from);
    this.view = { from: at - span * share, to: at + span * (1 - share) };
    this.render();
  }

  pan(ms) {
    const span = this.view.to - this.view.from;
    const from = Math.min(Math.max(this.view.from + ms, this.full.from - span * 0.9), this.full.to - span * 0.1);
    this.view = { from, to: from + span };
    this.render();
  }

  show(from, to) {
    const pad = Math.max((to - from) * 0.15, 0.5);
    this.view = { from: from - pad, to: to + pad };
    this.render();
  }

  fit() { this.view = { ...this.full }; this.render(); }

  listen() {
    const at = e => e.clientX - this.svg.getBoundingClientRect().left;
    this.svg.addEventListener("wheel", e => {
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / this.lanesW() * (this.view.to - this.view.from));
      else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, at(e));
    }, { passive: false });
    let dragged = null;
    this.svg.addEventListener("pointerdown", e => { dragged = { x: e.clientX, view: { ...this.view } }; });
    this.svg.addEventListener("pointermove", e => {
      this.hover(e, at(e));
      if (!dragged || !(e.buttons & 1)) { dragged = null; return; }
      const ms = (dragged.x - e.clientX) / this.lanesW() * (dragged.view.to - dragged.view.from);
      this.view = { ...dragged.view };
      this.pan(ms);
    });
    this.svg.addEventListener("pointerup", () => { dragged = null; });
    this.svg.addEventListener("pointerleave", () => tip(null));
    this.svg.addEventListener("dblclick", e => this.zoom(0.4, at(e)));
    this.svg.addEventListener("keydown", e => this.key(e));
  }

  key(e) {
    const span = this.view.to - this.view.from;
    const does = { "+": () => this.zoom(0.8), "=": () => this.zoom(0.8), "-": () => this.zoom(1.25), "0": () => this.fit(), ArrowLeft: () => this.pan(-span / 10), ArrowRight: () => this.pan(span / 10) }[e.key];
    if (does && !e.ctrlKey && !e.metaKey) { e.preventDefault(); does(); }
  }

  // hover tells what a lane was at the pointer.
  hover(e, x) {
    const row = Math.floor((e.clientY - this.svg.getBoundingClientRect().top - axisH) / laneH);
    const track = this.tracks()[row];
    const line = this.svg.querySelector(".cursor");
    if (line) { line.setAttribute("x1", x); line.setAttribute("x2", x); line.setAttribute("visibility", x < labelW ? "hidden" : "visible"); }
    if (!track || x < labelW) { tip(track ? [track.label] : null, e); return; }
    const at = this.time(x), half = 3 / this.lanesW() * (this.view.to - this.view.from);
    const here = track.spans.filter(s => s.a <= at + half && s.b >= at - half);
    const lines = [track.label, clockText(this.data, at, 3)];
    for (const s of here.slice(-3)) {
      lines.push([s.t || s.c, s.note].filter(Boolean).join(", ") + (s.b > s.a ? ", for " + duration(s.b - s.a) : "") + " from " + clockText(this.data, s.a, 3));
    }
    for (const a of (track.arrivals || []).filter(a => Math.abs(a.at - at) <= half * 2)) {
      lines.push("arrived after " + duration(a.lag) + " " + errorBound(a.err) + (a.n > 1 ? ", the slowest of " + a.n : ""));
    }
    if (!here.length) lines.push("nothing is known");
    tip(lines, e);
  }

  render() {
    const tracks = this.tracks(), h = axisH + tracks.length * laneH + 6;
    this.svg.setAttribute("viewBox", `0 0 ${this.width()} ${h}`);
    this.svg.setAttribute("height", h);
    this.svg.setAttribute("aria-label", "timeline of " + this.service.name);
    const g = draw("g");
    g.append(hatches());
    for (const t of ticks(this.data, this.view, this.lanesW())) {
      const x = this.x(t.at);
      g.append(draw("line", { class: "grid", x1: x, x2: x, y1: axisH - 8, y2: h }), draw("text", { class: "dim tick", x: x + 3, y: 14 }, t.label));
    }
    tracks.forEach((t, i) => g.append(this.lane(t, axisH + i * laneH)));
    if (this.data.asOf !== null && this.data.asOf < this.view.to) {
      const x = Math.max(labelW, this.x(this.data.asOf));
      g.append(draw("rect", { class: "beyond", x, y: axisH, width: Math.max(0, this.width() - x), height: h - axisH }));
    }
    g.append(draw("line", { class: "cursor", x1: -1, x2: -1, y1: axisH - 8, y2: h }));
    this.svg.replaceChildren(g);
  }

  lane(t, y) {
    const row = draw("g", { class: "row " + t.kind, "data-key": t.key });
    row.append(draw("rect", { class: "back", x: 0, y, width: this.width(), height: laneH }));
    const label = t.label.length > 26 ? t.label.slice(0, 11) + "…" + t.label.slice(-14) : t.label;
    row.append(draw("text", { class: t.kind === "pod" ? "dim" : "", x: t.kind === "pod" ? 16 : 6, y: y + 14 }, label));
    for (const s of this.visible(t)) row.append(...this.stretch(t, s, y));
    if (t.kind !== "pod") row.append(...this.texts(t, y));
    return row;
  }

  // visible are the stretches in view; of those within one pixel only the most important.
  visible(t) {
    const out = [];
    for (const s of t.spans) {
      if (s.b < this.view.from || s.a > this.view.to) continue;
      const x0 = Math.max(labelW, this.x(s.a)), x1 = Math.min(this.width(), Math.max(this.x(s.b), x0 + 1.5));
      const last = out[out.length - 1];
      if (last && t.kind !== "actions" && x1 - x0 < 2 && last.x1 - last.x0 < 2 && x0 - last.x0 < 1) {
        if (ranks.indexOf(s.c) > ranks.indexOf(last.s.c)) { last.s = s; last.x1 = x1; }
        continue;
      }
      out.push({ s, x0, x1 });
    }
    return out;
  }

  stretch(t, { s, x0, x1 }, y) {
    if (t.kind === "actions") {
      const next = t.spans[t.spans.indexOf(s) + 1], room = (next ? this.x(next.a) : this.width()) - x0 - 16, text = (s.t || "").slice(0, Math.max(0, Math.floor(room / 7.3)));
      return [draw("path", { class: "point", d: `M${x0} ${y + 3}h1.5v14h-1.5zM${x0} ${y + 3}l9 4l-9 4z` }), draw("text", { x: x0 + 12, y: y + 14 }, text)];
    }
    const [top, height] = shapes[s.c] || [8, 4];
    const hatch = { behind: "hatch-behind", stale: "hatch-stale", gap: "hatch-gap", terminating: "hatch-behind", unready: "hatch-behind", pending: "hatch-dots", blind: "hatch-dots", existed: "hatch-dots" }[s.c];
    const out = [draw("rect", { class: s.c + (s.claimed ? " claimed" : ""), x: x0, y: y + top, width: Math.max(1.5, x1 - x0), height, ...(hatch && x1 - x0 > 6 ? { mask: `url(#${hatch})` } : {}) })];
    if (s.c === "span" && x1 - x0 > 60) out.push(draw("text", { class: "halo", x: (x0 + x1) / 2, y: y + 14, "text-anchor": "middle" }, s.t));
    if (s.c === "ready" && x0 > labelW) out.push(draw("circle", { class: "ready", cx: x0, cy: y + 10, r: 5 }));
    return out;
  }

  // texts are counts where they change and lags where something arrived, as far as
  // they have room.
  texts(t, y) {
    const out = [];
    let free = labelW, was = null;
    for (const s of t.spans) {
      if (s.n === undefined || s.b < this.view.from || s.a > this.view.to) continue;
      const x = Math.max(labelW + 2, this.x(s.a));
      if (s.n === was || x < free) { if (x >= free) was = s.n; continue; }
      was = s.n;
      const text = String(s.n);
      out.push(draw("text", { class: "halo count", x, y: y + 14 }, text));
      free = x + text.length * 7.5 + 6;
    }
    for (const a of t.arrivals || []) {
      const x = this.x(a.at) + 12, text = duration(a.lag);
      if (a.at < this.view.from || a.at > this.view.to || a.lag / (this.view.to - this.view.from) * this.lanesW() < 12) continue;
      if (out.some(o => Math.abs(Number(o.getAttribute("x")) - x) < text.length * 7.5 + 8 && Number(o.getAttribute("x")) !== x - 12)) continue;
      out.push(draw("text", { class: "halo dim lag", x, y: y + 14 }, text));
    }
    return out;
  }
}

// hatches are masks, so that a state is told by its pattern as well as its colour.
function hatches() {
  const mask = (id, size, ...shapes) => draw("g", {}, draw("pattern", { id: id + "-p", width: size, height: size, patternUnits: "userSpaceOnUse" }, ...shapes),
    draw("mask", { id, maskUnits: "userSpaceOnUse", x: -10, y: -10, width: 100000, height: 100000 }, draw("rect", { x: -10, y: -10, width: 100000, height: 100000, fill: `url(#${id}-p)` })));
  const white = { fill: "white" };
  return draw("defs", {},
    mask("hatch-behind", 6, draw("rect", { width: 4, height: 6, ...white })),
    mask("hatch-stale", 6, draw("rect", { width: 6, height: 6, fill: "#999" }), draw("path", { d: "M0 6L6 0M-1 1L1 -1M5 7L7 5", stroke: "white", "stroke-width": 2 })),
    mask("hatch-gap", 8, draw("path", { d: "M0 8L8 0M-1 1L1 -1M7 9L9 7", stroke: "white", "stroke-width": 2 })),
    mask("hatch-dots", 6, draw("rect", { width: 2, height: 6, ...white })));
}
