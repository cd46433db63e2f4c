// Values of the points on hover, tap and by keyboard, and the picture as a file.
// Without JavaScript the pictures remain, with each point's text as its title, and the table below them.
"use strict";

const NEAR = 60; // units of the picture between the pointer and the point whose value it shows
const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order", "font-family", "font-size", "font-weight"];

function readPoints(svg) {
  const points = [...svg.querySelectorAll(".dot, .cross")].map((mark) => {
    const [{ e: x, f: y }, title] = [mark.transform.baseVal[0].matrix, mark.querySelector("title")];
    title.remove(); // the browser would show it beside ours
    return { mark, x, y, text: title.textContent };
  });
  return points.sort((a, b) => a.x - b.x);
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
  const [frame, svg] = [figure.querySelector(".picture"), figure.querySelector(".picture svg")];
  const points = readPoints(svg);
  const value = frame.appendChild(document.createElement("output")); // a live region: what it shows is read out
  const scale = () => svg.clientWidth / svg.viewBox.baseVal.width;
  let shown;

  function show(point) {
    shown?.mark.classList.remove("is-shown");
    shown = point;
    value.textContent = point?.text ?? "";
    if (!point) return;
    point.mark.classList.add("is-shown");
    const [x, y] = [point.x * scale() - value.offsetWidth / 2, point.y * scale() - value.offsetHeight - 12];
    value.style.left = `${Math.max(0, Math.min(x, frame.clientWidth - value.offsetWidth))}px`;
    value.style.top = `${y < 0 ? point.y * scale() + 14 : y}px`;
  }
  function showNearest({ clientX, clientY }) {
    const { left, top } = svg.getBoundingClientRect();
    const far = ({ x, y }) => Math.hypot((clientX - left) / scale() - x, (clientY - top) / scale() - y);
    const [nearest] = points.filter((point) => far(point) < NEAR).sort((a, b) => far(a) - far(b));
    show(nearest);
  }
  const goTo = (index) => show(points[Math.max(0, Math.min(points.length - 1, index))]);
  const now = () => points.indexOf(shown);
  const keys = { ArrowLeft: () => goTo(now() - 1), ArrowRight: () => goTo(now() + 1), Home: () => goTo(0), End: () => goTo(Infinity), Escape: () => show() };
  frame.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  frame.onpointerdown = frame.onpointermove = showNearest;
  frame.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && show()); // a finger lifts, too
  const label = `${figure.querySelector("figcaption").textContent.trim()}: the arrow keys go from point to point`;
  const focus = { onfocus: () => shown ?? goTo(0), onblur: () => show() };
  Object.assign(frame, { tabIndex: 0, role: "application", ariaLabel: label, ...focus });

  const tools = figure.querySelector(".chart-tools");
  const name = `memorymark${location.pathname.replaceAll("/", "-")}${figure.dataset.chart}`;
  const kinds = tools.querySelector("a") ? ["png"] : ["png", "svg"]; // the server's own file is an SVG in ink on white
  const files = kinds.map((kind) => [kind.toUpperCase(), () => save(kind, svg, name), `Download as ${kind.toUpperCase()}`]);
  for (const [textContent, onclick, ariaLabel] of files) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "link-button" });
    tools.append(Object.assign(button, { textContent, onclick, ariaLabel }));
  }
}

document.querySelectorAll("[data-chart]").forEach(enliven);
