// Groups become elements when they are shown, and get contents when they are opened. All data are
// inserted as text, never as markup.
(() => {
  const PAGE = 100, MEMBERS = 100;
  const list = document.getElementById("groups");
  if (!list) return;
  const groups = JSON.parse(document.getElementById("data").textContent);
  const more = document.getElementById("more"), filter = document.getElementById("filter");
  const status = document.getElementById("shown");
  let chosen = groups, shown = 0;

  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const plural = (count, word) => count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s");

  function copyButton(text, code) {
    const button = make("button", "", "Copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      let copied = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        copied = document.execCommand("copy");
      }
      button.textContent = copied ? "Copied" : "Selected";
      status.textContent = copied ? "The command was copied." : "The command is selected.";
    });
    return button;
  }

  function members(group) {
    const box = make("details");
    box.append(make("summary", "", "Seeds (" + plural(group.members.length, "row") + " of " +
      plural(group.count, "violation") + ")"));
    const scroll = make("div", "wide"), table = make("table"), body = make("tbody");
    const head = make("tr");
    for (const name of ["Seed", "Message, if different", "Host", "Log file", "Finished"]) {
      const cell = make("th", name === "Seed" ? "" : "left", name);
      cell.scope = "col";
      head.append(cell);
    }
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    scroll.append(table);
    scroll.tabIndex = 0;
    const next = make("button", "", "More seeds");
    next.type = "button";
    let at = 0;
    const fill = () => {
      for (const row of group.members.slice(at, at + MEMBERS)) {
        const line = make("tr");
        row.forEach((cell, column) => line.append(make("td", column ? "left" : "", cell)));
        body.append(line);
      }
      at += MEMBERS;
      next.hidden = at >= group.members.length;
    };
    next.addEventListener("click", fill);
    box.addEventListener("toggle", () => at === 0 && fill());
    box.append(scroll, next);
    return box;
  }

  function commands(group) {
    const table = make("dl", "commands");
    for (const [purpose, command] of group.commands) {
      const line = make("dd", "command"), code = make("code", "", command);
      line.append(code, copyButton(command, code));
      table.append(make("dt", "", purpose), line);
    }
    return table;
  }

  function pairs(rows, className) {
    const table = make("dl", className);
    for (const [name, value] of rows) {
      const pair = make("div");
      pair.append(make("dt", "", name));
      for (const text of Array.isArray(value) ? value : [value]) pair.append(make("dd", "", text));
      table.append(pair);
    }
    return table;
  }

  function texts(lines, className) {
    const list = make("ul", className);
    for (const line of lines) list.append(make("li", "", line));
    return list;
  }

  function folded(title, ...content) {
    const box = make("details");
    box.append(make("summary", "", title), ...content);
    return box;
  }

  // The drawing of a history is a template with ids, which are unique with the group's number.
  function operations(group, body) {
    const prefix = "h" + index.get("group-" + group.signature) + "-";
    const part = document.getElementById("history").content.cloneNode(true);
    for (const element of part.querySelectorAll("[id]")) element.id = prefix + element.id;
    for (const [name, property] of [["for", "htmlFor"], ["aria-describedby", ""]])
      for (const element of part.querySelectorAll("[" + name + "]"))
        element.setAttribute(name, prefix + element.getAttribute(name));
    const box = make("div", "history");
    box.append(make("h3", "", "The operations, and the longest order that is legal"),
      make("p", "", group.history.title), part);
    body.append(box);
    const slider = box.querySelector("#" + prefix + "step");
    slider.max = group.history.order.length;
    drawHistory(box, group.history, prefix);
  }

  function open(group, details) {
    if (details.lastElementChild.className === "body") return;
    const body = make("div", "body");
    details.append(body);
    if (groups.length > 1 && group.message !== group.sentence) body.append(make("p", "message", group.message));
    if (group.why.length) body.append(make("h3", "", "Why"), texts(group.why, "why"));
    if (group.hints.length) body.append(make("h3", "", "Changes that end it: hints, no proof"), texts(group.hints, "hints"));
    if (group.history) operations(group, body);
    if (group.drawing) {
      const box = make("div", "drawing");
      body.append(make("h3", "", "The execution that failed"), box, legend(group));
      drawLanes(box, group.drawing, index.get("group-" + group.signature));
    }
    if (group.note) body.append(make("p", "note", "Replay: " + group.note));
    if (group.commands.length) body.append(make("h3", "", "Go on from here"), commands(group));
    const lines = make("ul", "lines");
    for (const text of group.lines) lines.append(make("li", "", text));
    body.append(folded("Facts of the record", lines));
    if (group.program.length) body.append(folded("Program", pairs(group.program, "program")));
    if (group.environment.length) body.append(folded("Environment", pairs(group.environment, "environment")));
    if (group.lanes) {
      const texts = [make("pre", "", group.lanes)];
      if (group.curve) texts.push(make("pre", "curve", group.curve));
      body.append(folded("The execution as text", ...texts));
    }
    if (group.members.length) body.append(members(group));
  }

  function legend(group) {
    const kinds = new Set(group.drawing.arrows.map(([, , kind]) => kind));
    const marks = new Set(group.drawing.steps.map((step) => step[4]));
    const box = make("p", "legend");
    const entry = (shown, className, sign, text) => {
      if (!shown) return;
      const part = make("span", "entry");
      part.append(make("span", "key " + className, sign), " " + text);
      box.append(part);
    };
    entry(kinds.has("happens before"), "before", "→", "happens before: the thread synchronised here");
    entry(kinds.has("missing"), "wrong", "⇢", "the order that is missing");
    entry(kinds.has("reads"), "reads", "⇢", "from a store to the stale read that saw it");
    entry(marks.has("stale"), "stale", "◌", "stale read: there were newer stores");
    entry(marks.has("turn"), "turn", "▸", "behind this switch the failure becomes inevitable");
    entry(marks.has("first") || marks.has("failed"), "wrong", "✗", marks.has("first")
      ? "both accesses of the race" : "the access that failed");
    return box;
  }

  function element(group) {
    const details = make("details", "group"), summary = make("summary");
    const facts = make("span", "facts"), link = make("a", "anchor", "#");
    link.href = "#group-" + group.signature;
    link.setAttribute("aria-label", "Link to this signature");
    facts.append(make("span", "kind", group.invariant), " · " + group.suite + " · ",
      make("span", "count", plural(group.count, "violation")), " · seed " + group.seed, " ");
    if (group.mark) facts.append(make("em", "mark", group.mark), " ");
    facts.append(link);
    // The headline of a page about one signature is its sentence.
    summary.append(make("b", "", groups.length > 1 ? group.sentence : group.message), facts);
    details.append(summary);
    details.id = "group-" + group.signature;
    details.addEventListener("toggle", () => details.open && open(group, details));
    return details;
  }

  function updateStatus() {
    status.textContent = plural(shown, "signature") + (shown < chosen.length
      ? " of " + chosen.length.toLocaleString("en") : "") + " shown";
    more.hidden = shown >= chosen.length;
  }
  function grow() {
    const fragment = document.createDocumentFragment();
    for (const group of chosen.slice(shown, shown + PAGE)) fragment.append(element(group));
    list.append(fragment);
    shown = Math.min(chosen.length, shown + PAGE);
    updateStatus();
  }
  function search() {
    const text = filter.value.trim().toLowerCase();
    chosen = groups.filter((group) => !text || [group.invariant, group.suite, group.message,
      group.sentence, group.signature]
      .some((field) => field.toLowerCase().includes(text)) || group.seed === text ||
      group.members.some((member) => member[0] === text));
    list.replaceChildren();
    shown = 0;
    grow();
  }
  function openAll() {
    for (const details of list.children) {
      details.open = true;
      open(groups[index.get(details.id)], details);
    }
  }

  const index = new Map(groups.map((group, number) => ["group-" + group.signature, number]));
  more.addEventListener("click", () => {
    const last = list.lastElementChild;
    grow();
    if (last.nextElementSibling) last.nextElementSibling.firstElementChild.focus();
  });
  filter.addEventListener("input", search);
  document.getElementById("open-all").addEventListener("click", openAll);
  // Drawings that are made for paper miss the event that made them.
  addEventListener("beforeprint", () => { openAll(); dispatchEvent(new Event("paper")); });
  addEventListener("afterprint", () => dispatchEvent(new Event("screen")));
  // A link to a signature opens it, also one that is not in the list yet.
  function follow() {
    const name = decodeURIComponent(location.hash.slice(1));
    if (!index.has(name)) return false;
    if (!chosen.includes(groups[index.get(name)])) { filter.value = ""; search(); }
    while (!document.getElementById(name)) grow();
    const details = document.getElementById(name);
    details.open = true;
    details.scrollIntoView();
    return true;
  }
  addEventListener("hashchange", follow);
  grow();
  if (!follow() && groups.length === 1) list.firstElementChild.open = true;
})();
