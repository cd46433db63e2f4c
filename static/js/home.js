// The form: only the input size that the chosen model takes, and a search box above each long list.
// Without this script both sizes are shown, and the lists are as long as they are.
"use strict";

function showInputsOf(model) {
  for (const input of document.querySelectorAll("[data-models]")) {
    const defaults = new Map(input.dataset.models.split(" ").map((pair) => pair.split(":")));
    const isTaken = defaults.has(model.value);
    input.placeholder = defaults.get(model.value) ?? "";
    input.disabled = !isTaken; // a disabled input is not sent
    input.closest(".field").hidden = !isTaken;
  }
}

// made here, because without a script it could do nothing
function addSearch(select) {
  const words = { placeholder: select.dataset.search, ariaLabel: select.dataset.search };
  const box = Object.assign(document.createElement("input"), { type: "search", className: "search", autocomplete: "off", ...words });
  box.setAttribute("aria-controls", select.id);
  const status = Object.assign(document.createElement("p"), { className: "search-status", role: "status" });
  const all = [...select.options].map((option) => ({ option, group: option.closest("optgroup") }));

  // a browser may not hide single options, so those that do not match leave the list
  function show() {
    const terms = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ option }) => terms.every((word) => `${option.value} ${option.text}`.toLowerCase().includes(word));
    const found = all.filter(matches);
    const chosen = select.value;
    select.replaceChildren(...(found.length ? groupsOf(found) : groupsOf(all)));
    select.value = (found.find(({ option }) => option.value === chosen) ?? found[0])?.option.value ?? chosen;
    status.textContent = !terms.length ? "" : found.length ? `${found.length} of ${all.length}` : "No matches: all are shown";
    if (select.value !== chosen) select.dispatchEvent(new Event("change"));
  }

  box.addEventListener("input", show);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault(); // Enter here chooses; it does not send the form
    select.focus();
  });
  select.before(box);
  select.after(status);
}

// the options under their headings again, in the order they had
function groupsOf(entries) {
  const top = [];
  for (const group of new Set(entries.map((entry) => entry.group))) {
    const options = entries.filter((entry) => entry.group === group).map((entry) => entry.option);
    if (group) group.replaceChildren(...options);
    top.push(...(group ? [group] : options));
  }
  return top;
}

// The limit that the page suggests is for a short run on a CPU: an estimate begins without one.
function watchSuggestedLimit(suggested, limit) {
  const text = suggested.value;
  for (const kind of document.querySelectorAll('input[name="kind"]')) {
    kind.addEventListener("change", () => {
      if (kind.value === "estimate" && limit.value === suggested.value) limit.value = "";
      else if (kind.value !== "estimate" && limit.value === "" && suggested.value) limit.value = text;
    });
  }
  limit.addEventListener("input", () => { suggested.value = ""; }); // the person's own from here on
}

// The file is read here and sent as text: the server takes no files.
function addFile(area) {
  const label = Object.assign(document.createElement("label"), { className: "hint" });
  const file = Object.assign(document.createElement("input"), { type: "file", accept: ".json,application/json" });
  file.onchange = async () => {
    if (file.files[0]) area.value = await file.files[0].slice(0, area.maxLength + 1).text();
  };
  label.append(`${area.dataset.file}: `, file);
  area.after(label);
}

for (const area of document.querySelectorAll("textarea[data-file]")) addFile(area);
for (const select of document.querySelectorAll("select[data-search]")) addSearch(select);
const suggested = document.getElementById("id_suggested_limit");
if (suggested?.value) watchSuggestedLimit(suggested, document.getElementById("id_memory_limit_bytes"));
const model = document.getElementById("id_model");
if (model) {
  model.addEventListener("change", () => showInputsOf(model));
  showInputsOf(model);
}
