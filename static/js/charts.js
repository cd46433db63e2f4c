// Draws the interactive charts over the server's SVG. On phones, and where plotly is missing or fails, the SVG stays.
"use strict";

const PLOTLY_ADDRESS = document.currentScript.dataset.plotly;
// only these buttons: the others crowd the picture, and none may send anything to another host
const CONFIG = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]] };

function drawChart(chart, figure) {
  const plot = chart.querySelector(".plot");
  plot.hidden = false;
  chart.classList.add("is-drawn");
  Plotly.newPlot(plot, figure.data, figure.layout, CONFIG).catch(() => {
    plot.hidden = true;
    chart.classList.remove("is-drawn");
  });
}

function drawCharts() {
  const figures = JSON.parse(document.getElementById("chart-data").textContent);
  for (const chart of document.querySelectorAll("[data-chart]")) drawChart(chart, figures[chart.dataset.chart]);
}

// plotly is large: a phone, where its pointer tools are of no use, does not load it
if (window.matchMedia("(min-width: 701px)").matches) {
  const script = document.createElement("script");
  script.src = PLOTLY_ADDRESS;
  script.addEventListener("load", drawCharts);
  document.head.append(script);
}
