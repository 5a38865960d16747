// Prints the rows that the filters show, as a plain table. The table on screen has only the rows in view.
(function printing() {
  const MOST_ROWS = 1_000;
  const PROMPT_CHARS = 400;
  const ANSWER_CHARS = 80;
  const { element, words, percent, count } = truegold;
  const holder = document.getElementById("printed");

  const cut = (text, most) => (text && text.length > most ? `${text.slice(0, most)} …` : (text ?? ""));
  const columns = [
    ["#", (row) => count(row.turn + 1)],
    ["Risk", (row) => (row.fault === null || row.fault === undefined ? "" : percent(row.fault))],
    ["Prompt", (row) => cut(row.prompt, PROMPT_CHARS)],
    ["Gold", (row) => cut(row.gold, ANSWER_CHARS)],
    ["Samples say", (row) => cut(row.rival, ANSWER_CHARS)],
    ["Pass", (row) => (row.rate === null || row.rate === undefined ? "" : percent(row.rate))],
    ["Outcome", (row) => words(row.outcome)],
    ["Reason", (row) => words(row.why)],
    ["Source", (row) => row.place],
    ["Decision", (row) => words(row.decision)],
  ];

  function describe(rows, shown) {
    const choices = truegold.describeFilters();
    const bound = shown < rows.length ? `: the first ${count(shown)} are printed; filters print others` : "";
    return `${count(rows.length)} of ${count(truegold.index.records)} records${choices ? ` (${choices})` : ""}${bound}. Prompts to ${PROMPT_CHARS} characters. The chosen row follows.`;
  }

  function fill() {
    if (document.body.dataset.view !== "rows" || !truegold.active) return;
    const rows = truegold.active;
    const shown = rows.slice(0, MOST_ROWS);
    const used = columns.filter(([, text]) => shown.some((row) => text(row) !== ""));
    holder.replaceChildren(
      element("p", { class: "note" }, describe(rows, shown.length)),
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, used.map(([title]) => element("th", { scope: "col" }, title)))),
        element("tbody", {}, shown.map((row) => element("tr", {}, used.map(([, text]) => element("td", { dir: "auto" }, text(row)))))),
      ),
    );
  }

  window.addEventListener("beforeprint", fill);
  window.addEventListener("afterprint", () => holder.replaceChildren());
})();
