// The views of the page, each with an address: "#overview", "#rows?outcome=dropped&sort=rate", "#pass-rates".
(function views() {
  const names = Array.from(document.querySelectorAll(".view"), (view) => view.id);
  const listeners = [];

  function parse() {
    const [name, query] = location.hash.slice(1).split("?", 2);
    return { name, query: new URLSearchParams(query ?? "") };
  }

  function show() {
    const { name, query } = parse();
    const target = name ? document.getElementById(name) : null;
    const view = target?.closest(".view") ?? document.getElementById(truegold.settings.review ? "rows" : names[0]);
    for (const id of names) document.getElementById(id).hidden = id !== view.id;
    for (const link of document.querySelectorAll(".tabs a")) {
      const isCurrent = link.hash === `#${view.id}`;
      link.toggleAttribute("data-current", isCurrent);
      if (isCurrent) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.body.dataset.view = view.id;
    // A table with its own scroll bar takes the focus, so that the keyboard can scroll it.
    for (const table of view.querySelectorAll("table")) {
      if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    }
    if (target && target !== view) target.scrollIntoView();
    else window.scrollTo(0, 0);
    for (const listener of listeners) listener(view.id, query);
  }

  /** Write the state of a view into the address, without a new entry in the browser's history. */
  truegold.remember = function (view, query) {
    const text = query.toString();
    history.replaceState(null, "", `#${view}${text ? `?${text}` : ""}`);
  };

  /** Call `listener(view, query)` each time that a view is shown. */
  truegold.onView = (listener) => listeners.push(listener);
  truegold.showView = show;
  window.addEventListener("hashchange", show);
})();
