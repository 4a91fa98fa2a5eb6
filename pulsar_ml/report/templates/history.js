"use strict";
// Draws the operations that are in view on a canvas. Texts of the history are text, never markup.
// The elements are below root, and their ids begin with the prefix.
function drawHistory(root, data, prefix) {
  const ROW = 34, BAR = 22, TOP = 8, MARGIN = 12, LEAST = 3;
  const at = (id) => root.querySelector("#" + prefix + id);
  const canvas = at("drawing"), pen = canvas.getContext("2d");
  const fact = at("fact"), status = at("shown"), filter = at("filter"), step = at("step");
  const THREAD = 0, FROM = 1, TO = 2, TEXT = 3, NUMBER = 4, PLACE = 5, INVOKED = 6, RETURNED = 7;
  const all = data.operations, rows = new Map(data.threads.map(([number], row) => [number, row]));
  const core = new Set(data.core), blocked = data.blocked;
  const ends = all.map((one) => one[TO] < 0 ? 2 * all.length : one[TO]);
  const last = all.reduce((most, one) => Math.max(most, one[INVOKED], one[RETURNED] ?? 0), 1);
  // Stamps are told from the first one, because a number here has 53 bits.
  const stamp = (since) => (BigInt(data.first) + BigInt(Math.round(since))).toLocaleString("en");
  const plural = (count, word) => count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s");

  // Moments at which the operations of the order take effect, and their places in the order.
  const moments = [], places = new Map();
  let now = -1;
  data.order.forEach((operation, place) => {
    now = Math.max(now, all[operation][FROM]);
    moments.push(now);
    places.set(operation, place);
  });

  let byClock = false, onlyCore = false, wanted = "", selected = -1, steps = data.order.length;
  let view = [0, 1], spans = [], lanes = [], width = 0, shown = all.map((_, index) => index);

  // The places of operations between 0 and 1: by the order of the events, or by the clock.
  function lay() {
    const length = byClock ? last : 2 * all.length;
    spans = all.map((one, index) => byClock ? [one[INVOKED] / length, (one[RETURNED] ?? last) / length]
      : [one[FROM] / length, ends[index] / length]);
    if (onlyCore && !byClock) {
      const events = [...new Set(shown.flatMap((index) => spans[index]))].sort((a, b) => a - b);
      const rank = new Map(events.map((event, place) => [event, place / Math.max(1, events.length - 1)]));
      for (const index of shown) spans[index] = spans[index].map((event) => rank.get(event));
    }
    lanes = data.threads.map(() => []);
    for (const index of shown) lanes[rows.get(all[index][THREAD])].push(index);
  }
  function choose() {
    shown = all.map((_, index) => index).filter((index) => !onlyCore || core.has(index) || index === blocked);
    lay();
    const found = matching();
    status.textContent = wanted ? plural(found.length, "operation") + " found of " + shown.length.toLocaleString("en")
      : plural(shown.length, "operation");
  }
  const nameOf = (index) => "thread " + data.threads[rows.get(all[index][THREAD])][1];
  const matches = (index) => (all[index][TEXT] + " " + nameOf(index) + " " + all[index][NUMBER]).toLowerCase()
    .includes(wanted);
  const matching = () => wanted ? shown.filter(matches) : shown;

  const x = (part) => MARGIN + (part - view[0]) / (view[1] - view[0]) * (width - 2 * MARGIN);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // The first operation of a lane that may reach into the view: bars of a thread follow one another.
  function begin(lane) {
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[lane[middle]][0] < view[0]) low = middle + 1; else high = middle;
    }
    return low;
  }
  function visible(lane) {
    const from = begin(lane), found = [];
    // Before the view: the one before, and any that did not return.
    for (let place = Math.max(0, from - 1); place < lane.length; place++) {
      if (spans[lane[place]][0] > view[1]) break;
      found.push(lane[place]);
    }
    return lane.slice(0, Math.max(0, from - 1)).filter((index) => all[index][TO] < 0).concat(found);
  }

  function draw() {
    const scale = devicePixelRatio || 1, height = TOP + ROW * lanes.length + 26;
    width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const shades = {};
    for (const name of ["bg", "fg", "muted", "line", "soft", "bad", "bad-soft", "arrow"]) shades[name] = colour(name);
    pen.font = "12px ui-monospace, monospace";
    pen.textBaseline = "middle";
    lanes.forEach((lane, row) => {
      const y = TOP + ROW * row;
      pen.fillStyle = shades.muted;
      pen.fillText(data.threads[row][1], 2, y + 4);
      let drawn = -Infinity;
      for (const index of visible(lane)) {
        const special = core.has(index) || index === blocked || index === selected || (wanted && matches(index));
        const left = x(spans[index][0]), right = Math.max(left + 1.5, x(spans[index][1]));
        // Several bars on one pixel are one.
        if (right < drawn + 0.5 && !special) continue;
        drawn = right;
        bar(index, left, right, y + 8, shades);
      }
    });
    dots(shades);
    axis(height, shades);
  }
  function bar(index, left, right, y, shades) {
    const placed = places.has(index) && places.get(index) < steps, dim = wanted && !matches(index);
    pen.globalAlpha = dim ? 0.25 : 1;
    pen.fillStyle = index === blocked ? shades.bad : core.has(index) ? shades["bad-soft"] : placed ? shades.soft : shades.bg;
    pen.strokeStyle = core.has(index) || index === blocked ? shades.bad : placed ? shades.arrow : shades.muted;
    pen.lineWidth = index === selected ? 3 : 1;
    const from = Math.max(left, -20), to = Math.min(right, width + 20);
    pen.fillRect(from, y, to - from, BAR);
    pen.beginPath();
    if (all[index][TO] >= 0) pen.rect(from, y, to - from, BAR);
    else { pen.moveTo(to, y); pen.lineTo(from, y); pen.lineTo(from, y + BAR); pen.lineTo(to, y + BAR); }
    pen.stroke();
    const room = Math.min(to, width) - Math.max(from, 0) - 8;
    if (room > 12) {
      const number = placed ? places.get(index) + 1 + ". " : "";
      let text = number + all[index][TEXT];
      const fits = Math.floor(room / 7.3);
      if (text.length > fits) text = fits > LEAST ? text.slice(0, fits - 1) + "…" : "";
      pen.fillStyle = index === blocked ? shades.bg : shades.fg;
      pen.fillText(text, Math.max(from, 0) + 4, y + BAR / 2);
    }
    pen.globalAlpha = 1;
  }
  function dots(shades) {
    if (byClock || onlyCore) return;  // between the events of others there is no moment
    pen.fillStyle = shades.arrow;
    let before = -1, same = 0;
    for (let place = 0; place < steps; place++) {
      same = moments[place] === before ? same + 1 : 0;
      before = moments[place];
      const left = x((before + same / (same + 2)) / (2 * all.length));
      if (left < 0 || left > width) continue;
      const y = TOP + ROW * rows.get(all[data.order[place]][THREAD]) + 8;
      pen.fillRect(left - 1.5, y + BAR - 4, 3, 4);
    }
  }
  function axis(height, shades) {
    pen.fillStyle = shades.muted;
    const y = height - 10, word = (part) => byClock
      ? stamp(part * last)
      : onlyCore ? "" : "event " + Math.round(part * 2 * all.length).toLocaleString("en");
    const right = word(view[1]);
    pen.fillText(word(view[0]), 2, y);
    pen.fillText(right, width - 7.3 * right.length - 2, y);
  }

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  function zoom(factor, around = 0.5) {
    const size = Math.min(1, Math.max(2 / (2 * all.length + 1), (view[1] - view[0]) * factor));
    const middle = view[0] + around * (view[1] - view[0]);
    move(middle - around * size, size);
  }
  function move(from, size = view[1] - view[0]) {
    const start = Math.min(1 - size, Math.max(0, from));
    view = [start, start + size];
    redraw();
  }
  function select(index) {
    selected = index;
    if (index >= 0) {
      const [from, to] = spans[index];
      if (to < view[0] || from > view[1]) move(from - (view[1] - view[0]) / 3);
      const one = all[index], lines = [
        "Operation " + one[NUMBER] + (one[PLACE] ? " (" + one[PLACE] + ")" : "") + ", " + nameOf(index) + ": " + one[TEXT],
        "invoked at " + stamp(one[INVOKED]) + ", " + (one[RETURNED] === null ? "did not return"
          : "returned at " + stamp(one[RETURNED])) + (places.has(index) ? "; number " +
          (places.get(index) + 1) + " in the order" : "") + (index === blocked ? "; nothing leads to it" : "") +
          (core.has(index) ? "; part of the core" : ""),
      ];
      fact.replaceChildren(...lines.map((line) => {
        const text = document.createElement("p");
        text.textContent = line;
        return text;
      }));
    }
    redraw();
  }
  function beside(way) {
    const found = matching();
    if (!found.length) return;
    const place = found.indexOf(selected);
    select(found[place < 0 ? 0 : Math.min(found.length - 1, Math.max(0, place + way))]);
  }
  function other(way) {
    if (selected < 0) { beside(1); return; }
    for (let row = rows.get(all[selected][THREAD]) + way; row >= 0 && row < lanes.length; row += way) {
      const found = lanes[row].filter((index) => !wanted || matches(index));
      if (!found.length) continue;
      const middle = (index) => Math.abs(spans[index][0] - spans[selected][0]);
      select(found.reduce((best, index) => middle(index) < middle(best) ? index : best));
      return;
    }
  }
  function go(count) {
    steps = Math.min(data.order.length, Math.max(0, count));
    if (step) {
      step.value = steps;
      const text = steps < data.states.length ? "; then the state is " + data.states[steps] : "";
      at("state").textContent = steps.toLocaleString("en") + " of " + data.order.length.toLocaleString("en") + text;
    }
    redraw();
  }

  canvas.addEventListener("keydown", (event) => {
    const keys = {
      ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowUp: () => other(-1), ArrowDown: () => other(1),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom(1e9),
      "[": () => go(steps - 1), "]": () => go(steps + 1),
    };
    if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.offsetX - MARGIN) / (width - 2 * MARGIN));
  }, { passive: false });
  const touched = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    touched.set(event.pointerId, event.offsetX);
    if (touched.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!touched.has(event.pointerId)) return;
    const by = event.offsetX - touched.get(event.pointerId), others = [...touched].filter(([id]) => id !== event.pointerId);
    moved += Math.abs(by);
    if (others.length) {
      const fixed = others[0][1], before = Math.abs(touched.get(event.pointerId) - fixed);
      const after = Math.abs(event.offsetX - fixed);
      if (before > 4 && after > 4) zoom(before / after, (fixed - MARGIN) / (width - 2 * MARGIN));
    } else move(view[0] - by / (width - 2 * MARGIN) * (view[1] - view[0]));
    touched.set(event.pointerId, event.offsetX);
  });
  canvas.addEventListener("pointercancel", (event) => touched.delete(event.pointerId));
  canvas.addEventListener("pointerup", (event) => {
    touched.delete(event.pointerId);
    if (moved > 4) return;
    const row = Math.floor((event.offsetY - TOP) / ROW);
    if (row < 0 || row >= lanes.length) return;
    const hit = visible(lanes[row]).filter((index) => x(spans[index][0]) <= event.offsetX + 2 &&
      x(spans[index][1]) >= event.offsetX - 2);
    if (hit.length) select(hit[hit.length - 1]);
  });
  filter.addEventListener("input", () => {
    wanted = filter.value.trim().toLowerCase();
    choose();
    const found = matching();
    if (wanted && found.length) select(found[0]); else redraw();
  });
  filter.addEventListener("keydown", (event) => event.key === "Enter" && beside(1));
  if (core.size) at("core").addEventListener("change", (event) => { onlyCore = event.target.checked; choose(); zoom(1e9); });
  else if (at("core")) at("core").parentElement.hidden = true;
  at("clock").addEventListener("change", (event) => { byClock = event.target.checked; choose(); zoom(1e9); });
  at("closer").addEventListener("click", () => zoom(0.5));
  at("farther").addEventListener("click", () => zoom(2));
  at("whole").addEventListener("click", () => zoom(1e9));
  if (step) {
    step.addEventListener("input", () => go(Number(step.value)));
    at("back").addEventListener("click", () => go(steps - 1));
    at("forth").addEventListener("click", () => go(steps + 1));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(redraw).observe(canvas);
  choose();
  go(steps);
  if (blocked >= 0) {
    // A long history opens at the operation to which nothing leads.
    if (all.length > 60) {
      const size = Math.min(1, 40 / all.length);
      move(spans[blocked][0] - size / 2, size);
    }
    select(blocked);
  } else draw();
}
