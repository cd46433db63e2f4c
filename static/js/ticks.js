// Ticks of the history: a click with shift ticks the whole range, and the bar says how many are ticked.
"use strict";

function watchTicks(form) {
  const boxes = [...form.querySelectorAll('input[name="run"]')];
  const counter = form.querySelector("[data-ticked]");
  let last = null;

  function showCount() {
    const count = boxes.filter((box) => box.checked).length;
    counter.textContent = count ? ` (${count})` : "";
  }

  function tickRange(event) {
    const box = event.target;
    if (event.shiftKey && last !== null) {
      const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
      for (const each of boxes.slice(from, to + 1)) each.checked = box.checked;
    }
    last = box;
    showCount();
  }

  for (const box of boxes) box.addEventListener("click", tickRange);
  addAllBox(form.querySelector("thead .tick-cell"), boxes, showCount);
  showCount(); // a browser keeps ticks when it goes back
}

// made here, because without a script it could do nothing
function addAllBox(cell, boxes, showCount) {
  const label = Object.assign(document.createElement("label"), { className: "tick" });
  const all = Object.assign(document.createElement("input"), { type: "checkbox", ariaLabel: "All runs of this page" });
  all.onchange = () => {
    for (const box of boxes) box.checked = all.checked;
    showCount();
  };
  label.append(all);
  cell.append(label);
}

for (const form of document.querySelectorAll("[data-ticks]")) watchTicks(form);
