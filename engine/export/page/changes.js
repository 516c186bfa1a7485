// The changes: a table, and the waterfall of the one that is opened.

function showChanges(box, data, service, filter, timeline) {
  const all = service.changes.filter(c => matches([c.name, c.cause, c.by, c.status, c.ip, c.node, ...(c.missing || [])].join(" "), filter));
  const head = el("tr", {}, ...["origin", "change", "cause", "endpoint", "took", "risk"].map((t, i) => el("th", i > 3 ? { class: "number" } : {}, t)));
  const body = el("tbody");
  for (const c of all) body.append(changeRow(data, service, c, timeline));
  const rest = service.earlier > 0 ? el("p", { class: "dim" }, `${service.earlier} earlier changes are not on this page`) : null;
  box.replaceChildren(all.length ? el("table", {}, el("thead", {}, head), body) : el("p", { class: "dim" }, service.changes.length ? "no change is called so" : "no change"), ...(rest ? [rest] : []));
}

function changeRow(data, service, c, timeline) {
  const took = c.ms === null ? (c.missing && c.missing.length ? `not yet on ${c.missing.length} of the nodes` : c.status)
    : (c.atMost ? "≤" : "") + duration(c.ms) + " " + errorBound(c.err) + (c.status !== "arrived" ? ", " + c.status : "");
  const row = el("tr", { class: "change", tabindex: "0", "aria-expanded": "false" },
    el("td", { class: "mono" }, clockText(data, c.at, 3)), el("td", { class: "mono" }, c.name), el("td", {}, c.cause + (c.by ? " by " + c.by : "")),
    el("td", {}, [c.ip, c.node && "on " + c.node].filter(Boolean).join(" ")), el("td", { class: "number" + (c.ms === null ? " bad" : "") }, took),
    el("td", { class: "number" }, c.risk === null ? "" : duration(c.risk)));
  const toggle = () => {
    const next = row.nextElementSibling;
    if (next && next.classList.contains("waterfall")) { next.remove(); row.setAttribute("aria-expanded", "false"); return; }
    row.after(el("tr", { class: "waterfall" }, el("td", { colspan: 6 }, ...c.sentences.map(s => el("p", {}, s)), waterfall(data, c))));
    row.setAttribute("aria-expanded", "true");
    timeline.show(Math.min(c.at, ...c.bars.map(b => b.a)), Math.max(c.at, ...c.bars.map(b => b.b)));
  };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); toggle(); } });
  return row;
}

// waterfall draws the hops of a change below each other, on one axis of their own.
function waterfall(data, c) {
  const W = 1100, left = 210, right = 330, h = 20;
  const bars = c.bars, drawn = bars.filter(b => b.kind !== "claimed");
  const from = Math.min(...drawn.map(b => Math.min(b.a, b.b))), to = Math.max(...drawn.map(b => Math.max(b.a, b.b)), from + 0.001);
  const x = t => left + (t - from) / (to - from) * (W - left - right);
  const svg = draw("svg", { viewBox: `0 0 ${W} ${bars.length * h + 6}`, role: "img", "aria-label": "waterfall of " + c.name });
  bars.forEach((b, i) => {
    const y = i * h, a = x(Math.min(b.a, b.b)), z = x(Math.max(b.a, b.b));
    svg.append(draw("text", { x: 4 + b.depth * 10, y: y + 14, class: b.depth ? "dim" : "" }, b.label.length > 24 ? "…" + b.label.slice(-23) : b.label));
    svg.append(draw("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, b.kind === "open" ? "not yet" : (b.atMost ? "≤" : "") + b.took));
    if (b.kind === "claimed") { svg.append(draw("text", { x: left, y: y + 14, class: "dim" }, b.note)); return; }
    svg.append(draw("rect", { class: b.kind === "point" ? "point2" : b.kind, x: a, y: y + 5, width: Math.max(2, z - a), height: 10 }));
    const share = b.share >= 0 && i > 0 ? b.share + " %" : "", usual = b.usual ? "usually " + b.usual : "";
    svg.append(draw("text", { x: W - right + 10, y: y + 14, class: "dim" }, [share, usual, b.note].filter(Boolean).join("  ").slice(0, 44)));
    const hit = draw("rect", { x: 0, y, width: W, height: h, fill: "transparent" });
    hit.addEventListener("pointermove", e => tip([b.label, (b.atMost ? "at most " : "") + b.took, clockText(data, b.a, 3) + " to " + clockText(data, b.b, 3), share && share + " of the whole", usual, b.note], e));
    hit.addEventListener("pointerleave", () => tip(null));
    svg.append(hit);
  });
  return svg;
}
