// A button below everything that is made to be copied, and links that copy what they lead to. Without the right to use
// the clipboard the text is selected.
"use strict";

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

function addCopyButton(element) {
  const button = document.createElement("button"); // made here: without a script it could do nothing
  button.type = "button";
  button.className = "button";
  button.textContent = "Copy";
  button.ariaLabel = `Copy ${element.dataset.copy}`;
  const said = document.createElement("output"); // a live region: what it shows is read out
  const row = document.createElement("div");
  row.className = "row copy no-print";
  row.append(button, said);
  element.after(row);
  button.addEventListener("click", () => copy(element, said));
}

async function copy(element, said) {
  try {
    await navigator.clipboard.writeText(element.innerText.trim()); // no clipboard without https, except on this host
    said.textContent = "Copied";
  } catch {
    select(element);
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

for (const link of document.querySelectorAll("[data-copies]")) copyByLink(link);
for (const element of document.querySelectorAll("[data-copy]")) addCopyButton(element);
