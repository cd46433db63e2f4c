// Live pages: hidden tabs poll rarely, for their title and icon, or not at all; and a clock between two answers.
"use strict";

const HIDDEN_MILLISECONDS = 15000;
let nextHiddenPollAt = 0;

document.addEventListener("htmx:beforeRequest", (event) => {
  if (!document.hidden) return;
  if (event.detail.elt.id !== "live-poll" || Date.now() < nextHiddenPollAt) event.preventDefault();
  else nextHiddenPollAt = Date.now() + HIDDEN_MILLISECONDS;
});

// visible again: request at once what was not polled while the tab was hidden
document.addEventListener("visibilitychange", () => {
  const poller = document.getElementById("live-poll");
  if (!document.hidden && poller) htmx.trigger(poller, "shown");
});

// logged out meanwhile: the answer is the login page, which belongs into the whole window
document.addEventListener("htmx:beforeSwap", (event) => {
  const requestedPath = event.detail.pathInfo.requestPath.split("?")[0];
  if (new URL(event.detail.xhr.responseURL).pathname === requestedPath) return;
  event.detail.shouldSwap = false;
  location.reload();
});

function elapsedText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

// one figure that the server computed, rounded as it rounds, the most of a race up; after its end nothing more is known
function leftText(seconds, isMost) {
  if (seconds <= 0) return "Longer than expected";
  const step = seconds < 60 ? 5 : seconds < 600 ? 60 : seconds < 3600 ? 300 : 900;
  const rounded = Math.max(5, (isMost ? Math.ceil : Math.round)(seconds / step) * step);
  const [hours, minutes, rest] = [Math.floor(rounded / 3600), Math.floor((rounded % 3600) / 60), rounded % 60];
  const parts = [[hours, "h"], [minutes, "min"], [rest, "s"]].filter(([count]) => count);
  const figures = parts.map(([count, unit]) => `${count} ${unit}`).join(" ");
  return isMost ? `At most ${figures} left (its time budget)` : `About ${figures} left`;
}

setInterval(() => {
  for (const element of document.querySelectorAll("[data-left-until]")) {
    const seconds = (Date.parse(element.dataset.leftUntil) - Date.now()) / 1000;
    element.textContent = leftText(seconds, "leftMost" in element.dataset);
  }
  for (const element of document.querySelectorAll("[data-elapsed-since]")) {
    const since = Date.parse(element.dataset.elapsedSince);
    element.textContent = elapsedText((Date.now() - since) / 1000);
  }
}, 1000);
