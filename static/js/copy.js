// A button in the corner of everything that is made to be copied, links that copy what they lead to, and menus that
// close when something else is clicked. Without the right to use the clipboard the text is selected.
"use strict";

const SHEETS = "M6 5.5h7.5v8H6zM10.5 5.5v-3h-8v8H6";

function icon() {
  const [svg, path] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", SHEETS);
  svg.append(path);
  return svg;
}

function addCopyButton(element) {
  const [box, said] = [document.createElement("div"), document.createElement("output")]; // a live region: it is read out
  const words = { ariaLabel: `Copy ${element.dataset.copy}`, title: `Copy ${element.dataset.copy}` };
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-button no-print", ...words });
  button.append(icon());
  button.onclick = () => copy(element, said);
  box.className = "copied-box";
  element.replaceWith(box);
  box.append(element, button, said); // made here: without a script it could do nothing
}

async function copy(element, said) {
  try {
    await navigator.clipboard.writeText(element.innerText.trim()); // no clipboard without https, except on this host
    said.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(element);
    said.textContent = "Selected: copy it with Ctrl+C";
  }
}

// without a script such a link leads to the text; selected text has to be seen, so without a clipboard it still does
function copyByLink(link) {
  const said = document.createElement("output");
  link.after(said);
  link.addEventListener("click", (event) => {
    if (navigator.clipboard) event.preventDefault();
    copy(document.getElementById(link.dataset.copies), said);
  });
}

function closeMenus(event) {
  for (const menu of document.querySelectorAll(".floats[open]")) if (event.key === "Escape" || (event.type === "click" && !menu.contains(event.target))) menu.open = false;
}

for (const link of document.querySelectorAll("[data-copies]")) copyByLink(link);
for (const element of document.querySelectorAll("[data-copy]")) addCopyButton(element);
for (const kind of ["click", "keydown"]) document.addEventListener(kind, closeMenus);
