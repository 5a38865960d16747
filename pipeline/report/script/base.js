// What all parts of the page share. Texts of the data are only ever written to text nodes and attributes: nothing here
// reads markup, and the content security policy lets no other script run.
"use strict";

const truegold = { settings: JSON.parse(document.getElementById("settings").textContent) };

/** Make an element. Attributes whose names begin with "on" are listeners; null, undefined and false are left out. */
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

/** Read a value that Python has packed: JSON, deflated, in base64. */
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
/** What a reason means, with an example, as the documentation has it. */
truegold.explain = function (reason) {
  const { means, example, remedy } = truegold.settings.reasons[reason] ?? {};
  return [means, example && `Such as: ${example}`, remedy].filter(Boolean).map((text) => text.replace(/\.$/, "")).join(". ");
};

/** An example of a reason, or what it means where there is none. */
truegold.exampleOf = function (reason) {
  const { means, example } = truegold.settings.reasons[reason] ?? {};
  return example ? `Such as: ${example}` : (means ?? "");
};

/** A reason in words, which tells what it means where the pointer rests on it. */
truegold.reasonTag = (reason, attributes) =>
  truegold.element("span", { title: truegold.explain(reason) || null, ...attributes }, truegold.words(reason));

truegold.count = (value) => value.toLocaleString("en-US");

/** Where a text that the page cuts stands whole. */
truegold.whereWhole = function (chars, file, column, id) {
  const { run_dir: run } = truegold.settings;
  const named = id ? ` of the row ${id}` : "";
  return truegold.element("p", { class: "verdict", role: "status" }, `All ${truegold.count(chars)} characters stand in ${run}/${file}, column ${column}${named}.`);
};

/** The button behind a cut text: `show` draws it whole, where there is a server; else it says where the text stands. */
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
