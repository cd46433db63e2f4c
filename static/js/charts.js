// Values of the points on hover, tap and by keyboard, zoom of the batch axis, the picture as a file.
// Without JavaScript the pictures remain, with each point's text as its title, and the table below them.
"use strict";

const NEAR = 60; // units of the picture between the pointer and the point whose value it shows
const CLOSEST = 1 / 16; // the smallest share of the axis that is shown
const SAMPLES = 400; // of a line between two points, where a text may cover it
const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order", "font-family", "font-size", "font-weight"];

function readPicture(svg) {
  const moved = [...svg.querySelectorAll("[data-at]")].map((mark) => {
    const at = Number(mark.dataset.at);
    return { mark, at, x: at, before: mark.getAttribute("transform") ?? "" };
  });
  const points = moved.filter(({ mark }) => mark.matches(".dot, .cross")).sort((a, b) => a.at - b.at);
  for (const point of points) {
    const title = point.mark.querySelector("title");
    Object.assign(point, { text: title.textContent, y: point.mark.transform.baseVal[0].matrix.f });
    title.remove(); // the browser would show it beside ours
  }
  const lines = [...svg.querySelectorAll(".trace polyline")].map((line) => {
    return { line, places: line.getAttribute("points").split(" ").map((place) => place.split(",").map(Number)) };
  });
  return { svg, moved, points, lines, left: Number(svg.dataset.left), right: Number(svg.dataset.right) };
}

// Shows the axis from one share of it to another: what is drawn moves, and texts that would then cover something go.
function stretch({ svg, left, right, moved, lines }, from, to) {
  const place = (x) => left + (((x - left) / (right - left) - from) / (to - from)) * (right - left);
  const taken = [...svg.querySelectorAll(".label-limit")].map((text) => text.getBBox());
  for (const { line, places } of lines) {
    const drawn = places.map(([x, y]) => [place(x), y]);
    line.setAttribute("points", drawn.join(" "));
    drawn.slice(1).forEach(([x1, y1], index) => {
      const [x0, y0] = drawn[index];
      const part = (step) => ({ x: x0 + ((x1 - x0) * step) / SAMPLES, y: y0 + ((y1 - y0) * step) / SAMPLES, width: 1, height: 1 });
      taken.push(...Array.from({ length: SAMPLES }, (_, step) => part(step)));
    });
  }
  for (const one of moved) {
    one.x = place(one.at);
    one.mark.setAttribute("transform", `translate(${one.x - one.at} 0) ${one.before}`);
    one.mark.toggleAttribute("hidden", one.x < left || one.x > right);
    const text = one.mark.matches("text") ? one.mark : one.mark.querySelector("text");
    if (!text || one.mark.hasAttribute("hidden")) continue;
    const box = text.getBBox();
    box.x += one.x - one.at;
    const isCut = box.x < 0 || box.x + box.width > svg.viewBox.baseVal.width;
    const goes = to - from === 1 ? one.mark.matches(".fine") : isCut || taken.some((other) => meets(box, other));
    one.mark.toggleAttribute("hidden", goes);
    if (!goes) taken.push(box);
  }
}

function meets(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

// The picture with its colours written into it: a file has no stylesheet beside it.
function standalone(svg) {
  const { width, height } = svg.viewBox.baseVal;
  const copy = svg.cloneNode(true);
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of PAINT) copies[index].setAttribute(name, style.getPropertyValue(name));
  });
  copy.querySelectorAll("[hidden]").forEach((element) => element.remove());
  const paper = copies[0].parentNode.insertBefore(document.createElementNS(copy.namespaceURI, "rect"), copies[0]);
  for (const element of [copy, paper]) Object.entries({ width, height }).forEach(([name, size]) => element.setAttribute(name, size));
  paper.setAttribute("fill", getComputedStyle(svg.closest(".card")).backgroundColor);
  return new XMLSerializer().serializeToString(copy);
}

