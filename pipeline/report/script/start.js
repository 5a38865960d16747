// Starts the page, shows the chosen row, and handles the keys.
(function start() {
  const rowsView = document.getElementById("rows");
  let isBuilt = null;
  let areKeysOn = true;
  let left = 0;

  /** Choose a row: show its card, and mark its line in the table. */
  truegold.choose = async function (row) {
    const earlier = truegold.chosen;
    left = Math.max(0, (truegold.active ?? []).indexOf(earlier));
    truegold.chosen = row;
    if (earlier) truegold.redrawRow(earlier);
    truegold.redrawRow(row);
    truegold.scrollToRow(row);
    truegold.rememberRows();
    rowsView.dataset.card = "open";
    truegold.drawDecision();
    await truegold.drawCard(row);
  };

  /** Choose no row, because the filters show none. */
  truegold.chooseNone = function () {
    const earlier = truegold.chosen;
    truegold.chosen = null;
    truegold.detail = null;
    if (earlier) truegold.redrawRow(earlier);
    delete rowsView.dataset.card;
    document.getElementById("card").replaceChildren(truegold.element("p", { class: "dim" }, "Choose a row."));
    truegold.drawDecision();
  };

  /** Go to the row after or before the chosen one, if there is one. */
  truegold.step = async function (by) {
    const rows = truegold.active ?? [];
    const index = rows.indexOf(truegold.chosen);
    // If the chosen row is a neighbour that the filters hide, go back to the row that was chosen before it.
    const next = rows[index < 0 ? left : index + by];
    if (next) await truegold.choose(next);
  };

  function closeCard() {
    delete rowsView.dataset.card;
    truegold.redrawTable();
    if (truegold.chosen) truegold.scrollToRow(truegold.chosen);
  }

  const KEYS = {
    k: () => truegold.decide("keep"),
    d: () => truegold.decide("drop"),
    f: () => truegold.decide("fix"),
    u: () => truegold.decide("unsure"),
    z: () => truegold.undo(),
    a: () => truegold.acceptSuggestion(),
    n: () => truegold.focusNote(),
    s: () => truegold.findSimilar(),
    b: () => truegold.openBulk(),
    j: () => truegold.step(1),
    ArrowRight: () => truegold.step(1),
    h: () => truegold.step(-1),
    ArrowLeft: () => truegold.step(-1),
    "/": () => document.getElementById("search").focus(),
    "?": () => document.getElementById("help").toggleAttribute("open"),
    Escape: closeCard,
  };

  // Keys act one after another. A second K waits until the first row is decided, and then decides about the next row.
  // Keys that are typed right after N, F or / are ignored until the field is open.
  const OPEN_FIELDS = ["n", "f", "/"];
  let turn = Promise.resolve();
  let isFieldAwaited = false;

  function inTurn(key, action) {
    isFieldAwaited = OPEN_FIELDS.includes(key);
    turn = turn.then(action).finally(() => (isFieldAwaited = false));
  }

  function onKey(event) {
    if (document.body.dataset.view !== "rows" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const field = event.target.closest("input, textarea, select");
    if (field) {
      if (event.key === "Escape") {
        truegold.closeFix();
        field.blur();
      } else if (event.key === "Enter" && field.id === "note") {
        event.preventDefault();
        field.blur();
      } else if (event.key === "Enter" && field.id === "search") {
        field.blur();
        truegold.step(0);
      }
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = areKeysOn || key === "Escape" ? KEYS[key] : null;
    if (!action) return;
    event.preventDefault();
    if (!isFieldAwaited) inTurn(key, action);
  }

  async function build() {
    await truegold.loadRows();
    truegold.buildFilters();
    document.getElementById("choices").open = window.matchMedia("(min-width: 60rem)").matches;
    truegold.buildQueue();
    truegold.buildReview();
    truegold.buildBulk();
    await truegold.buildTable();
    await truegold.readDecisions();
    document.getElementById("close-card").addEventListener("click", closeCard);
    document.getElementById("keys-on").addEventListener("change", (event) => (areKeysOn = event.target.checked));
    document.addEventListener("keydown", onKey);
    document.addEventListener("visibilitychange", () => document.hidden || truegold.readDecisions());
    window.addEventListener("storage", () => truegold.readDecisions());
  }

  function rowNamed(name) {
    if (!name) return null;
    const [id, position] = name.split(".");
    const rows = truegold.rowsById.get(id) ?? [];
    return rows.find((row) => String(row.position) === position) ?? rows[0] ?? truegold.rows.find((row) => row.place === name || row.name === name) ?? null;
  }

  async function showRows(query) {
    isBuilt ??= build();
    try {
      await isBuilt;
    } catch (error) {
      document.getElementById("table").replaceChildren(`This browser cannot show the rows: ${error.message}`);
      throw error;
    }
    truegold.readFilters(query);
    truegold.readQueue(query);
    truegold.drawQueue();
    // Write the address only once, with both the order and the row, so that a reload cannot lose one of them.
    const item = rowNamed(query.get("item"));
    const sort = query.get("sort") ?? "";
    if (item) truegold.chosen = null;
    truegold.sortBy(sort);
    truegold.filterRows();
    truegold.redrawTable();
    const isWide = window.matchMedia("(min-width: 60rem)").matches;
    const first = item ?? (isWide ? (truegold.chosen ?? truegold.active[0]) : null);
    if (first) await truegold.choose(first);
    else truegold.rememberRows();
    document.body.dataset.ready = "yes";
  }

  truegold.onView((view, query) => {
    if (view === "rows") showRows(query);
  });
  truegold.showView();
  if (document.body.dataset.view !== "rows") document.body.dataset.ready = "yes";
})();
