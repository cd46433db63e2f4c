// On a phone the menu scrolls sideways: shows the current entry, without moving the page itself.
"use strict";

{
  const menu = document.querySelector(".menu");
  const here = menu?.querySelector("[aria-current]");
  if (here) {
    menu.scrollLeft = here.offsetLeft - menu.offsetLeft - (menu.clientWidth - here.offsetWidth) / 2;
  }
}
