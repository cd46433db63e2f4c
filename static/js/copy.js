// A button below everything that is made to be copied, and links that copy what they lead to. Without the right to use
// the clipboard the text is selected.
"use strict";

function addCopyButton(element) {
  const said = document.createElement("output"); // a live region: what it shows is read out
  const words = { textContent: "Copy", ariaLabel: `Copy ${element.dataset.copy}` };
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button", ...words });
  button.onclick = () => copy(element, said);
  const row = Object.assign(document.createElement("div"), { className: "row copy no-print" });
  row.append(button, said);
  element.after(row); // made here: without a script it could do nothing
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

for (const link of document.querySelectorAll("[data-copies]")) copyByLink(link);
for (const element of document.querySelectorAll("[data-copy]")) addCopyButton(element);
