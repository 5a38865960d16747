// The dialog that makes one decision about all rows that the filters show.
(function bulk() {
  const { element, count } = truegold;
  const dialog = element("dialog", { id: "bulk", "aria-labelledby": "bulk-title" });
  const DONE = { fix: "fixed", drop: "dropped", keep: "kept" };

  /** The shown rows without a decision, one per id. Rows dropped before review are left out if others are shown. */
  function openRows() {
    const rows = new Map();
    const shown = truegold.active ?? [];
    const isMeant = shown.some(truegold.isReviewable) ? truegold.isReviewable : truegold.isDecidable;
    for (const row of shown) if (isMeant(row) && !row.decision && !rows.has(row.id)) rows.set(row.id, row);
    return [...rows.values()];
  }

  async function suggestions(rows) {
    const pairs = await Promise.all(rows.map(async (row) => [row, truegold.suggested(row, await truegold.detailOf(row))]));
    return pairs.filter(([, suggestion]) => suggestion);
  }

  function tally(pairs) {
    const counts = Object.entries(DONE).map(([kind, done]) => [pairs.filter(([, made]) => made.decision === kind).length, done]);
    return counts.filter(([number]) => number).map(([number, done]) => `${count(number)} ${done}`).join(", ");
  }

  /** Store the decisions one after another, and show how many are done. */
  async function decideAll(pairs, note) {
    const said = element("p", { role: "status" });
    dialog.replaceChildren(said);
    await truegold.decideTogether(pairs.map(([row, made]) => [row, { ...made, note }]), (done) => (said.textContent = `${count(done)} of ${count(pairs.length)}`));
    dialog.close();
  }

  truegold.openBulk = async function () {
    const rows = openRows();
    const shown = truegold.describeFilters() || "all rows";
    const note = `one of ${rows.length} decided together (${shown})`;
    const close = element("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const title = element("h2", { id: "bulk-title" }, `${count(rows.length)} open rows`);
    const suggested = await suggestions(rows);
    const choice = (label, pairs) => element("button", { type: "button", disabled: !pairs.length, onclick: () => decideAll(pairs, note) }, label);
    const same = (kind) => choice(`${kind} ${count(rows.length)}`, rows.map((row) => [row, { decision: kind.toLowerCase() }]));
    dialog.replaceChildren(
      title,
      element("p", {}, `Of the rows shown (${shown}); earlier decisions are kept. Undo takes back all the new ones at once.`),
      element("div", { class: "keys" }, choice(`Accept the suggestions: ${tally(suggested) || "nothing"}`, suggested), same("Keep"), same("Drop"), same("Unsure"), close),
    );
    dialog.showModal();
    close.focus();
  };

  truegold.buildBulk = function () {
    document.body.append(dialog);
    document.getElementById("matching").after(element("button", { type: "button", id: "decide-all", onclick: truegold.openBulk }, "Decide all … ", element("kbd", {}, "B")));
  };
})();
