// The filters and the search above the table of rows. Their values are part of the page's address, so that a link opens
// the same rows.
(function filters() {
  const form = document.getElementById("filters");
  /** Each filter: its name in the address, its label, and the function that returns the values of a row. */
  const CHOICES = [
    ["outcome", "Outcome", (row) => [row.outcome]],
    ["stage", "Stage", (row) => [row.stage]],
    ["reason", "Reason", (row) => [row.reason]],
    ["flag", "Flag", (row) => row.flags],
    ["tier", "Advice", (row) => [row.tier]],
    ["verdict", "Verdict", (row) => row.verdicts],
    ["source", "Source", (row) => [row.source]],
    ["domain", "Domain", (row) => [row.domain]],
    ["verifier", "Verifier", (row) => [row.verifier]],
    ["split", "Split", (row) => [row.split]],
  ];
  const RATES = [
    ["", "any"],
    ["0-0", "never passed"],
    ["0-0.25", "up to 25 %"],
    ["0.25-0.75", "25 to 75 %"],
    ["0.75-1", "from 75 %"],
    ["1-1", "always passed"],
    ["none", "not sampled"],
  ];
  const DECISIONS = [
    ["", "any"],
    ["open", "open"],
    ["decided", "decided"],
    ["keep", "keep"],
    ["drop", "drop"],
    ["fix", "fix"],
    ["unsure", "unsure"],
  ];
  const GROUPS = ["", "outcome", "stage", "reason", "source", "domain", "tier"];
  const state = { q: "", rate: "", decision: "", group: "" };
  const selects = {};
  let searchTexts = null;

  const option = (value, label) => truegold.element("option", { value, title: truegold.explain(value) || null }, label);

  function addSelect(name, label, entries) {
    const select = truegold.element("select", { name }, entries.map(([value, text]) => option(value, text)));
    selects[name] = select;
    form.append(truegold.element("label", {}, `${label} `, select));
  }

  function build() {
    form.append(
      truegold.element("label", { class: "search" }, "Search ", truegold.element("input", {
        type: "search", name: "q", id: "search", placeholder: "text, gold, id, file:line  ( / )", autocomplete: "off",
      })),
    );
    for (const [name, label, valuesOf] of CHOICES) {
      const counts = new Map();
      for (const row of truegold.rows) {
        for (const value of valuesOf(row)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const most = Array.from(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      if (!most.length || (most.length === 1 && most[0][1] === truegold.rows.length)) continue;
      state[name] = "";
      const entries = most.map(([value, count]) => [value, `${truegold.words(value)} (${truegold.count(count)})`]);
      addSelect(name, label, [["", "any"], ...entries]);
    }
    if (truegold.rows.some((row) => row.rate !== null)) addSelect("rate", "Pass rate", RATES);
    addSelect("decision", "Decision", DECISIONS);
    addSelect("group", "Group by", GROUPS.map((name) => [name, name || "nothing"]));
    form.append(truegold.element("button", { type: "button", onclick: clear }, "Clear"));
  }

  function hasRate(row, choice) {
    if (choice === "none") return row.rate === null;
    const [low, high] = choice.split("-").map(Number);
    return row.rate !== null && row.rate >= low && row.rate <= high;
  }

  function hasDecision(row, choice) {
    if (choice === "open") return !row.decision;
    return choice === "decided" ? Boolean(row.decision) : row.decision === choice;
  }

  /** Whether the search text is the name of a row: its file and line, its id, or the id from its source. */
  let named = { q: "", isName: false };
  const isNamed = (row, q) => row.place === q || row.id === q || row.name === q;
  function isName(q) {
    if (named.q !== q) named = { q, isName: truegold.rows.some((row) => isNamed(row, q)) };
    return named.isName;
  }

  /** Mark the search text wherever it occurs below a node, except in formulas. */
  truegold.markHits = function (node) {
    if (!state.q.trim()) return node;
    const hit = new RegExp(`(${state.q.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "iu");
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) if (hit.test(walker.currentNode.data) && !walker.currentNode.parentElement?.closest(".katex, button")) texts.push(walker.currentNode);
    for (const text of texts) {
      text.replaceWith(...text.data.split(hit).map((part, index) => (index % 2 ? truegold.element("mark", { class: "hit" }, part) : part)));
    }
    return node;
  };

  /** The text of a row that is searched, in lower case. */
  function searchText(row) {
    searchTexts ??= new Array(truegold.rows.length);
    searchTexts[row.position] ??= [row.prompt, row.gold, row.suggestion, row.id, row.place, row.name, row.reason, ...row.flags]
      .join("\n")
      .toLowerCase();
    return searchTexts[row.position];
  }

  truegold.isShown = function (row) {
    for (const [name, , valuesOf] of CHOICES) {
      if (state[name] && !valuesOf(row).includes(state[name])) return false;
    }
    if (state.rate && !hasRate(row, state.rate)) return false;
    if (state.decision && !hasDecision(row, state.decision)) return false;
    const q = state.q.trim();
    if (q && isName(q)) return isNamed(row, q);
    return !q || searchText(row).includes(q.toLowerCase());
  };

  /** Describe the active filters in words. */
  truegold.describeFilters = () =>
    Object.entries(state)
      .filter(([name, value]) => value && name !== "group")
      .map(([name, value]) => `${name === "q" ? "search" : name} ${truegold.words(value)}`)
      .join(", ");

  function write() {
    for (const [name, value] of Object.entries(state)) {
      const control = form.elements[name];
      if (control) control.value = value;
    }
  }

  function clear() {
    truegold.clearFilters();
    truegold.applyFilters();
  }

  truegold.clearFilters = () => {
    for (const name of Object.keys(state)) state[name] = "";
    write();
  };
  truegold.filterState = state;
  truegold.readFilters = function (query) {
    for (const name of Object.keys(state)) state[name] = query.get(name) ?? "";
    write();
  };
  truegold.buildFilters = function () {
    build();
    let waiting = 0;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      state[event.target.name] = event.target.value;
      clearTimeout(waiting);
      // Search when typing pauses.
      if (event.target.name === "q") waiting = setTimeout(truegold.applyFilters, 150);
      else truegold.applyFilters();
    });
  };
})();
