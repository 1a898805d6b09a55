// Redraws the page's main part when the campaign's folder says something new. Reading works without it.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  const state = document.getElementById("live");
  if (!main || !window.EventSource) return;
  const events = new EventSource(main.dataset.live);
  let first = true, busy = false, again = false;
  const redraw = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      const held = main.contains(document.activeElement) && document.activeElement.tagName === "INPUT";
      if (fresh && !held) main.replaceChildren(...fresh.childNodes);
      if (state) state.textContent = "live";
    } catch { if (state) state.textContent = "connection lost"; }
    busy = false;
    if (again) { again = false; redraw(); }
  };
  events.addEventListener("change", () => { if (first) first = false; else redraw(); if (state) state.textContent = "live"; });
  events.onerror = () => { if (state) state.textContent = "connection lost; trying again"; };
})();
