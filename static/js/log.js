// The engine's log: its end stays in sight until the reader scrolls away, and a button leads back to it.
"use strict";

const NEAR_PIXELS = 24;

function followLog(terminal) {
  const look = { type: "button", className: "button follow no-print", textContent: "Follow the log", hidden: true };
  const button = Object.assign(document.createElement("button"), look);
  terminal.after(button); // made here: without a script it could do nothing
  terminal.classList.add("is-followed");
  let follows = true;

  const toEnd = () => { terminal.scrollTop = terminal.scrollHeight; };
  terminal.addEventListener("scroll", () => {
    follows = terminal.scrollHeight - terminal.scrollTop - terminal.clientHeight < NEAR_PIXELS;
    button.hidden = follows;
  });
  button.addEventListener("click", () => {
    toEnd();
    terminal.focus();
  });
  const keepUp = () => { if (follows) toEnd(); };
  new MutationObserver(keepUp).observe(terminal, { childList: true, subtree: true });
  new ResizeObserver(keepUp).observe(terminal); // a log on a part of the page that is not shown has no size yet
  toEnd();
}

for (const terminal of document.querySelectorAll("[data-follow]")) followLog(terminal);
