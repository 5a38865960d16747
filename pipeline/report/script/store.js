// Stores a reviewer's decisions on the server of `truegold review`, or else in this browser until they are saved as a
// file. Both stores have the same functions, which return promises.
(function stores() {
  const { settings } = truegold;

  /** Decisions on the server. It answers after it has appended the decision to the reviewer's file. */
  function serverStore(review) {
    async function call(path, body, keepalive = false) {
      // A call with `keepalive` is completed even if the page is closed.
      const options = { headers: { "X-Truegold-Token": review.token }, keepalive };
      if (body) {
        options.method = "POST";
        options.headers["Content-Type"] = "application/json";
        options.body = JSON.stringify(body);
      }
      let response;
      try {
        response = await fetch(`api/${path}`, options);
      } catch {
        throw new Error("The server does not answer: nothing was saved. Start truegold review again and reload.");
      }
      const answer = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
      if (!response.ok) throw new Error(answer.error ?? `The server answered ${response.status}.`);
      return answer;
    }
    return {
      isServer: true,
      all: () => call("decisions"),
      decide: async (decision, row) =>
        (await call("decisions", { drawn: truegold.drawnAs(), ...decision, source: row.source, source_row: row.row, seen: row.seen ?? undefined })).decision,
      note: (id, note) => call("decisions", { id, decision: "note", note }, true),
      undo: async (id) => (await call("undo", { id })).decision,
      /** The whole texts of a row. */
      whole: (row) => call(`rows/${encodeURIComponent(row.id)}?${new URLSearchParams({ source: row.source, source_row: row.row })}`),
      reading: (row, gold) => call("reading", { id: row.id, gold, source: row.source, source_row: row.row }),
    };
  }

  /** Decisions in this browser. Each row has a list of decisions: the last one is valid, the others are for undo. */
  function browserStore() {
    const key = `truegold decisions ${settings.run_key}`;
    let words = {};
    let isKept = true;

    function read() {
      try {
        words = JSON.parse(localStorage.getItem(key) ?? "{}");
      } catch {
        isKept = false;
      }
    }

    function write(change) {
      // First read the decisions that another tab may have written.
      if (isKept) read();
      change();
      try {
        localStorage.setItem(key, JSON.stringify(words));
      } catch {
        isKept = false;
      }
    }

    read();
    const last = (id) => words[id]?.at(-1) ?? null;
    const standing = () => Object.keys(words).map(last).filter(Boolean);
    return {
      isServer: false,
      isKept: () => isKept,
      all: async () => {
        if (isKept) read();
        return { reviewer: null, decisions: standing(), others: [], agreement: null, precision: null };
      },
      decide: async (decision, row) => {
        const made = { drawn: truegold.drawnAs(), ...decision, at: new Date().toISOString() };
        if (row.seen) made.seen = row.seen;
        write(() => (words[decision.id] = [...(words[decision.id] ?? []), made]));
        return made;
      },
      undo: async (id) => {
        write(() => {
          words[id]?.pop();
          if (!words[id]?.length) delete words[id];
        });
        return last(id);
      },
      /** The content of a file of decisions as `truegold curate` reads it, with a decision on each line. */
      lines: (reviewer, notes) =>
        [...standing(), ...Object.entries(notes).map(([id, note]) => ({ id, decision: "note", note, at: new Date().toISOString() }))]
          .map(({ id, seen, decision, gold, note, drawn, at }) => `${JSON.stringify({ id, seen, decision, gold, note, drawn, reviewer, at })}\n`)
          .join(""),
    };
  }

  truegold.store = settings.review ? serverStore(settings.review) : browserStore();
})();
