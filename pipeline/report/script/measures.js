// Shows how often flags were right, and how often two reviewers agree. The server of `truegold review` counts both.
// Without it, the page counts its own decisions, and shows no agreement.
(function measures() {
  const { element, words, percent } = truegold;
  const MOST = 12;

  /** The 95 % Wilson interval of a share. */
  function interval(right, all) {
    const z = 1.96;
    const share = right / all;
    const middle = (share + (z * z) / (2 * all)) / (1 + (z * z) / all);
    const half = ((z / (1 + (z * z) / all)) * Math.sqrt((share * (1 - share)) / all + (z * z) / (4 * all * all)));
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  }

  /** Count, for each flag, the decided rows that have it, and those of them that were faulty (dropped or fixed). */
  function countHere() {
    const tally = new Map();
    for (const row of truegold.rows) {
      if (!["keep", "drop", "fix"].includes(row.decision)) continue;
      for (const reason of row.flags) {
        if (!tally.has(reason)) tally.set(reason, { reason, right: 0, decided: 0 });
        const count = tally.get(reason);
        count.decided += 1;
        if (row.decision !== "keep") count.right += 1;
      }
    }
    return [...tally.values()].map((count) => {
      const [low, high] = interval(count.right, count.decided);
      return { ...count, low, high };
    });
  }

  function agreementLine(agreement) {
    if (!agreement) return null;
    const names = (agreement.reviewers ?? []).join(" and ");
    const kappa = agreement.kappa === null ? "–" : agreement.kappa.toFixed(2);
    return element("p", {}, `${names}: the same decision on ${agreement.agreed} of ${agreement.pairs} rows, Cohen's κ ${kappa}`);
  }

  truegold.drawMeasures = function (answer) {
    const precision = (answer?.precision ?? countHere()).filter((entry) => entry.decided).sort((a, b) => b.decided - a.decided);
    const rows = precision.slice(0, MOST).map((entry) => {
      const random = entry.random_decided ? ` (in random samples ${entry.random_right} of ${entry.random_decided})` : "";
      const tier = entry.suggested_tier ? `, should ${entry.suggested_tier === "blocks" ? "hold back" : "advise"}` : "";
      return element("tr", {}, element("td", {}, words(entry.reason)), element("td", {}, `${entry.right} of ${entry.decided}${random}`), element("td", {}, `${percent(entry.low)} to ${percent(entry.high)}${tier}`));
    });
    const table = rows.length
      ? element("table", {}, element("thead", {}, element("tr", {}, ["Flag", "Right", "95 % interval"].map((title) => element("th", { scope: "col" }, title)))), element("tbody", {}, rows))
      : element("p", { class: "dim" }, "This table fills as rows are decided. Decisions about a random sample are an estimate for all rows.");
    document.getElementById("measures").replaceChildren(...[element("h3", {}, "By these decisions"), table, agreementLine(answer?.agreement)].filter(Boolean));
  };
})();
