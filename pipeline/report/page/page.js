// Filtering of the flagged rows, and maths. The page is complete without it. Texts are only ever read from and written
// to text nodes; what KaTeX makes of a formula is built by KaTeX, which is told to trust nothing.
"use strict";

(function filtering() {
  const form = document.querySelector("form.filter");
  if (!form) return;
  const items = Array.from(document.querySelectorAll(".items > .item"));
  const texts = items.map((item) => item.textContent.toLowerCase());
  const reasons = items.map((item) => item.dataset.reasons.split("\n"));
  const reason = document.getElementById("reason");
  const search = document.getElementById("search");
  const found = document.getElementById("found");

  function apply() {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    items.forEach((item, at) => {
      item.hidden = !((reason.value === "" || reasons[at].includes(reason.value)) && texts[at].includes(wanted));
      if (!item.hidden) shown += 1;
    });
    found.textContent = `${shown} of ${items.length}`;
  }

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
})();

(function maths() {
  if (typeof katex === "undefined") return;
  const pattern = new RegExp(JSON.parse(document.getElementById("settings").textContent).maths, "g");
  // A row may hold hostile TeX: macros that expand for ever, rules a mile wide, ten thousand formulas.
  // What KaTeX cannot read is thrown, so that its source is shown; left to itself it would draw parts of it.
  const limits = { throwOnError: true, trust: false, maxExpand: 100, maxSize: 20, strict: "ignore", output: "html" };
  const MAX_FORMULAS = 100;
  const MAX_FORMULA_CHARS = 1000;

  function formula(source) {
    const marks = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
    const span = document.createElement("span");
    const displayMode = source.startsWith("$$") || source.startsWith("\\[");
    try {
      katex.render(source.slice(marks, -marks), span, { ...limits, displayMode });
    } catch {
      return null;
    }
    return span;
  }

  function rendered(source) {
    const parts = document.createDocumentFragment();
    let at = 0;
    let count = 0;
    for (const match of source.matchAll(pattern)) {
      if (count >= MAX_FORMULAS || match[0].length > MAX_FORMULA_CHARS) continue;
      const span = formula(match[0]);
      if (!span) continue;
      parts.append(source.slice(at, match.index), span);
      at = match.index + match[0].length;
      count += 1;
    }
    parts.append(source.slice(at));
    return count ? parts : null;
  }

  function render(element) {
    if (element.dataset.done) return;
    element.dataset.done = "yes";
    const source = element.textContent;
    const made = rendered(source);
    if (!made) return;
    const pretty = document.createElement("span");
    pretty.append(made);
    const plain = document.createElement("span");
    plain.textContent = source;
    plain.hidden = true;
    const toggle = document.createElement("button");
    toggle.type = "button";
    toggle.className = "source";
    toggle.textContent = "source";
    toggle.addEventListener("click", () => {
      plain.hidden = !plain.hidden;
      pretty.hidden = !plain.hidden;
      toggle.textContent = plain.hidden ? "source" : "rendered";
    });
    element.replaceChildren(pretty, plain, toggle);
  }

  const elements = document.querySelectorAll(".maths");
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        render(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  elements.forEach((element) => observer.observe(element));
  window.addEventListener("beforeprint", () => elements.forEach(render));
})();
