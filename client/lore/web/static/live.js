// What a page gains with a script; without it every link and form works all the same.
//
// - It draws itself anew when the memory says that something it shows has changed: the same
//   address is fetched and the parts marked data-live are exchanged entry by entry.
// - Sliders and lists of choices act at once. Keys move about.
"use strict";

(() => {
  const REDRAW_MS = 1500; // at most one redraw in this time, however busy the daemon is
  const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("lore", { createHTML: (text) => text })
    : { createHTML: (text) => text };
  const body = document.body;
  const say = document.getElementById("live");

  // -- drawing anew ------------------------------------------------------------------------

  const isBusy = (element) => {
    if (element.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) {
      return true;
    }
    return [...element.querySelectorAll("input, textarea")].some(
      (field) => field.type !== "hidden" && field.value !== field.defaultValue,
    );
  };

  const keepOpen = (old, fresh) => {
    const was = old.querySelectorAll("details");
    const now = fresh.querySelectorAll("details");
    if (was.length === now.length) {
      was.forEach((one, at) => { now[at].open = one.open; });
    }
  };

  // Exchange the children of a region: those with an id are kept where nothing in them differs.
  const exchange = (old, fresh) => {
    const known = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
    const had = known.size > 0;
    let added = 0;
    let lost = null;
    const wanted = [...fresh.childNodes].map((node) => {
      const before = node.id ? known.get(node.id) : undefined;
      if (before && (before.isEqualNode(node) || isBusy(before))) {
        return before;
      }
      const copy = document.importNode(node, true);
      if (before) {
        keepOpen(before, copy);
        if (before.contains(document.activeElement)) {
          lost = copy;
        }
      } else if (node.id && had) {
        copy.classList.add("fresh");
        added += 1;
      }
      return copy;
    });
    // What is kept must not leave the page even for a moment: it would lose the focus.
    const kept = new Set(wanted);
    for (const child of [...old.childNodes]) {
      if (!kept.has(child)) {
        child.remove();
      }
    }
    let at = old.firstChild;
    for (const node of wanted) {
      if (node === at) {
        at = at.nextSibling;
      } else {
        old.insertBefore(node, at);
      }
    }
    if (lost) {
      focusOn(lost);
    }
    return added;
  };

  const focusOn = (item) => {
    const target = item.matches("a, [tabindex]") ? item : item.querySelector("a, button") || item;
    target.focus({ preventScroll: true });
  };

  const redraw = async (address) => {
    const answer = await fetch(address, { headers: { "x-lore-live": "1" }, credentials: "same-origin" });
    if (answer.status === 403) {
      say.textContent = "This view has ended; run lore web again.";
      return;
    }
    const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
    let added = 0;
    for (const region of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(region.id);
      if (fresh && !region.isEqualNode(fresh)) {
        added += exchange(region, fresh);
      }
    }
    if (added) {
      say.textContent = added === 1 ? "One new entry." : `${added} new entries.`;
    }
  };

  let timer = 0;
  let last = 0;
  const redrawSoon = () => {
    if (!timer) {
      timer = window.setTimeout(async () => {
        timer = 0;
        last = Date.now();
        try {
          await redraw(location.href);
        } catch {
          say.textContent = "The view does not answer; was lore web ended?";
        }
      }, Math.max(150, last + REDRAW_MS - Date.now()));
    }
  };

  // The stream is open only while the page can be seen, so a forgotten tab lets the view end.
  // Its address tells when the page was drawn: it begins with what has changed since then.
  let stream = null;
  const listen = () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (!stream && body.dataset.events) {
      stream = new EventSource(body.dataset.events);
      stream.addEventListener("change", redrawSoon);
    }
  };
  document.addEventListener("visibilitychange", listen);
  window.addEventListener("pagehide", () => { stream?.close(); stream = null; });
  window.addEventListener("pageshow", listen);
  listen();

  // -- forms that act at once --------------------------------------------------------------

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-auto]")) {
      event.target.form.requestSubmit();
    }
  });

  for (const form of document.querySelectorAll("form[data-travel]")) {
    const first = new Date(`${form.dataset.first}T12:00:00Z`);
    const label = (slider) => {
      const day = new Date(first.getTime() + slider.valueAsNumber * 86400000);
      return slider.value === slider.max ? "now" : day.toISOString().slice(0, 10);
    };
    form.addEventListener("input", (event) => {
      const words = label(event.target);
      form.querySelector(`output[for="${event.target.id}"]`).textContent = words;
      event.target.setAttribute("aria-valuetext", words);
    });
    form.addEventListener("change", async () => {
      const address = new URL(form.action);
      address.search = new URLSearchParams(new FormData(form)).toString();
      history.replaceState(null, "", address);
      await redraw(address.href);
    });
  }

  // -- keys --------------------------------------------------------------------------------

  const move = (step) => {
    const items = [...document.querySelectorAll("[data-item]")];
    if (!items.length) {
      return;
    }
    const at = items.findIndex((item) => item.contains(document.activeElement));
    const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step;
    const item = items[Math.min(Math.max(next, 0), items.length - 1)];
    focusOn(item);
    item.scrollIntoView({ block: "nearest" });
  };

  const follow = (selector) => document.querySelector(selector)?.click();

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    n: () => follow(".pager a[rel=next]"),
    p: () => follow(".pager a[rel=prev]"),
    "/": () => {
      const field = document.getElementById("find");
      if (field) {
        field.focus();
        field.select();
      } else {
        follow('.top a[accesskey="q"]');
      }
    },
    "?": () => document.getElementById("keys").showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
    const typing = event.target.closest("input, textarea, select, dialog");
    const act = keys[event.key];
    if (plain && act && !typing) {
      event.preventDefault();
      act();
    }
  });
})();
