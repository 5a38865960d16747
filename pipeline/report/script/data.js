// Unpacks the rows of the run: the columns of the table when the page opens, and the details of a row when it is shown.
(function data() {
  const CODED = ["source", "split", "domain", "verifier", "outcome", "stage", "reason", "tier", "fault_by"];
  const LISTED = ["flags", "verdicts"];
  const blocks = new Map();

  truegold.EVIDENCE = {
    samples: "by the answers of the samples",
    model: "by the asked model",
    rules: "by rules on its text",
    doubts: "by what its samples say about it",
    wording: "by its wording",
  };

  function rowsOf(index) {
    const { columns, names } = index;
    const rows = new Array(index.rows);
    for (let position = 0; position < index.rows; position += 1) {
      const row = { position };
      for (const name in columns) {
        const value = columns[name][position];
        if (CODED.includes(name)) row[name] = value === null ? "" : names[name][value];
        else if (LISTED.includes(name)) row[name] = value.map((code) => names[name][code]);
        else row[name] = value;
      }
      row.place = `${row.source}:${row.row}`;
      row.name ??= "";
      row.decision = "";
      row.turn = position;
      rows[position] = row;
    }
    return rows;
  }

  truegold.loadRows = async function () {
    const index = await truegold.unpack(document.getElementById("index").textContent);
    truegold.index = index;
    truegold.rows = rowsOf(index);
    truegold.rowsById = new Map();
    for (const row of truegold.rows) {
      if (!row.id) continue;
      if (!truegold.rowsById.has(row.id)) truegold.rowsById.set(row.id, []);
      truegold.rowsById.get(row.id).push(row);
    }
  };

  truegold.detailOf = async function (row) {
    const number = Math.floor(row.position / truegold.index.block_rows);
    if (!blocks.has(number)) {
      const packed = document.getElementById(`block-${number}`).textContent;
      blocks.set(number, truegold.unpack(packed));
    }
    return (await blocks.get(number))[row.position % truegold.index.block_rows];
  };

  /** The decision that a row's flags suggest: fix the gold or tests if a flag has a suggestion, else drop the row if a
   * flag holds it back, else keep it. Null if nothing is suggested. */
  truegold.suggested = function (row, detail) {
    const flags = detail.flags ?? [];
    if (!truegold.isReviewable(row) || !(flags.length || row.suggestion)) return null;
    const cases = row.gold === null && flags.find((flag) => flag.cases)?.cases;
    if (cases) return { decision: "fix", gold: cases };
    if (!detail.tests) {
      const says = flags.find((flag) => flag.suggestion && flag.blocks) ?? (row.suggestion && !detail.cut?.suggestion ? row : flags.find((flag) => flag.suggestion));
      if (says && says.suggestion !== row.gold) return { decision: "fix", gold: says.suggestion };
    }
    if (flags.some((flag) => flag.blocks)) return flags.some((flag) => flag.reason === "conflicting_labels") ? null : { decision: "drop" };
    return { decision: "keep" };
  };

  /** Whether a reviewer may decide about a row. A rejected record has no id. If a copy of the row is decided about
   * instead, `seen` is null. */
  truegold.isDecidable = (row) => Boolean(row.id) && (row.seen === undefined || row.seen !== null);

  /** Whether a stage before review dropped the row. It is not in the queue, but keep or fix restores it. */
  truegold.isDropped = (row) => row.outcome === "dropped" && truegold.index.dropping_stages.includes(row.stage);

  /** Whether the row waits for review or passed it. */
  truegold.isReviewable = (row) => truegold.isDecidable(row) && !truegold.isDropped(row);
})();
