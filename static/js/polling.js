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
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
}

// a range that the server computed; after its end nothing more is known
function leftText(fromSeconds, untilSeconds) {
  if (untilSeconds <= 0) return "longer than expected";
  if (fromSeconds <= 0) return `up to ${elapsedText(untilSeconds)} left`;
  return `${elapsedText(fromSeconds)} to ${elapsedText(untilSeconds)} left`;
}

setInterval(() => {
  for (const element of document.querySelectorAll("[data-left-until]")) {
    const [from, until] = [element.dataset.leftFrom, element.dataset.leftUntil];
    element.textContent = leftText((Date.parse(from) - Date.now()) / 1000, (Date.parse(until) - Date.now()) / 1000);
  }
  for (const element of document.querySelectorAll("[data-elapsed-since]")) {
    const since = Date.parse(element.dataset.elapsedSince);
    element.textContent = elapsedText((Date.now() - since) / 1000);
  }
}, 1000);
