// The table of all rows, by Tabulator: only what is seen is drawn.
(function rowTable() {
  const holder = document.getElementById("table");
  let table = null;
  let active = [];
  let sort = null;

  const textCell = (name) => (cell) => {
    const value = cell.getValue();
    if (value === null || value === undefined) return document.createTextNode("");
    return truegold.element("bdi", { title: name ? null : value }, name ? truegold.words(value) : String(value).slice(0, 300));
  };

  function faultCell(cell) {
    const value = cell.getValue();
    if (value === null || value === undefined) return document.createTextNode("");
    const { fault_by } = cell.getData();
    const by = truegold.EVIDENCE[fault_by] ?? `by the rule ${truegold.words(fault_by)}`;
    const bar = truegold.element("span", { class: "fault", title: `At fault with this probability, ${by}` });
    bar.append(truegold.percent(value));
    bar.style.setProperty("--share", value);
    return bar;
  }

  function rateCell(cell) {
    const { rate, passes, judged, after } = cell.getData();
    if (rate === null || rate === undefined) return document.createTextNode("");
    const share = after === null || after === undefined ? truegold.percent(rate) : `${(100 * rate).toFixed(0)} → ${truegold.percent(after)}`;
    return truegold.element("span", { title: `${passes} of ${judged} judged samples pass` }, share);
  }

  // A row that is held back is held for its flags: what stands in the ledger is that it is held.
  const why = (row) => (row.outcome === "held for review" && row.flags[0]) || row.reason || row.flags[0] || "";

  const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  function columns() {
    const has = (name) => truegold.rows.some((row) => row[name] !== null && row[name] !== undefined && row[name] !== "");
    const differs = (name) => truegold.rows.some((row) => row[name] !== truegold.rows[0][name]);
    const after = has("after");
    const all = [
      { title: "#", field: "turn", width: 54, hozAlign: "right", formatter: (cell) => document.createTextNode(cell.getValue() + 1), narrow: false },
      { title: "Fault", headerTooltip: "How probable it is that the row is at fault", field: "fault", width: 78, hozAlign: "right", formatter: faultCell, headerSortStartingDir: "desc", sorterParams: { alignEmptyValues: "bottom" }, sorter: "number", narrow: true },
      { title: "Prompt", field: "prompt", minWidth: 150, widthGrow: 5, formatter: textCell(""), sorter: byText, narrow: true },
      { title: "Gold", field: "gold", minWidth: 62, widthGrow: 1, formatter: textCell(""), sorter: byText, narrow: false },
      { title: "Others say", field: "rival", minWidth: 84, widthGrow: 1, formatter: textCell(""), sorter: byText, narrow: false, needed: has("rival") },
      { title: "Pass", headerTooltip: "The share of judged samples that pass; after training behind the arrow", field: "rate", width: after ? 98 : 66, hozAlign: "right", formatter: rateCell, sorter: "number", sorterParams: { alignEmptyValues: "bottom" }, narrow: false, needed: has("rate") },
      { title: "Ended", field: "outcome", minWidth: 84, widthGrow: 1, formatter: textCell("words"), sorter: byText, narrow: true, needed: differs("outcome") },
      { title: "Why", field: "why", minWidth: 80, widthGrow: 1, formatter: textCell("words"), sorter: byText, narrow: false, needed: has("why") && window.matchMedia("(min-width: 88rem), (max-width: 60rem)").matches },
      { title: "Source", field: "place", minWidth: 90, widthGrow: 1, formatter: textCell(""), sorter: (a, b, first, second) => byText(first.getData().source, second.getData().source) || first.getData().row - second.getData().row, narrow: false, needed: window.matchMedia("(min-width: 110rem)").matches },
      { title: "Word", headerTooltip: "What was decided", field: "decision", width: 70, formatter: textCell("words"), sorter: byText, narrow: true },
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

  truegold.applyFilters = function () {
    if (!table) return;
    const group = truegold.filterState.group;
    table.setGroupBy(group ? (row) => truegold.words(String(row[group] || "none")) : false);
    table.setFilter((row) => truegold.isShown(row) && truegold.isInQueue(row));
    readActive();
    remember();
  };

  function writeSort() {
    const select = document.getElementById("sort");
    const name = sort ? `${sort.dir === "desc" ? "-" : ""}${sort.field}` : "";
    select.value = [...select.options].some((option) => option.value === name) ? name : "";
  }

  /** The choice of an order, for those who have no pointer to click on a column's head with. */
  function buildSort() {
    const names = { fault: "fault", rate: "pass rate", prompt: "prompt", gold: "gold", outcome: "ended", place: "source" };
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
        rowHeight: 32,
        keybindings: false,
        headerSortTristate: true,
        placeholder: "No row is like this.",
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
        // What scrolls takes the focus, and is the group of the rows for those who hear the page.
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
