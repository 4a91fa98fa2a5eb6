// Draws an interleaving: a column for each thread, a row for each step, blocks that fold, arrows.
// All texts are inserted as text, never as markup.
function drawLanes(box, data, id) {
  const LANE = 0, KIND = 1, TEXT = 2, PLACE = 3, MARK = 4, BLOCK = 5, FILE = 6, LINE = 7, NUMBER = 8;
  const GUTTER = 30, CHARACTER = 7.3, LEAST = 170, MOST = 560, PAPER = 680, FEW = 60, TRACKS = 4;
  const SIGNS = { first: "✗ ", second: "✗ ", failed: "✗ ", stale: "◌ ", turn: "▸ " };
  const steps = data.steps, count = steps.length, folded = new Set();
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const drawn = (name, values) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
    return element;
  };
  const plural = (number, word) => number.toLocaleString("en") + " " + word + (number === 1 ? "" : "s");
  const fatal = (step) => ["first", "second", "failed"].includes(step[MARK]);

  // The head of a block stands for the call with which it begins.
  const implied = (row) => steps[row][KIND] === "call" && steps[row][BLOCK] >= 0;

  // The text about a step: what it did, and where the value that it read came from.
  const sources = new Map();
  for (const [start, end, kind] of data.arrows) if (kind === "reads" || kind === "sees") sources.set(end, start);
  function about(row) {
    const step = steps[row], words = ["Thread " + step[LANE] + ": " + step[TEXT] + (step[PLACE] ? " at " + step[PLACE] : "")];
    if (sources.has(row)) {
      const from = steps[sources.get(row)];
      words.push("the value was stored by thread " + from[LANE] + (from[PLACE] ? " at " + from[PLACE] : "") + ": " + from[TEXT]);
    }
    const behind = data.arrows.filter(([, end, kind]) => end === row && kind === "happens before");
    for (const [start] of behind) words.push("from here on it knows what thread " + steps[start][LANE] + " did up to " +
      (steps[start][PLACE] || steps[start][TEXT]));
    if (row === ends[1]) words.push(data.missing);
    return words.join("; ") + ".";
  }
  const missing = data.arrows.find(([, , kind]) => kind === "missing"), ends = missing || [-1, -1];

  // Elements: heads, a pale band and a head for each block, a button for each step.
  const grid = make("div", "lanes"), heads = [], bands = [], items = [];
  const at = (element, lane, row, end) => {
    element.style.gridColumn = lane + 1;
    element.style.gridRow = end ? row + " / " + end : row;
    grid.append(element);
    return element;
  };
  for (let lane = 0; lane < data.lanes; lane++) at(make("div", "lane-name", "thread " + lane), lane, 1);
  for (let lane = 0; lane < data.lanes; lane++) at(make("div", "line"), lane, 2, 3 * count + 2);
  data.blocks.forEach(([text, first, last], block) => {
    const lane = steps[first][LANE], rows = rowsOf(block);
    bands.push(at(make("div", "band"), lane, 3 * first + 3, 3 * last + 5));
    const head = at(make("button", "block" + (rows.some((row) => fatal(steps[row])) ? " fatal" : "")), lane, 3 * first + 3);
    head.type = "button";
    head.append(make("span", "turn-mark"), make("span", "name", text),
      make("span", "place", plural(rows.filter((row) => !implied(row)).length, "step")));
    head.addEventListener("click", () => fold(block, !folded.has(block)));
    heads.push(head);
  });
  steps.forEach((step, row) => {
    const item = make("button", ["step", step[KIND], step[MARK], row === ends[0] || row === ends[1] ? "met" : ""].join(" ").trim());
    item.type = "button";
    item.tabIndex = -1;
    item.append(make("span", "dot"), make("span", "text", (SIGNS[step[MARK]] || "") + step[TEXT]));
    if (step[PLACE]) item.append(make("span", "place", step[PLACE]));
    item.addEventListener("mouseenter", () => show(row));
    item.addEventListener("focus", () => { roam(row); show(row); });
    item.addEventListener("keydown", (event) => key(event, row));
    item.hidden = implied(row);
    items.push(at(item, step[LANE], 3 * row + 4));
  });
  grid.addEventListener("mouseleave", () => show(items.indexOf(document.activeElement)));
  if (missing) {
    const label = at(make("p", "lacking", "✗ " + data.missing), 0, 3 * ends[1] + 2);
    label.style.gridColumn = steps[ends[1]][LANE] + 1 + " / -1";
  }
  const overlay = drawn("svg", { class: "arrows", "aria-hidden": "true" });
  grid.append(overlay);
  function rowsOf(block) {
    return steps.map((_, row) => row).filter((row) => steps[row][BLOCK] === block);
  }

  // Folding.
  function fold(block, closed) {
    if (closed) folded.add(block); else folded.delete(block);
    heads[block].setAttribute("aria-expanded", String(!closed));
    heads[block].firstElementChild.textContent = closed ? "▸" : "▾";
    for (const row of rowsOf(block)) items[row].hidden = closed || implied(row);
    arrows();
  }
  const foldAll = make("button", "", "Fold all");
  foldAll.type = "button";
  foldAll.addEventListener("click", () => {
    const close = folded.size < data.blocks.length;
    data.blocks.forEach((_, block) => fold(block, close));
    foldAll.textContent = close ? "Unfold all" : "Fold all";
  });

  // The keyboard: one step is in the order of Tab, and the arrow keys go to the others.
  function roam(row) {
    for (const item of items) item.tabIndex = -1;
    items[row].tabIndex = 0;
  }
  function key(event, row) {
    const seen = (other) => !items[other].hidden;
    const next = (way, fits) => {
      for (let other = row + way; other >= 0 && other < count; other += way)
        if (seen(other) && fits(other)) return other;
      return -1;
    };
    const lane = (way) => {
      const fits = (other) => steps[other][LANE] === steps[row][LANE] + way, [before, behind] = [next(-1, fits), next(1, fits)];
      return behind < 0 || (before >= 0 && row - before < behind - row) ? before : behind;
    };
    const keys = {
      ArrowDown: () => next(1, () => true), ArrowUp: () => next(-1, () => true),
      ArrowLeft: () => lane(-1), ArrowRight: () => lane(1),
      Enter: () => sources.has(row) && seen(sources.get(row)) ? sources.get(row) : -1,
    };
    if (!Object.hasOwn(keys, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const other = keys[event.key]();
    if (other >= 0) items[other].focus();
  }

  // The step that is pointed at, with its arrows and its line of source.
  const fact = make("p", "fact"), lines = new Map();
  fact.setAttribute("role", "status");
  const hint = "Point at a step, or go to it with Tab and the arrow keys: where did its value come from? Enter goes there.";
  fact.textContent = hint;
  function show(row) {
    for (const item of grid.querySelectorAll(".active, .origin")) item.classList.remove("active", "origin");
    for (const line of lines.values()) line.classList.remove("active");
    fact.textContent = row < 0 ? hint : about(row);
    if (row >= 0) {
      items[row].classList.add("active");
      if (sources.has(row)) items[sources.get(row)].classList.add("origin");
      const line = lines.get(steps[row][FILE] + ":" + steps[row][LINE]);
      if (line) {
        line.classList.add("active");
        const pane = line.closest(".source");
        if (pane.scrollHeight > pane.clientHeight)
          pane.scrollTop += line.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 2;
      }
    }
    for (const path of overlay.querySelectorAll(".arrow"))
      path.classList.toggle("active", row >= 0 && path.dataset.ends.split(" ").includes(String(row)));
  }

  // Arrows run in the gutters and between the rows, so that they cross no text.
  function place(row) {
    const block = steps[row][BLOCK], item = items[row].hidden ? heads[block] : items[row];
    const lane = item.offsetLeft, top = item.offsetTop, height = item.offsetHeight;
    return { x: lane + GUTTER - 8, y: top + Math.min(height / 2, 11), top, bottom: top + height };
  }
  function arrows() {
    const width = grid.scrollWidth, height = grid.scrollHeight, defs = drawn("defs", {}), paths = [];
    for (const kind of ["before", "reads", "missing", "sees"]) {
      const head = drawn("marker", { id: "head-" + kind + "-" + id, viewBox: "0 0 8 8", refX: 7, refY: 4,
        markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" });
      head.append(drawn("path", { class: "head " + kind, d: "M0,0 L8,4 L0,8 z" }));
      defs.append(head);
    }
    data.arrows.forEach(([start, end, kind], number) => {
      const from = place(start), to = place(end), name = kind === "happens before" ? "before" : kind;
      if (from.y >= to.y) return;
      const track = 7 + 4 * (number % TRACKS);
      let path;
      if (to.x === from.x) {
        const side = from.x - track;
        path = `M${from.x - 5},${from.y} H${side + 4} Q${side},${from.y} ${side},${from.y + 4} V${to.y - 4} Q${side},${to.y} ${side + 4},${to.y} H${to.x - 6}`;
      } else if (to.x > from.x) {  // along the row's lower edge to the gutter of the other lane
        const level = Math.min(from.bottom, to.y - 8), side = to.x - track;
        path = `M${from.x},${from.y + 5} V${level - 4} Q${from.x},${level} ${from.x + 4},${level} H${side - 4} Q${side},${level} ${side},${level + 4} V${to.y - 4} Q${side},${to.y} ${side + 4},${to.y} H${to.x - 6}`;
      } else {  // down the gutter, then along the upper edge of the other row
        const level = Math.max(to.top, from.y + 8), side = from.x - track;
        path = `M${from.x - 5},${from.y} H${side + 4} Q${side},${from.y} ${side},${from.y + 4} V${level - 4} Q${side},${level} ${side - 4},${level} H${to.x + 4} Q${to.x},${level} ${to.x},${level + 2} V${to.y - 6}`;
      }
      paths.push(drawn("path", { class: "arrow " + name, d: path, "marker-end": "url(#head-" + name + "-" + id + ")",
        "data-ends": start + " " + end }));
    });
    overlay.setAttribute("width", width);
    overlay.setAttribute("height", height);
    overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    overlay.replaceChildren(defs, ...paths);
  }
  // Columns are as wide as their longest text if there is room; paper has less than a screen.
  function lay(room) {
    const longest = Array(data.lanes).fill(12);
    for (const step of steps) longest[step[LANE]] = Math.max(longest[step[LANE]], step[TEXT].length + step[PLACE].length + 5);
    const wanted = longest.map((characters) => Math.min(MOST, GUTTER + 14 + characters * CHARACTER));
    // Too wide ones are cut to one width; the others keep theirs.
    let rest = room, most = MOST;
    [...wanted].sort((one, other) => one - other).forEach((width, place) => {
      most = rest / (data.lanes - place);
      rest -= Math.min(width, most);
    });
    const widths = wanted.map((width) => Math.max(LEAST, Math.floor(Math.min(width, most))));
    grid.style.gridTemplateColumns = widths.map((width) => width + "px").join(" ");
    arrows();
  }

  // The source, with the lines of the steps marked.
  const pane = make("div", "source");
  pane.tabIndex = 0;
  pane.setAttribute("role", "region");
  pane.setAttribute("aria-label", "Source");
  data.files.forEach(([name, text], file) => {
    const figure = make("figure"), code = make("div", "code");
    figure.append(make("figcaption", "", name), code);
    let before = 0;
    for (const [number, line] of text) {
      if (before && number > before + 1) code.append(make("span", "cut", "⋯"));
      before = number;
      const named = steps.filter((step) => step[FILE] === file && step[LINE] === number);
      const row = make("span", "line" + (named.length ? " named" : "") + (named.some(fatal) ? " fatal" : "") +
        (ends.some((end) => end >= 0 && named.includes(steps[end])) ? " met" : ""));
      row.append(make("span", "number", String(number)), make("span", "text", line || " "));
      code.append(row);
      if (named.length) lines.set(file + ":" + number, row);
    }
    pane.append(figure);
  });

  // The slider over the shares of continuations that fail.
  const share = ([, , , , failed, judged]) => judged ? failed / judged : null;
  function inevitability() {
    const known = data.curve.map(share).filter((value) => value !== null);
    if (known.length < 2 || data.turn < 0) return null;
    const figure = make("div", "inevitability"), bars = make("div", "bars"), slider = make("input");
    const said = make("output"), label = make("label", "", "When does it become inevitable? Keep the steps up to here and draw the rest anew:");
    const points = [...data.curve.map(share), 1];
    points.forEach((value, number) => {
      const bar = make("span", "bar" + (number === data.turn ? " turn" : ""));
      bar.style.height = (value === null ? 2 : 4 + 36 * value) + "px";
      bars.append(bar);
    });
    slider.type = "range";
    slider.id = "slider-" + id;
    label.htmlFor = slider.id;
    slider.min = 0;
    slider.max = slider.value = data.curve.length;
    const move = () => {
      const number = Number(slider.value), point = data.curve[number], last = point ? point[0] : count;
      items.forEach((item, row) => item.classList.toggle("anew", row >= last));
      [...bars.children].forEach((bar, place) => bar.classList.toggle("chosen", place === number));
      const text = !point ? "All steps are kept: this is the execution that failed." :
        (point[5] ? `${point[4]} of ${point[5]} continuations fail` : "No continuation was judged") +
        ` when the first ${plural(point[1], "step")} are kept; thread ${point[2]} goes on at ${point[3]}.` +
        (number === data.turn ? " Behind this switch the failure becomes inevitable: the share rises most." : "");
      said.textContent = text;
      slider.setAttribute("aria-valuetext", text);
    };
    slider.addEventListener("input", move);
    figure.append(label, bars, slider, said);
    move();
    return figure;
  }

  const tools = make("div", "pointed"), view = make("div", "beside" + (data.lanes > 2 || !data.files.length ? " many" : "")), wide = make("div", "wide");
  tools.append(fact);
  if (data.blocks.length) tools.append(foldAll);
  wide.tabIndex = 0;
  wide.setAttribute("role", "region");
  wide.setAttribute("aria-label", "Interleaving, time runs downwards");
  wide.append(grid);
  view.append(wide);
  if (data.files.length) view.append(pane);
  const curve = inevitability();
  if (curve) box.append(curve);
  box.append(tools, view);
  const important = (block) => rowsOf(block).some((row) => steps[row][MARK] || ends.includes(row));
  data.blocks.forEach((_, block) => fold(block, count > FEW && !important(block)));
  const first = steps.findIndex(fatal);
  if (count) items[first < 0 ? Math.max(0, items.findIndex((item) => !item.hidden)) : first].tabIndex = 0;
  const fit = () => lay(wide.clientWidth - 2);
  new ResizeObserver(fit).observe(wide);
  addEventListener("paper", () => { data.blocks.forEach((_, block) => fold(block, false)); lay(PAPER); });
  addEventListener("screen", fit);
}
