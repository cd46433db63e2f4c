// Opt-in notifications of this browser: when a run ends whose live page is open in a hidden tab.
// Permission is requested by a click alone; the choice is stored in this browser and nowhere else.
"use strict";

const CHOICE = "memorymark-notify";
const WATCHED = "memorymark-watched";

function isOn() {
  return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(CHOICE) === "on";
}

// the live page reloads as the page of its result: the same address, without a poller
function noticeEnd() {
  if (document.getElementById("live-poll")) {
    sessionStorage.setItem(WATCHED, location.pathname);
    return;
  }
  const hasEnded = sessionStorage.getItem(WATCHED) === location.pathname;
  sessionStorage.removeItem(WATCHED);
  if (!hasEnded || !document.hidden || !isOn()) return;
  const shown = new Notification(document.title, { tag: location.pathname });
  shown.onclick = () => { window.focus(); shown.close(); };
}

function addSwitch(place) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button" });
  const said = document.createElement("output"); // a live region: what it shows is read out
  const show = () => { button.textContent = isOn() ? "Do not notify this browser" : "Notify this browser when a run ends"; };
  button.addEventListener("click", async () => {
    if (isOn()) {
      localStorage.removeItem(CHOICE);
      said.textContent = "Off.";
    } else if ((await Notification.requestPermission()) === "granted") {
      localStorage.setItem(CHOICE, "on");
      said.textContent = "On, while the tab of a live run stays open.";
    } else {
      said.textContent = "This browser does not allow it: change that in its settings for this site.";
    }
    show();
  });
  show();
  place.append(button, said); // made here: without a script it could do nothing
}

for (const place of document.querySelectorAll("[data-notify]")) {
  if ("Notification" in window) addSwitch(place);
  else place.append("This browser cannot show notifications here: it requires https.");
}
noticeEnd();
