"use strict";
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

  function open(group, details) {
    if (details.lastElementChild.className === "body") return;
    const body = make("div", "body");
    body.append(make("p", "message", group.message));
    if (group.command) {
      const line = make("div", "command"), code = make("code", "", group.command);
      line.append(code, copyButton(group.command, code));
      body.append(line);
    }
    const lines = make("ul", "lines");
    for (const text of group.lines) lines.append(make("li", "", text));
    body.append(lines);
    if (group.note) body.append(make("p", "place", group.note));
    const drawing = document.getElementById("drawing-" + group.signature);
    if (drawing) body.append(drawing.content.cloneNode(true));
    if (group.curve) body.append(make("pre", "curve", group.curve));
    if (group.lanes) {
      const text = make("details");
      text.append(make("summary", "", "The lanes as text, with lines of the sources"), make("pre", "", group.lanes));
      body.append(text);
    }
    if (group.members.length) body.append(members(group));
    details.append(body);
  }

  function element(group) {
    const details = make("details", "group"), summary = make("summary");
    summary.append(make("b", "", group.invariant), " ", make("span", "", group.suite), " · ",
      make("span", "count", plural(group.count, "violation")), " · seed " + group.seed + " · ",
      make("span", "place", group.message.slice(0, 160)));
    if (group.mark) summary.append(" ", make("em", "mark", group.mark));
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
    chosen = groups.filter((group) => !text || [group.invariant, group.suite, group.message, group.signature]
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
  addEventListener("beforeprint", openAll);
  grow();
  const named = index.has(location.hash.slice(1)) && document.getElementById(location.hash.slice(1));
  if (named) named.open = true;
  else if (groups.length === 1) list.firstElementChild.open = true;
})();
