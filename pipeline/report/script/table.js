// The table of all rows. Tabulator draws only the rows in view.
(function rowTable() {
  const holder = document.getElementById("table");
  let table = null;
  let active = [];
  let sort = null;

  const SHORT = { "held for review": "held" };

  const textCell = (cell) => {
    const value = cell.getValue();
    if (value === null || value === undefined) return document.createTextNode("");
    const text = String(value);
    // Start the text near the first hit of the search, so that the hit is in view.
    const found = text.toLowerCase().indexOf(truegold.filterState.q.trim().toLowerCase());
    const start = found > 40 ? found - 20 : 0;
    return truegold.markHits(truegold.element("bdi", { title: text }, `${start ? "… " : ""}${text.slice(start, start + 300)}`));
  };

  function faultCell(cell) {
    const value = cell.getValue();
    if (value === null || value === undefined) return document.createTextNode("");
    const { fault_by } = cell.getData();
    const by = truegold.EVIDENCE[fault_by] ?? `by the rule ${truegold.words(fault_by)}`;
    const bar = truegold.element("span", { class: "fault", title: `The probability that something is wrong with the row, ${by}` });
    bar.append(truegold.percent(value));
    bar.style.setProperty("--share", value);
    return bar;
  }

  function rateCell(cell) {
    const { rate, passes, judged, after } = cell.getData();
    if (rate === null || rate === undefined) return document.createTextNode("");
    const share = after === null || after === undefined ? truegold.percent(rate) : `${(100 * rate).toFixed(0)} → ${(100 * after).toFixed(0)}`;
    return truegold.element("span", { title: `${passes} of ${judged} judged samples pass` }, share);
  }

  /** The decision about the row, or its outcome and reason if it has no decision. */
  function statusCell(cell) {
    const row = cell.getData();
    const shown = row.decision ? truegold.element("b", {}, row.decision) : [SHORT[row.outcome] ?? row.outcome, truegold.words(row.why) === row.outcome ? "" : row.why].filter(Boolean).map(truegold.words).join(": ");
    return truegold.element("bdi", { title: [`${row.outcome}${row.why ? `: ${truegold.words(row.why)}` : ""}`, truegold.explain(row.why)].filter(Boolean).join(". ") }, shown);
  }

  // The reason to show. For a row held for review, it is the first flag, since the ledger says only that it is held.
  const why = (row) => (row.outcome === "held for review" && row.flags[0]) || row.reason || row.flags[0] || "";

  const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  function columns() {
    const has = (name) => truegold.rows.some((row) => row[name] !== null && row[name] !== undefined && row[name] !== "");
    const after = has("after");
    const isVast = window.matchMedia("(min-width: 110rem)").matches;
    const numbers = Math.max(40, 16 + 8 * String(truegold.rows.length).length);
    const last = { alignEmptyValues: "bottom" };
    const all = [
      { title: "#", headerTooltip: "The row's place in the order of the review", field: "turn", width: numbers, hozAlign: "right", formatter: (cell) => document.createTextNode(cell.getValue() + 1), narrow: false },
      { title: "Risk", headerTooltip: "The probability that something is wrong with the row: by its samples, by an asked model, or by how often its flag is right", field: "fault", width: 64, hozAlign: "right", formatter: faultCell, headerSortStartingDir: "desc", sorterParams: last, sorter: "number", narrow: true, needed: has("fault") },
      { title: "Prompt", field: "prompt", minWidth: 150, widthGrow: 8, formatter: textCell, sorter: byText, narrow: true },
      { title: "Gold", headerTooltip: "The answer that the row says is right", field: "gold", minWidth: 56, widthGrow: 1, formatter: textCell, sorter: byText, narrow: false, needed: has("gold") },
      { title: "Samples say", headerTooltip: "The most frequent answer that differs from the gold", field: "rival", minWidth: 84, widthGrow: 1, formatter: textCell, sorter: byText, narrow: false, needed: has("rival") && isVast },
      { title: "Pass", headerTooltip: "The share of judged samples that pass, in per cent; the arrow leads to the share after training", field: "rate", width: after ? 82 : 58, hozAlign: "right", formatter: rateCell, sorter: "number", sorterParams: last, narrow: false, needed: has("rate") },
      { title: "Status", headerTooltip: "The decision, or, without one, where the row ended and why", field: "outcome", minWidth: 104, widthGrow: 1, formatter: statusCell, sorter: byText, narrow: true },
      { title: "Source", headerTooltip: "The file and the line", field: "place", minWidth: 90, widthGrow: 1, formatter: textCell, sorter: (a, b, first, second) => byText(first.getData().source, second.getData().source) || first.getData().row - second.getData().row, narrow: false, needed: isVast },
    ];
    const isNarrow = window.matchMedia("(max-width: 60rem)").matches;
    return all
      .filter((column) => column.needed !== false)
      .map(({ narrow, needed, ...column }) => ({ ...column, visible: narrow || !isNarrow }));
  }

  function readActive() {
    active = table.getRows("active").map((row) => row.getData());
    truegold.active = active;
    const output = document.getElementById("matching");
    const all = truegold.index.records;
    truegold.drawProgress();
    output.textContent = `${truegold.count(active.length)} of ${truegold.count(all)} records`;
  }

  /** If the filters hide the chosen row, choose the first row that they show, so that keys never act on a hidden row. */
  function leaveHidden() {
    if (!truegold.chosen || active.includes(truegold.chosen)) return;
    const isWide = window.matchMedia("(min-width: 60rem)").matches;
    if (active.length && isWide) truegold.choose(active[0]);
    else truegold.chooseNone();
  }

  function remember() {
    if (document.body.dataset.view !== "rows") return;
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(truegold.filterState)) if (value) query.set(name, value);
    for (const [name, value] of Object.entries(truegold.queueState?.() ?? {})) if (value) query.set(name, value);
    if (sort) query.set("sort", `${sort.dir === "desc" ? "-" : ""}${sort.field}`);
    const chosen = truegold.chosen;
    if (chosen) query.set("item", chosen.id ? `${chosen.id}.${chosen.position}` : chosen.place);
    truegold.remember("rows", query);
  }

  truegold.rememberRows = remember;

  /** Show the rows of the filters and the queue, without changing the address. */
  truegold.filterRows = function () {
    if (!table) return;
    const group = truegold.filterState.group;
    table.setGroupBy(group ? (row) => truegold.words(String(row[group] || "none")) : false);
    table.setFilter((row) => truegold.isShown(row) && truegold.isInQueue(row));
    readActive();
    leaveHidden();
  };

  truegold.applyFilters = function () {
    truegold.filterRows();
    remember();
  };

  function writeSort() {
    const select = document.getElementById("sort");
    const name = sort ? `${sort.dir === "desc" ? "-" : ""}${sort.field}` : "";
    select.value = [...select.options].some((option) => option.value === name) ? name : "";
  }

  /** Add a list of orders, for people who cannot click on a column's head. */
  function buildSort() {
    const names = { fault: "risk", rate: "pass rate", prompt: "prompt", gold: "gold", outcome: "status", place: "source" };
    const shown = table.getColumns().map((column) => column.getField());
    const { element } = truegold;
    const options = [["", "suspicion"]];
    for (const [field, label] of Object.entries(names)) {
      if (shown.includes(field)) options.push([field, `${label} ↑`], [`-${field}`, `${label} ↓`]);
    }
    const select = element("select", { id: "sort" }, options.map(([value, label]) => element("option", { value }, label)));
    select.addEventListener("change", () => {
      truegold.sortBy(select.value);
      remember();
    });
    document.getElementById("queue").append(element("label", {}, "Sort by ", select));
  }

  truegold.sortBy = function (text) {
    sort = text ? { field: text.replace(/^-/, ""), dir: text.startsWith("-") ? "desc" : "asc" } : null;
    if (sort && !table.getColumns().some((column) => column.getField() === sort.field)) sort = null;
    writeSort();
    table.setSort([{ column: sort?.field ?? "turn", dir: sort?.dir ?? "asc" }]);
    readActive();
  };

  truegold.redrawRow = function (row) {
    const drawn = table?.getRow(row.position);
    if (drawn) drawn.reformat();
  };

  truegold.redrawTable = () => table?.redraw(true);

  truegold.scrollToRow = function (row) {
    if (!table || holder.offsetParent === null || !active.includes(row)) return;
    table.scrollToRow(row.position, "nearest", false).catch(() => {});
  };

  truegold.buildTable = function () {
    for (const row of truegold.rows) row.why = why(row);
    return new Promise((resolve) => {
      table = new Tabulator(holder, {
        data: truegold.rows,
        index: "position",
        columns: columns(),
        height: "100%",
        layout: "fitColumns",
        rowHeight: window.matchMedia("(max-width: 60rem)").matches ? 54 : 32,
        keybindings: false,
        headerSortTristate: true,
        placeholder: "No row matches. Clear the filters to see all.",
        groupHeader: (value, count) => truegold.element("span", {}, `${value} (${truegold.count(count)})`),
        rowFormatter: (row) => {
          const node = row.getElement();
          const data = row.getData();
          node.classList.toggle("chosen", data === truegold.chosen);
          node.dataset.decision = data.decision || "";
        },
      });
      table.on("rowClick", (event, row) => row.getData && truegold.choose(row.getData()));
      table.on("headerClick", () => {
        const [first] = table.getSorters();
        sort = first ? { field: first.field, dir: first.dir } : null;
        writeSort();
        readActive();
        remember();
      });
      table.on("tableBuilt", () => {
        // The scrolling element takes the focus. For screen readers, it is the group of the rows.
        const scrolled = holder.querySelector(".tabulator-tableholder");
        scrolled.setAttribute("role", "rowgroup");
        scrolled.firstChild.setAttribute("role", "presentation");
        holder.removeAttribute("aria-owns");
        holder.setAttribute("aria-label", "Rows");
        buildSort();
        readActive();
        resolve();
      });
    });
  };
})();
