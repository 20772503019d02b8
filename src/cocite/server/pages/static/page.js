/* Optional enhancements of pages: names are completed while typing, pages are replaced in place, and
   the list and the map highlight each other's pages. Texts are inserted only as text, and HTML
   comes only from pages of this server. */
"use strict";
(() => {
  const main = document.getElementById("main");
  const field = document.getElementById("node");
  const said = document.getElementById("said");

  /* -- theme: chosen, or the system's ------------------------- */

  const theme = document.getElementById("theme"), root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  function dyed(value) {
    if (value) root.dataset.theme = value;
    theme.setAttribute("aria-pressed", String(dark()));
  }
  const stored = (name, value) => {
    try {
      return value ? localStorage.setItem(name, value) : localStorage.getItem(name);
    } catch {
      return null; // storage is disabled
    }
  };
  dyed(stored("theme"));
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const value = dark() ? "light" : "dark";
    stored("theme", value);
    dyed(value);
  });

  /* -- pages in place -------------------------------------------------------------------- */

  const LATE = 2000; // milliseconds until an answer can be canceled
  const LATER = 300; // until the front page is polled again for starts
  let asked = null;
  let shown = location.pathname + location.search;

  const ours = (url) => url.origin === location.origin && url.pathname === "/";

  async function show(url, { push = true, from = null } = {}) {
    asked?.abort();
    const mine = (asked = new AbortController());
    main.setAttribute("aria-busy", "true");
    const late = setTimeout(() => fault("Still loading. ", () => mine.abort(), "Cancel"), LATE);
    let found;
    try {
      const answer = await fetch(url, { signal: mine.signal, headers: { Accept: "text/html" } });
      if (!(answer.headers.get("Content-Type") ?? "").startsWith("text/html")) {
        location.assign(url); // the browser shows the response
        return;
      }
      found = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok && from && from !== "back") { // only the setting is invalid
        main.removeAttribute("aria-busy");
        return fault(found.querySelector("main p").textContent);
      }
      const there = new URL(answer.url);
      there.hash = url.hash;
      if (push) history.pushState(null, "", there);
      shown = location.pathname + location.search;
    } catch (error) {
      if (mine !== asked) return; // another page was requested
      main.removeAttribute("aria-busy");
      main.querySelector(".fault")?.remove();
      if (!mine.signal.aborted) fault("Not reachable. ", () => show(url, { push, from }));
      return;
    } finally {
      clearTimeout(late);
    }
    document.title = found.title;
    const open = main.querySelector(".controls[open]") !== null;
    const form = from === "index" || from === "back" ? null : from && main.querySelector("form[data-live]");
    const at = document.activeElement?.id;
    const around = main.querySelector(".around:has(.live)");
    const search = found.querySelector("form[role=search]");
    main.replaceChildren(...found.getElementById("main").childNodes);
    if (main.contains(search)) search.replaceWith(field.form); // the front page has the form in its main part
    else document.querySelector(".brand").after(field.form);
    const empty = main.querySelector(".around");
    if (form) { // the user is typing in it
      main.querySelector("form[data-live]")?.replaceWith(form);
    }
    if (around && empty?.dataset.map === around.dataset.map) empty.replaceWith(around); // the same map
    dress();
    main.removeAttribute("aria-busy");
    if (open && url.pathname === location.pathname) main.querySelector(".controls")?.setAttribute("open", "");
    if (form) document.getElementById(at)?.focus({ preventScroll: true });
    const kept = [...search.querySelectorAll("input[type=hidden]")];
    field.form.querySelectorAll("input[type=hidden]").forEach((each) => each.remove());
    field.form.append(...kept);
    field.value = search.node.value;
    field.dataset.index = search.node.dataset.index;
    document.getElementById("served").replaceChildren(...found.getElementById("served").childNodes);
    document.getElementById("sides").replaceChildren(...search.querySelector("#sides").childNodes);
    close();
    const why = url.hash === "#why" && document.getElementById("why");
    if (why) {
      why.focus({ preventScroll: true });
      why.scrollIntoView({ block: "nearest" });
      said.textContent = why.querySelector("h2").innerText;
      return;
    }
    if (push && !from) scrollTo(0, 0);
    if (!from) (main.contains(field) ? field : main).focus({ preventScroll: true });
    const hits = main.querySelectorAll("tr[data-rank]").length;
    said.textContent = `${main.querySelector("h1").innerText}: ${hits} related pages`;
  }

  /* Shows an error and, if possible, an action, above the current page. */
  function fault(text, act = null, label = "Retry") {
    main.querySelector(".fault")?.remove();
    const note = document.createElement("p");
    note.className = "note fault";
    note.setAttribute("role", "alert");
    note.append(text);
    if (act) {
      const button = document.createElement("button");
      button.textContent = label;
      button.addEventListener("click", act);
      note.append(button);
    }
    main.prepend(note);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") asked?.abort();
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey) return;
    if (event.shiftKey || event.altKey || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href.baseVal ?? link.href, location);
    if (!ours(url) || (url.hash && url.search === location.search && url.hash !== "#why")) return;
    event.preventDefault();
    show(url);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (new URL(form.action).pathname !== "/") return;
    event.preventDefault();
    show(asking(form));
  });

  function asking(form) {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    return new URL(`/?${new URLSearchParams(given)}`, location);
  }

  document.addEventListener("change", (event) => {
    if (event.target.closest(".keys")) return stored("keys", event.target.checked ? "on" : "off");
    const form = event.target.form;
    if (form?.dataset.live !== undefined && form.checkValidity()) show(asking(form), { from: event.target.name });
  });

  addEventListener("popstate", () => {
    const now = location.pathname + location.search;
    if (now === shown) return; // an anchor on the same page
    shown = now;
    show(new URL(location), { push: false, from: "back" });
  });

  /* -- the list and the map -------------------------------------------------------------- */

  function point(event, on) {
    const row = event.target.closest?.("[data-rank]");
    if (!row) return;
    const rank = row.dataset.rank;
    for (const each of main.querySelectorAll(`[data-rank="${rank}"]`)) each.classList.toggle("on", on);
    for (const line of main.querySelectorAll(`line[data-a="${rank}"], line[data-b="${rank}"]`))
      line.classList.toggle("on", on);
  }
  for (const [name, on] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]])
    main.addEventListener(name, (event) => point(event, on));

  /* -- groups, selection, phones --------------------------------------------------------- */

  const narrow = matchMedia("(max-width: 40rem)");

  async function begin() { // the server chooses starts in the background
    const later = main.querySelector(".starts[data-later]");
    if (!later) return;
    await new Promise((done) => setTimeout(done, LATER));
    const answer = await fetch(location, { headers: { Accept: "text/html" } }).catch(() => null);
    const found = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".starts");
    if (found && later.isConnected) later.replaceWith(found);
    if (found) begin();
  }

  function tabs() {
    const all = [...main.querySelectorAll(".two a")];
    if (!all.length) delete main.dataset.tab;
    for (const each of all) {
      if (each.hash === `#${main.dataset.tab ?? "related"}`) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  }

  function dress() {
    begin();
    tabs();
    for (const each of main.querySelectorAll(".share, .keys")) each.hidden = false;
    for (const each of main.querySelectorAll(".keys input")) each.checked = stored("keys") !== "off";
    const why = document.getElementById("why");
    const row = why && main.querySelector("tr.seen");
    if (row && narrow.matches) {
      const inside = document.createElement("tr");
      const cell = inside.insertCell();
      cell.colSpan = 4;
      cell.append(why);
      row.after(inside);
    }
  }

  main.addEventListener("click", (event) => {
    const tab = event.target.closest(".two a");
    if (tab) {
      event.preventDefault();
      main.dataset.tab = tab.hash.slice(1);
      return tabs();
    }
    const button = event.target.closest(".chips button");
    if (button) {
      const groups = [...main.querySelectorAll(".chips button")];
      const alone = groups.every((each) => (each === button) === (each.getAttribute("aria-pressed") === "true"));
      groups.forEach((each, group) => {
        const on = alone || each === button;
        each.setAttribute("aria-pressed", String(on));
        each.classList.toggle("off", !on);
        for (const part of main.querySelectorAll(`.map [data-group="${group}"], tr[data-group="${group}"]`))
          part.classList.toggle("dim", !on);
      });
      return;
    }
    const row = event.target.closest("tr[data-rank]");
    if (row && !event.target.closest("a, button") && !getSelection().toString()) row.querySelector(".ask").click();
  });

  /* Single-key shortcuts, which users can switch off. */
  document.addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    if (ctrlKey || metaKey || altKey || target.closest("input, select, textarea") || stored("keys") === "off") return;
    const rows = [...main.querySelectorAll("tr[data-rank]")];
    const now = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[now] ?? main.querySelector("tr.seen");
    const groups = [...main.querySelectorAll(".chips button")];
    const off = groups.some((each) => each.classList.contains("off"));
    const step = { j: 1, k: -1 }[key];
    if (step) rows[clamp(now + step, rows.length - 1)]?.querySelector("th a").focus();
    else if (key === "w" || key === "a") row?.querySelector(key === "w" ? ".ask" : ".add")?.click();
    else if (key === "c") main.querySelector(".modes:not(.two) a:not([aria-current])")?.click();
    else if (key === "s" || key === "?") main.querySelector(".controls summary")?.click();
    else if (key === "l" || key === "m") main.querySelector(`.two a[href="#${key === "l" ? "related" : "map"}"]`)?.click();
    else if (key === "0" && off) groups.find((each) => !each.classList.contains("off")).click();
    else if (key >= "1" && key <= "6") groups[key - 1]?.click();
  });
  const clamp = (value, last) => Math.min(last, Math.max(0, value));

  dress();

  /* -- popovers, and sharing ------------------------------------------------------------- */

  document.addEventListener("click", async (event) => {
    for (const each of document.querySelectorAll(".pop[open]")) if (!each.contains(event.target)) each.open = false;
    const share = event.target.closest(".share");
    if (!share) return;
    if (navigator.share) return navigator.share({ title: document.title, url: location.href }).catch(() => {});
    await navigator.clipboard?.writeText(location.href);
    share.textContent = said.textContent = navigator.clipboard ? "Link copied" : "Copy the address above";
  });

  /* -- names while typing ------------------------------------------------------------- */

  const create = (kind, text = "", ...rest) => {
    const made = document.createElement(kind);
    made.append(text, ...rest);
    return made;
  };
  const names = create("ul");
  names.id = "names";
  names.setAttribute("role", "listbox");
  names.setAttribute("aria-label", "Names");
  const draft = create("a", "Paste its links to find related pages");
  const keys = create("p", create("kbd", "↑"), " ", create("kbd", "↓"), " choose ", create("kbd", "Enter"), " open");
  keys.className = "keys";
  const box = create("div", names, create("p", "Not a page yet? ", draft), keys);
  box.className = "names";
  box.hidden = true;
  field.after(box);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-controls": "names", "aria-expanded": "false",
  })) field.setAttribute(name, value);

  let typed = 0, looked = null, listed = null, at = -1, matches = true;

  function close() {
    box.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    at = place;
    [...names.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", names.children[at].id);
    names.children[at].scrollIntoView({ block: "nearest" });
  }

  function take(item) {
    field.value = item.dataset.node;
    close();
    field.form.requestSubmit();
  }

  /* Percent-decodes a name, unless the result is not text or has invisible or reversing characters. */
  document.readable = readable;
  function readable(name) {
    try {
      const text = decodeURIComponent(name);
      if (/[\p{Cc}\p{Bidi_C}\u2028\u2029]/u.test(text)) return name;
      const title = /^(?=.*\p{Ll})[\p{Lu}\p{N}][^\s/\\_]*(_[^\s/\\_]+)+$/u.test(text) && !/\.[a-z0-9]{1,4}$/.test(text);
      return title ? text.replaceAll("_", " ") : text;
    } catch {
      return name;
    }
  }

  function marked(name, text) { // typed text is bold
    const [whole, part] = [name, text].map((each) => each.trim().toLowerCase().replaceAll("_", " "));
    const begin = whole.length === name.length ? whole.indexOf(part) : -1;
    if (begin < 0) return create("bdi", name);
    const end = begin + part.length;
    return create("bdi", name.slice(0, begin), create("b", name.slice(begin, end)), name.slice(end));
  }

  async function look() {
    const text = field.value;
    looked?.abort();
    if (!text.trim()) return close();
    looked = new AbortController();
    const query = new URLSearchParams({ text, k: "8", index: field.dataset.index, matches: String(matches) });
    if (field.form.side) query.set("side", field.form.side.value);
    let found;
    try {
      const answer = await fetch(`/v1/complete?${query}`, { signal: looked.signal });
      if (answer.status === 422 && matches) {
        matches = false; // too many names to search for substrings
        return look();
      }
      if (!answer.ok) return close();
      found = (await answer.json()).nodes;
    } catch {
      return;
    }
    names.replaceChildren(...found.map((each, i) => {
      const item = document.createElement("li");
      item.id = `name-${i}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.dataset.node = each.node;
      item.append(field.form.querySelector(".glass").cloneNode(true), marked(each.title || readable(each.node), text));
      if (each.title && each.title !== each.node) item.append(create("small", readable(each.node)));
      return item;
    }));
    if (!found.length || document.activeElement !== field) return close();
    at = -1;
    listed = text;
    draft.href = `/draft?${new URLSearchParams({ index: field.dataset.index })}`;
    box.hidden = false;
    field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-expanded", "true");
    said.textContent = `${found.length} names`;
  }

  field.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(look, 120);
  });
  field.addEventListener("keydown", (event) => {
    const count = box.hidden ? 0 : names.children.length;
    if (event.key === "Escape" && count) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && count && (at >= 0 || listed === field.value)) {
      event.preventDefault();
      take(names.children[Math.max(0, at)]);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count) {
      event.preventDefault();
      const down = event.key === "ArrowDown";
      choose(down ? (at + 1) % count : (at <= 0 ? count : at) - 1);
    }
  });
  field.form.addEventListener("focusout", (event) => !box.contains(event.relatedTarget) && close());
  field.form.addEventListener("change", close); // the side changed, and names with it
  box.addEventListener("pointerdown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const item = event.target.closest("li");
    if (item) take(item);
  });
})();
