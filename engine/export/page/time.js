// Time: the data's times are milliseconds since data.start.

const tickSteps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 12e5, 36e5, 72e5, 216e5, 432e5, 864e5, 1728e5, 432e6, 864e6];

// clockText is a time of day of this browser's zone, with as many digits as asked for.
function clockText(data, ms, digits) {
  const whole = new Date(data.start + Math.floor(ms));
  const two = n => String(n).padStart(2, "0");
  let s = two(whole.getHours()) + ":" + two(whole.getMinutes()) + ":" + two(whole.getSeconds());
  if (digits > 0) {
    const part = (whole.getMilliseconds() + (ms - Math.floor(ms))) / 1000;
    s += (Math.floor(part * 10 ** digits + 1e-6) / 10 ** digits).toFixed(digits).slice(1);
  }
  return s;
}

function dateText(data, ms) {
  const d = new Date(data.start + ms), two = n => String(n).padStart(2, "0");
  return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
}

// ticks are labelled moments of a view {from, to} on width pixels.
function ticks(data, view, width) {
  const per = (view.to - view.from) / Math.max(1, width / 110);
  const step = tickSteps.find(s => s >= per) || Math.ceil(per / 864e5) * 864e5;
  const digits = step >= 1000 ? 0 : Math.min(5, Math.ceil(-Math.log10(step / 1000) - 1e-9));
  // Whole steps of the local day.
  const day = new Date(data.start); day.setHours(0, 0, 0, 0);
  const origin = day.getTime() - data.start;
  const out = [];
  for (let n = Math.ceil((view.from - origin) / step); ; n++) {
    const at = origin + n * step;
    if (at > view.to || out.length > 400) return out;
    out.push({ at, label: step >= 864e5 ? dateText(data, at) : clockText(data, at, digits) });
  }
}
