// The form shows only the input size that the chosen model takes. Without this script both are shown.
"use strict";

const model = document.getElementById("id_model");

function showInputsOfModel() {
  for (const input of document.querySelectorAll("[data-models]")) {
    const isTaken = input.dataset.models.split(" ").includes(model.value);
    input.disabled = !isTaken; // a disabled input is not sent
    input.closest(".field").hidden = !isTaken;
  }
}

if (model) {
  model.addEventListener("change", showInputsOfModel);
  showInputsOfModel();
}