async function save(kind, svg, name) {
  const text = standalone(svg);
  let file = new Blob([text], { type: "image/svg+xml" });
  if (kind === "png") {
    const image = Object.assign(new Image(), { src: `data:image/svg+xml,${encodeURIComponent(text)}` });
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    file = await new Promise((done) => canvas.toBlob(done));
  }
  Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${kind}` }).click();
}

function enliven(figure) {
  const frame = figure.querySelector(".picture");
  const pictures = [...frame.querySelectorAll("svg")].map(readPicture);
  const picture = () => pictures.find(({ svg }) => svg.checkVisibility()); // the wide one, or the narrow one of phones
  const points = () => picture().points.filter(({ mark }) => !mark.hasAttribute("hidden"));
  const value = frame.appendChild(document.createElement("output")); // a live region: what it shows is read out
  let [shown, from, to, middle] = [null, 0, 1, 0.5];

  function show(point) {
    shown?.mark.classList.remove("is-shown");
    shown = point;
    value.textContent = point?.text ?? "";
    if (!point) return;
    point.mark.classList.add("is-shown");
    middle = (point.at - picture().left) / (picture().right - picture().left); // what a zoom keeps in sight
    const scale = frame.clientWidth / picture().svg.viewBox.baseVal.width;
    const [x, y] = [point.x * scale - value.offsetWidth / 2, point.y * scale - value.offsetHeight - 12];
    value.style.left = `${Math.max(0, Math.min(x, frame.clientWidth - value.offsetWidth))}px`;
    value.style.top = `${y < 0 ? point.y * scale + 14 : y}px`;
  }
  function showNearest({ clientX, clientY }) {
    const { left, top, width } = picture().svg.getBoundingClientRect();
    const scale = picture().svg.viewBox.baseVal.width / width;
    const far = ({ x, y }) => Math.hypot((clientX - left) * scale - x, (clientY - top) * scale - y);
    const [nearest] = points().filter((point) => far(point) < NEAR).sort((a, b) => far(a) - far(b));
    show(nearest);
  }
  function zoom(factor) {
    const [previous, span] = [shown, Math.min(1, Math.max(CLOSEST, (to - from) * factor))];
    from = Math.max(0, Math.min(middle - span / 2, 1 - span));
    to = from + span;
    for (const one of pictures) stretch(one, from, to);
    show(previous?.mark.hasAttribute("hidden") ? null : previous);
  }
  const goTo = (index) => show(points()[Math.max(0, Math.min(points().length - 1, index))]);
  const now = () => points().indexOf(shown);
  const keys = { ArrowLeft: () => goTo(now() - 1), ArrowRight: () => goTo(now() + 1), Home: () => goTo(0), End: () => goTo(Infinity) };
  const zooms = { "Zoom in": () => zoom(0.5), "Zoom out": () => zoom(2), "Whole axis": () => zoom(Infinity) };
  const hasZoom = "zoom" in pictures[0].svg.dataset;
  Object.assign(keys, hasZoom && { "+": zooms["Zoom in"], "-": zooms["Zoom out"], 0: zooms["Whole axis"] }, { Escape: () => show(null) });
  frame.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  frame.onpointerdown = frame.onpointermove = showNearest;
  frame.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && show(null)); // a finger lifts, too
  const label = `${figure.querySelector("figcaption").textContent.trim()}: the arrow keys go from point to point`;
  const focus = { onfocus: () => shown ?? goTo(0), onblur: () => show(null) };
  Object.assign(frame, { tabIndex: 0, role: "application", ariaLabel: label, ...focus });

  const tools = figure.querySelector(".chart-tools");
  const name = `memorymark${location.pathname.replaceAll("/", "-")}${figure.dataset.chart}`;
  const kinds = tools.querySelector("a") ? ["png"] : ["png", "svg"]; // the server's own file is an SVG in ink on white
  const files = kinds.map((kind) => [kind.toUpperCase(), () => save(kind, picture().svg, name), `Download as ${kind.toUpperCase()}`]);
  for (const [textContent, onclick, ariaLabel = textContent] of [...(hasZoom ? Object.entries(zooms) : []), ...files]) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "link-button" });
    tools.append(Object.assign(button, { textContent, onclick, ariaLabel }));
  }
}

document.querySelectorAll("[data-chart]").forEach(enliven);
