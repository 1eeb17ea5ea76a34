"use strict";
const PAGE_SIZE = 50;

function make(name, text = "", kind = "") {
  const node = document.createElement(name);
  node.textContent = text;
  node.className = kind;
  return node;
}

function openPart(id) {
  const part = document.getElementById(id);
  if (part instanceof HTMLDetailsElement && !part.open) {
    part.open = true;
    part.scrollIntoView();
  }
}

function browse(browser) {
  const data = JSON.parse(browser.querySelector("script").textContent);
  const [kinds, task, search, count, list, more] = browser.querySelectorAll(".kinds, select, input, .count, .list, .more");
  const buttons = ["all", ...data.kinds].map((kind, index) => {
    const members = data.rows.filter(row => !index || row[1] === index - 1).length;
    const button = make("button", `${kind} ${members.toLocaleString("en")}`);
    button.type = "button";
    button.disabled = !members;
    button.addEventListener("click", () => choose(index));
    return button;
  });
  kinds.append(...buttons);
  data.tasks.forEach((name, index) => task.append(new Option(name, String(index))));
  let texts = null, kind = 0, matches = [];

  function choose(index) {
    kind = index;
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === index)));
    filter();
  }

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    if (wanted) texts ||= data.rows.map(row => row.slice(2).flat(Infinity).join("\n").toLowerCase());
    matches = data.rows.filter((row, index) =>
      (!kind || row[1] === kind - 1) && (!task.value || row[0] === Number(task.value)) && (!wanted || texts[index].includes(wanted)));
    count.textContent = `${matches.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")}`;
    list.replaceChildren();
    showMore();
  }

  function showMore() {
    list.append(...matches.slice(list.children.length, list.children.length + PAGE_SIZE).map(show));
    more.hidden = list.children.length >= matches.length;
  }

  function show([taskIndex, kindIndex, prompt, gold, answers]) {
    const article = make("article"), sides = make("div", "", "sides");
    article.tabIndex = -1;
    article.append(make("p", `${data.tasks[taskIndex]} · ${data.kinds[kindIndex]}`, "quiet"), make("pre", prompt, "title"));
    answers.forEach(([sign, tone, ...parts], index) => {
      const side = make("div", "", tone), text = make("pre");
      parts.forEach((part, place) => text.append(make(place === 1 ? "mark" : "span", part)));
      side.append(make("b", `${data.names[index]} ${sign}`), text);
      sides.append(side);
    });
    article.append(sides);
    if (gold) article.append(make("p", `Gold answer: ${gold}`, "quiet"));
    return article;
  }

  function move(step) {
    const index = [...list.children].indexOf(document.activeElement);
    const next = index < 0 ? 0 : Math.max(0, index + step);
    if (next >= list.children.length) showMore();
    list.children[Math.min(next, list.children.length - 1)]?.focus();
  }

  task.addEventListener("change", filter);
  search.addEventListener("input", filter);
  more.addEventListener("click", showMore);
  new IntersectionObserver(entries => entries.some(entry => entry.isIntersecting) && showMore()).observe(more);
  addEventListener("keydown", event => {
    const step = {j: 1, k: -1, ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select")) {
      if (event.key === "Escape") event.target.blur();
    } else if (event.key === "/") {
      event.preventDefault();
      openPart("answers");
      search.focus();
    } else if (step && (event.key.length === 1 || list.contains(event.target))) {
      event.preventDefault();
      openPart("answers");
      move(step);
    }
  });
  choose(Math.max(0, data.kinds.findIndex((_, index) => data.rows.some(row => row[1] === index)) + 1));
}

for (const line of document.querySelectorAll(".code")) {
  const button = make("button", "Copy"), code = line.querySelector("code");
  button.type = "button";
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
    button.textContent = "Copied";
  });
  line.append(button);
}
document.querySelectorAll(".browser").forEach(browse);
addEventListener("hashchange", () => openPart(location.hash.slice(1)));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
openPart(location.hash.slice(1));
