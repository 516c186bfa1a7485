// Nodes by endpoints, findings and gaps.

const cellWords = {
  a: ["=", "agrees", "good"], n: ["·", "neither wanted nor there", "dim"], m: ["−", "missing", "warn"], s: ["+", "stale", "warn"],
  x: ["×", "stale, and nothing answers behind it", "bad"], u: ["!", "unexpected", "bad"], c: ["~", "there, but different", "warn"], "?": ["?", "not known", "dim"],
};

function showMatrix(box, service, filter) {
  const m = service.matrix;
  if (!m) { box.replaceChildren(el("p", { class: "dim" }, "no rules")); return; }
  const head = el("tr", {}, el("th", {}, "node"), ...m.endpoints.map(e => el("th", { class: "end" }, e)));
  const rows = m.nodes.map((node, i) => ({ node, cells: m.cells[i] })).filter(r => matches(r.node, filter)).map(r => el("tr", {}, el("td", { class: "mono" }, r.node),
    ...[...r.cells].map((c, k) => el("td", { class: "cell " + cellWords[c][2], title: r.node + ", " + m.endpoints[k] + ": " + cellWords[c][1] }, cellWords[c][0]))));
  const said = [...new Set(m.cells.join(""))].map(c => cellWords[c][0] + " " + cellWords[c][1]).join("   ");
  const left = [m.leftNodes && m.leftNodes + " more nodes", m.leftEndpoints && m.leftEndpoints + " more endpoints"].filter(Boolean).join(", ");
  box.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)), el("p", { class: "dim" }, said + (left ? "; " + left + " are not on this page" : "")));
}

function showFindings(box, data, filter) {
  const list = data.findings.filter(f => matches([f.code, f.severity, f.object, f.message].join(" "), filter));
  box.replaceChildren(...(list.length ? list.map(f => el("div", { class: "finding " + f.severity },
    el("p", {}, el("strong", { class: { error: "bad", warning: "warn" }[f.severity] || "dim" }, f.severity + " " + f.code), " ", f.object),
    el("p", {}, f.message), el("p", { class: "dim" }, "→ " + f.fix))) : [el("p", { class: "dim" }, data.findings.length ? "none is called so" : "nothing found")]));
}

function showGaps(box, data) {
  box.replaceChildren(...(data.gaps.length ? data.gaps.map(g => el("p", {}, el("span", { class: "mono" }, g.source), " from " + clockText(data, g.a, 3) + (g.b === null ? ", still open" : " to " + clockText(data, g.b, 3)) + ": " + g.why))
    : [el("p", { class: "dim" }, "none")]));
}

function showLegend(box) {
  const entries = [["agrees", "agrees"], ["behind", "behind"], ["stale", "routed but stopped"], ["gap", "gap"], ["blind", "not seen"], ["had claimed", "claimed"], ["pending", "pending"], ["starting", "starting"], ["ready", "ready"], ["terminating", "terminating"]];
  box.replaceChildren(...entries.map(([c, text]) => {
    const first = c.split(" ")[0], [top, height] = shapes[first], hatch = { behind: "hatch-behind", stale: "hatch-stale", gap: "hatch-gap", terminating: "hatch-behind", pending: "hatch-dots", blind: "hatch-dots" }[first];
    return el("li", {}, draw("svg", { viewBox: "0 3 26 14" }, draw("rect", { class: c, x: 0, y: top, width: 26, height, ...(hatch ? { mask: `url(#${hatch})` } : {}) })), text);
  }));
}
