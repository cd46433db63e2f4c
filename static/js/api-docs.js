// Draws the API's description; what is tried out goes to this server alone, with the token that its forms have.
"use strict";

const place = document.getElementById("api-docs");
document.documentElement.classList.toggle("dark-mode", !matchMedia("(prefers-color-scheme: light)").matches);

window.SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: false,
  validatorUrl: null,
  requestInterceptor: (request) => {
    const isOurs = new URL(request.url, location.href).origin === location.origin;
    if (isOurs && !["GET", "HEAD"].includes(request.method ?? "GET")) {
      request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    }
    return request;
  },
});
