// Functions that all scripts of the page use. They write texts of the data to text nodes and attributes, never as
// markup. The content security policy allows only these scripts to run.
"use strict";

const truegold = { settings: JSON.parse(document.getElementById("settings").textContent) };

/** Create an element. Attributes named "on…" become event listeners. Values null, undefined and false are left out. */
truegold.element = function (tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
};

/** Return a value that `pack` of page_rows.py has packed: JSON, compressed with deflate, in base64. */
truegold.unpack = async function (packed) {
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(packed);
  } else {
    const text = atob(packed);
    bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

truegold.percent = (share, digits = 0) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`);
truegold.words = (code) => (code ?? "").replaceAll("_", " ");
/** The meaning of a reason, with an example and a remedy, from the documentation. */
truegold.explain = function (reason) {
  const { means, example, remedy } = truegold.settings.reasons[reason] ?? {};
  return [means, example && `Such as: ${example}`, remedy].filter(Boolean).map((text) => text.replace(/\.$/, "")).join(". ");
};

/** An example of a reason, or its meaning if it has no example. */
truegold.exampleOf = function (reason) {
  const { means, example } = truegold.settings.reasons[reason] ?? {};
  return example ? `Such as: ${example}` : (means ?? "");
};

/** A reason in words, with its meaning as a tooltip. */
truegold.reasonTag = (reason, attributes) =>
  truegold.element("span", { title: truegold.explain(reason) || null, ...attributes }, truegold.words(reason));

truegold.count = (value) => value.toLocaleString("en-US");

/** A line that names the file with the whole text, for a text that the page shortens. */
truegold.whereWhole = function (chars, file, column, id) {
  const { run_dir: run } = truegold.settings;
  const named = id ? ` of the row ${id}` : "";
  return truegold.element("p", { class: "verdict", role: "status" }, `All ${truegold.count(chars)} characters are in ${run}/${file}, column ${column}${named}.`);
};

/** The button after a shortened text. It calls `show` to draw the whole text. Without `show`, it names the file. */
truegold.wholeButton = function (chars, file, column, id, show) {
  if (!chars) return null;
  const button = truegold.element("button", { type: "button", class: "whole" }, `Show all ${truegold.count(chars)} characters`);
  button.addEventListener("click", async () => {
    if (!show) {
      button.replaceWith(truegold.whereWhole(chars, file, column, id));
      return;
    }
    button.disabled = true;
    try {
      await show();
    } catch (error) {
      button.replaceWith(truegold.element("p", { class: "verdict trouble", role: "alert" }, error.message));
    }
  });
  return button;
};
