"use strict";
// Making elements. Text from the data is only ever set as text, never as markup.

const svgNS = "http://www.w3.org/2000/svg";

// el makes an element: el("td", {class: "number"}, "3").
function el(name, attrs, ...children) { return fill(document.createElement(name), attrs, children); }

// draw makes an SVG element.
function draw(name, attrs, ...children) { return fill(document.createElementNS(svgNS, name), attrs, children); }

function fill(node, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v !== undefined && v !== null) node.setAttribute(k, v);
  }
  for (const c of children) {
    if (c === undefined || c === null) continue;
    node.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return node;
}

function byId(id) { return document.getElementById(id); }

// duration writes milliseconds as the program does: "9 ms", "0.98 s", "3m41s".
function duration(ms) {
  const sign = ms < 0 ? "−" : "", v = Math.abs(ms);
  if (v === 0) return "0 ms";
  if (v < 1) return sign + Math.max(Math.floor(v * 10), 1) / 10 + " ms";
  if (v < 99.5) return sign + Math.round(v) + " ms";
  if (v < 9995) return sign + (v / 1000).toFixed(2) + " s";
  if (v < 59950) return sign + (v / 1000).toFixed(1) + " s";
  const s = Math.round(v / 1000), two = n => String(n).padStart(2, "0");
  if (s < 3600) return sign + Math.floor(s / 60) + "m" + two(s % 60) + "s";
  if (s < 86400) return sign + Math.floor(s / 3600) + "h" + two(Math.floor(s % 3600 / 60)) + "m";
  return sign + Math.floor(s / 86400) + "d" + two(Math.floor(s % 86400 / 3600)) + "h";
}

function errorBound(ms) { return "±" + (ms < 10 ? Math.ceil(ms * 10) / 10 + " ms" : duration(ms)); }

// matches tells whether a text has all words of the filter, and none with a ! before it.
function matches(text, filter) {
  const t = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every(w => w.startsWith("!") ? w === "!" || !t.includes(w.slice(1)) : t.includes(w));
}

// tip shows facts beside the pointer.
function tip(lines, event) {
  const box = byId("tip");
  if (!lines) { box.hidden = true; return; }
  box.textContent = lines.filter(Boolean).join("\n");
  box.hidden = false;
  const r = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - r.width - 8)) + "px";
  box.style.top = Math.max(4, event.clientY + 18 + r.height > innerHeight ? event.clientY - r.height - 10 : event.clientY + 18) + "px";
}
