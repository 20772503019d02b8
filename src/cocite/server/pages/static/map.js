/* Makes the server's map interactive: it fills the pane, labels are placed by measured size, and users
   can drag, zoom, move with keys, expand a page in place, and export the view. Between maps, rotation
   and mirroring keep shared pages as close to their positions as possible. */
"use strict";
(() => {
  const main = document.getElementById("main");
  const said = document.getElementById("said");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const panes = matchMedia("(min-width: 75rem)"); // with panes, as in page.css, the map fills one
  const SVG = "http://www.w3.org/2000/svg";
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const make = (name, values = {}, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const short = (name) => ([...name].length > 26 ? `${[...name].slice(0, 25).join("")}…` : name);
  const OBLONG = 1.35; // maximum ratio of the axes of rings
  let last = new Map(); // positions of pages, by address
  let sized = null;

  function live(svg) {
    const crop = svg.parentNode;
    const outer = Number(svg.querySelector(".rings ellipse:last-child").getAttribute("rx"));
    const middle = { x: 0, y: 0, r: 12, circle: svg.querySelector(".middle circle"), label: svg.querySelector(".middle text"), first: true };
    const names = new Map([...(crop.parentNode.querySelectorAll(".groups [data-group] bdi"))].map((each) => [each.parentNode.dataset.group, each.textContent]));
    const nodes = [...svg.querySelectorAll("a")].map((a) => node(a, {
      x: (a.querySelector("circle").getAttribute("cx") - svg.dataset.wide / 2) / outer,
      y: (a.querySelector("circle").getAttribute("cy") - svg.dataset.tall / 2) / outer,
      r: Number(a.querySelector("circle").getAttribute("r")),
    }));
    const lines = [...svg.querySelectorAll("line")].map((line) => ({ line, a: at(line.dataset.a), b: at(line.dataset.b) }));
    let wide = 0, tall = 0, zoom = 1, dx = 0, dy = 0, part = 1, moved = false, waiting = 0, hover = 0;

    function at(rank) {
      return nodes.find((each) => each.a.dataset.rank === rank);
    }

    function node(a, values) {
      const title = a.querySelector("title");
      const name = title.textContent;
      title.remove(); // the card shows it
      let label = a.querySelector(".label");
      if (!label) a.append((label = make("text", { class: "label", dy: ".35em" })));
      label.textContent = short(name);
      const { rank, score, links, group } = a.dataset;
      const facts = [rank && `rank ${rank}`, score && `similarity ${score}`, links && `${Number(links).toLocaleString("en")} in-links`,
        names.has(group) && `group ${names.get(group)}`].filter(Boolean);
      a.setAttribute("aria-label", [name, ...facts].join(", "));
      a.setAttribute("tabindex", "-1");
      return { a, name, facts, label, circle: a.querySelector("circle"), href: a.getAttribute("href"), key: a.getAttribute("href").replace(/&from=[^&]*/g, ""), first: a.classList.contains("central"), ...values };
    }

    /* -- alignment with the last map ---------------------------------------------------------- */

    function settle() {
      const shared = nodes.filter((each) => last.has(each.key));
      let best = { fit: 0 };
      for (const flip of [1, -1]) {
        let along = 0, across = 0;
        for (const each of shared) {
          const [x, y] = last.get(each.key);
          along += x * each.x * flip + y * each.y;
          across += y * each.x * flip - x * each.y;
        }
        const fit = Math.hypot(along, across);
        if (fit > best.fit) best = { fit, flip, cos: along / fit, sin: across / fit };
      }
      for (const each of best.fit ? nodes : []) {
        const x = each.x * best.flip, y = each.y;
        [each.x, each.y] = [best.cos * x - best.sin * y, best.sin * x + best.cos * y];
        each.from = last.get(each.key);
      }
      last = new Map(nodes.map((each) => [each.key, [each.x, each.y]]));
      if (!shared.length || still.matches) return draw();
      const begun = performance.now();
      const step = (now) => {
        part = clamp((now - begun) / 240, 0, 1);
        draw();
        if (part < 1 && svg.isConnected) requestAnimationFrame(step);
      };
      step(begun);
    }

    /* -- drawing -------------------------------------------------------------------------- */

    function draw() {
      if (!wide) return;
      let rx = Math.max(60, wide / 2 - clamp(wide * 0.2, 56, 160)), ry = tall / 2 - 44;
      [rx, ry] = [Math.min(rx, OBLONG * ry), Math.min(ry, OBLONG * rx)]; // nearer pages must look nearer
      const scale = Math.min(1, (zoom * Math.min(rx, ry)) / outer);
      const ease = 1 - (1 - part) ** 3;
      svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
      for (const each of [middle, ...nodes]) {
        const [x, y] = each.from && part < 1 ? each.from.map((old, i) => old + (each[i ? "y" : "x"] - old) * ease) : [each.x, each.y];
        each.px = wide / 2 + dx + zoom * rx * x;
        each.py = tall / 2 + dy + zoom * ry * y;
        each.pr = each.r * scale;
        for (const [name, value] of [["cx", each.px], ["cy", each.py], ["r", each.pr]]) each.circle.setAttribute(name, value.toFixed(1));
      }
      for (const { line, a, b } of lines)
        for (const [name, value] of [["x1", a.px], ["y1", a.py], ["x2", b.px], ["y2", b.py]]) line.setAttribute(name, value.toFixed(1));
      svg.querySelectorAll(".rings ellipse").forEach((ring, place) => {
        const share = zoom * (place ? 1 : 84 / outer);
        for (const [name, value] of [["cx", middle.px], ["cy", middle.py], ["rx", rx * share], ["ry", ry * share]]) ring.setAttribute(name, value.toFixed(1));
      });
      label();
    }

    /* Labels the middle first, then the pages that name groups, then the others by rank; outward rather
       than inward. A label without free space is omitted. */
    function label() {
      const all = [middle, ...nodes];
      const taken = all.map((each) => [each.px - each.pr - 1, each.py - each.pr - 1, each.px + each.pr + 1, each.py + each.pr + 1]);
      for (const each of all) each.label.removeAttribute("display");
      for (const each of all) each.long ??= each.label.getBBox();
      for (const each of [...all].sort((a, b) => Boolean(b.first) - Boolean(a.first))) {
        const width = each.long.width + 4, height = Math.max(16, each.long.height) + 1;
        let best = null;
        for (let turn = 0; turn < 24; turn++) {
          if (turn === 12 && best) break; // farther away only if there is no space next to it
          const gap = turn < 12 ? 4 : 16;
          const cos = Math.cos((turn * Math.PI) / 6), sin = Math.sin((turn * Math.PI) / 6);
          const x = each.px + cos * (each.pr + gap + width / 2), y = each.py + sin * (each.pr + gap - 1 + height / 2);
          const box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
          if (box[0] < 1 || box[1] < 1 || box[2] > wide - 1 || box[3] > tall - 1) continue;
          if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
          const away = Math.hypot(each.x, each.y) || 1;
          const worth = (cos * each.x + sin * each.y) / away + 0.6 * Math.abs(cos);
          if (!best || worth > best.worth + 1e-9) best = { worth, x, y, box };
        }
        if (!best) {
          each.label.setAttribute("display", "none");
          continue;
        }
        taken.push(best.box);
        for (const [name, value] of [["x", best.x.toFixed(1)], ["y", best.y.toFixed(1)], ["text-anchor", "middle"]]) each.label.setAttribute(name, value);
      }
      for (const text of svg.querySelectorAll(".rings .value")) value(text, text.nextElementSibling, taken);
    }

    /* Places a ring's similarity where the ring has free space, preferably below. */
    function value(text, ring, taken) {
      const [cx, cy, rx, ry] = ["cx", "cy", "rx", "ry"].map((name) => Number(ring.getAttribute(name)));
      text.style.display = "";
      const { width, height } = text.getBBox();
      for (let turn = 0; turn < 24; turn++) {
        const angle = Math.PI * (0.5 + (turn % 2 ? 1 : -1) * Math.ceil(turn / 2) / 12);
        const x = cx + rx * Math.cos(angle), y = cy + ry * Math.sin(angle);
        const box = [x - width / 2 - 3, y - height / 2, x + width / 2 + 3, y + height / 2];
        if (box[0] < 1 || box[1] < 1 || box[2] > wide - 1 || box[3] > tall - 1) continue;
        if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
        taken.push(box);
        for (const [name, at] of [["x", x.toFixed(1)], ["y", y.toFixed(1)], ["dy", ".35em"], ["text-anchor", "middle"]]) text.setAttribute(name, at);
        return;
      }
      text.style.display = "none";
    }

    function resize() {
      if (crop.clientWidth === wide) return;
      wide = crop.clientWidth;
      if (!wide) return; // hidden
      const room = panes.matches ? Math.min(wide * 1.5, crop.clientHeight - 44) : wide * 0.85;
      tall = Math.round(clamp(room, 360, 860));
      draw();
    }

    function scaled(by, x = wide / 2, y = tall / 2) {
      const now = clamp(zoom * by, 0.5, 6);
      dx = (x - wide / 2) * (1 - now / zoom) + dx * (now / zoom);
      dy = (y - tall / 2) * (1 - now / zoom) + dy * (now / zoom);
      zoom = now;
      draw();
    }

    function fit() {
      [zoom, dx, dy] = [1, 0, 0];
      draw();
    }

    /* -- a page's own hits --------------------------------------------------------------- */

    async function expand(each) {
      const url = new URL(each.href, location);
      url.searchParams.delete("from"); // for this page alone
      url.searchParams.set("k", "8");
      let hits;
      try {
        const answer = await fetch(`/v1/related${url.search}`);
        if (!answer.ok) throw new Error(answer.statusText);
        hits = (await answer.json()).hits;
      } catch {
        said.textContent = `${each.name} could not be expanded.`;
        return;
      }
      if (!svg.isConnected) return;
      let added = 0;
      hits.forEach((hit, place) => {
        const there = new URL(each.href, location);
        there.searchParams.set("node", hit.node);
        const href = `/${there.search}`;
        const known = nodes.find((other) => new URL(other.href, location).searchParams.get("node") === hit.node);
        const other = known ?? spot(each, hit, href, place);
        if (lines.some((line) => (line.a === each && line.b === other) || (line.a === other && line.b === each))) return;
        const line = make("line", { class: "more", "stroke-opacity": ".5" });
        svg.querySelector(".lines").append(line);
        lines.push({ line, a: each, b: other, more: true });
        added += !known;
      });
      draw();
      said.textContent = `${each.name}: ${added} more pages`;
    }

    function spot(each, hit, href, place) {
      const a = make("a", { href, class: "more" });
      a.append(make("title", {}, hit.title || document.readable(hit.node)), make("circle", { r: 6 }));
      a.dataset.score = hit.score.toPrecision(3);
      svg.append(a);
      const out = Math.atan2(each.y, each.x);
      const free = (x, y) => [{ x: 0, y: 0 }, ...nodes].every((other) => Math.hypot(other.x - x, other.y - y) > 0.115);
      let x, y;
      for (let ring = 0; ring < 12; ring++)
        for (let turn = 0; turn < 16; turn++) {
          const angle = out + (((turn + place) % 16) / 16 - 0.5) * Math.PI * 1.2;
          [x, y] = [each.x + (0.22 + 0.12 * ring) * Math.cos(angle), each.y + (0.22 + 0.12 * ring) * Math.sin(angle)];
          if (free(x, y)) ring = turn = 99;
        }
      const made = node(a, { x, y, r: 6, more: true });
      nodes.push(made);
      return made;
    }

    async function deep(button) {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      if (on) {
        button.disabled = true; // until all have loaded
        for (const each of nodes.filter((other) => !other.more).slice(0, 5)) await expand(each);
        button.disabled = false;
        if (document.activeElement === document.body && svg.isConnected) button.focus({ preventScroll: true });
      } else {
        svg.querySelectorAll(".more").forEach((each) => each.remove());
        for (const list of [nodes, lines]) list.splice(0, list.length, ...list.filter((each) => !each.more));
        nodes[0].a.setAttribute("tabindex", "0");
        draw();
      }
    }

    /* -- export to files ------------------------------------------------------------------ */

    function save(blob, ending) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `map.${ending}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    const STYLES = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "paint-order", "opacity", "font-family", "font-size", "font-weight", "display"];

    const files = {
      svg() {
        const copy = svg.cloneNode(true), theirs = copy.querySelectorAll("*");
        svg.querySelectorAll("*").forEach((each, place) => {
          const style = getComputedStyle(each);
          for (const name of STYLES) theirs[place].setAttribute(name, style.getPropertyValue(name));
        });
        copy.setAttribute("xmlns", SVG);
        copy.setAttribute("width", wide);
        copy.setAttribute("height", tall);
        copy.querySelectorAll("a").forEach((a) => a.setAttribute("href", new URL(a.getAttribute("href"), location)));
        save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), "svg");
      },
      png() {
        const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
        [canvas.width, canvas.height] = [2 * wide, 2 * tall];
        pen.scale(2, 2);
        pen.fillStyle = getComputedStyle(document.body).backgroundColor;
        pen.fillRect(0, 0, wide, tall);
        for (const each of svg.querySelectorAll("ellipse, line, circle, text")) {
          const style = getComputedStyle(each), value = (name) => Number(each.getAttribute(name));
          if (style.display === "none") continue;
          pen.globalAlpha = Number(style.strokeOpacity) * Number(getComputedStyle(each.parentNode).opacity);
          [pen.lineWidth, pen.lineCap, pen.lineJoin] = [parseFloat(style.strokeWidth), style.strokeLinecap, "round"];
          [pen.strokeStyle, pen.fillStyle] = [style.stroke, style.fill].map((color) => (color === "none" ? "#0000" : color));
          pen.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat));
          pen.beginPath();
          if (each.tagName === "text") {
            [pen.font, pen.textAlign, pen.textBaseline] = [`${style.fontWeight} ${style.fontSize} ${style.fontFamily}`, "center", "middle"];
            pen.strokeText(each.textContent, value("x"), value("y"));
            pen.fillText(each.textContent, value("x"), value("y"));
            continue;
          }
          if (each.tagName === "line") pen.moveTo(value("x1"), value("y1")), pen.lineTo(value("x2"), value("y2"));
          else pen.ellipse(value("cx"), value("cy"), value("rx") || value("r"), value("ry") || value("r"), 0, 0, 7);
          if (each.tagName !== "line") pen.fill();
          pen.stroke();
        }
        canvas.toBlob((blob) => save(blob, "png"));
      },
      graphml() {
        const file = document.implementation.createDocument("http://graphml.graphdrawing.org/xmlns", "graphml");
        const put = (parent, name, values, text = "") => {
          const made = file.createElementNS(file.documentElement.namespaceURI, name);
          for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
          made.textContent = text;
          return parent.appendChild(made);
        };
        for (const [key, type] of [["label", "string"], ["similarity", "double"], ["group", "string"]])
          put(file.documentElement, "key", { id: key, for: "node", "attr.name": key, "attr.type": type });
        const graph = put(file.documentElement, "graph", { edgedefault: "undirected" });
        const id = (each) => new URL(each.href, location).searchParams.get("node");
        for (const each of nodes) {
          const made = put(graph, "node", { id: id(each) });
          put(made, "data", { key: "label" }, each.name);
          put(made, "data", { key: "similarity" }, each.a.dataset.score);
          if (names.has(each.a.dataset.group)) put(made, "data", { key: "group" }, names.get(each.a.dataset.group));
        }
        for (const { line, a, b } of lines)
          if (line.parentNode.classList.contains("lines")) put(graph, "edge", { source: id(a), target: id(b) });
        save(new Blob([new XMLSerializer().serializeToString(file)], { type: "application/graphml+xml" }), "graphml");
      },
    };

    /* -- pointer and keys ------------------------------------------------------------- */

    const of = (event) => nodes.find((each) => each.a === event.target.closest?.("a"));
    const card = document.createElement("div");
    card.className = "card";
    card.hidden = true;
    card.setAttribute("aria-hidden", "true");

    function tell(each) {
      clearTimeout(hover);
      card.hidden = true;
      if (each) hover = setTimeout(() => {
        const small = document.createElement("small");
        small.textContent = each.facts.join(" · ");
        card.replaceChildren(each.name, small);
        card.hidden = false;
        card.style.left = `${clamp(each.px + 14, 4, Math.max(4, wide - card.offsetWidth - 4))}px`;
        card.style.top = `${each.py + 14 + card.offsetHeight > tall ? each.py - card.offsetHeight - 14 : each.py + 14}px`;
      }, 250);
    }

    const held = new Map();
    svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      if (!held.size) moved = false;
      held.set(event.pointerId, [event.clientX, event.clientY]);
    });
    const release = (event) => held.delete(event.pointerId);
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, release);
    svg.addEventListener("pointermove", (event) => {
      const old = held.get(event.pointerId);
      if (!old) return;
      const [x, y] = [event.clientX, event.clientY], other = [...held].find(([id]) => id !== event.pointerId)?.[1];
      if (!other && !moved && Math.hypot(x - old[0], y - old[1]) < 5) return;
      moved = true;
      tell(null);
      if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [x, y]);
      if (other) {
        const box = svg.getBoundingClientRect();
        const by = Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(old[0] - other[0], old[1] - other[1]));
        return scaled(by, (x + other[0]) / 2 - box.x, (y + other[1]) / 2 - box.y);
      }
      [dx, dy] = [dx + x - old[0], dy + y - old[1]];
      draw();
    });
    svg.addEventListener("dragstart", (event) => event.preventDefault());
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !svg.contains(document.activeElement)) return; // the page scrolls
      event.preventDefault();
      scaled(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    svg.addEventListener("click", (event) => {
      const each = of(event);
      if (!each || !event.isTrusted || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (moved) return event.preventDefault();
      if (!event.detail) return; // Enter
      event.preventDefault(); // it may be the first click of two
      clearTimeout(waiting);
      if (event.detail > 1) expand(each);
      else waiting = setTimeout(() => each.a.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })), 250);
    });
    svg.addEventListener("pointerover", (event) => !held.size && tell(of(event)));
    svg.addEventListener("pointerleave", () => tell(null));
    svg.addEventListener("focusout", () => tell(null));
    svg.addEventListener("focusin", (event) => {
      const each = of(event);
      if (!each) return;
      for (const other of nodes) other.a.setAttribute("tabindex", other === each ? "0" : "-1");
      tell(each);
    });
    svg.addEventListener("keydown", (event) => {
      const each = of(event), way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!each || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") return tell(null);
      if (event.key === "Enter" && event.shiftKey) expand(each);
      else if (event.key === "+" || event.key === "=") scaled(1.25);
      else if (event.key === "-") scaled(0.8);
      else if (event.key === "f") fit();
      else if (event.key === "Home" || event.key === "End") nodes.at(event.key === "Home" ? 0 : -1).a.focus({ preventScroll: true });
      else if (way) {
        let best = null;
        for (const other of nodes) {
          const x = other.px - each.px, y = other.py - each.py, along = x * way[0] + y * way[1];
          const far = along + 2.5 * Math.abs(x * way[1] - y * way[0]);
          if (along > 0.5 && (!best || far < best.far)) best = { far, other };
        }
        best?.other.a.focus({ preventScroll: true });
      } else return;
      event.preventDefault();
    });

    const tools = document.createElement("div");
    tools.className = "tools";
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", "Map");
    const sets = [document.createElement("span"), document.createElement("span"), document.createElement("span")];
    for (const [set, text, name, act] of [
      [0, "−", "Zoom out", () => scaled(0.8)], [0, "+", "Zoom in", () => scaled(1.25)], [0, "Fit", "", fit], [1, "Depth 2", "Depth 2: add the pages related to the first five", deep],
      [2, "PNG", "Save as PNG", files.png], [2, "SVG", "Save as SVG", files.svg], [2, "GraphML", "Save as GraphML", files.graphml],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      if (name) button.title = name;
      if (name && set !== 1) button.setAttribute("aria-label", name);
      if (act === deep) button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => act(button));
      sets[set].append(button);
    }
    tools.append(...sets);
    crop.append(tools, card);
    svg.classList.add("live");
    nodes[0].a.setAttribute("tabindex", "0");
    sized?.disconnect();
    sized = new ResizeObserver(resize);
    sized.observe(crop);
    resize();
    settle();
  }

  /* Loads the map after the list; both show the same groups. */
  async function fill(section) {
    let chart;
    try {
      const answer = await fetch(section.dataset.map, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(answer.statusText);
      chart = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".chart");
    } catch {
      const link = document.createElement("a");
      link.href = section.dataset.map;
      link.textContent = "The map failed to load. Try again";
      section.append(link);
    }
    if (!chart || !section.isConnected) return;
    section.append(chart);
    live(chart.querySelector("svg"));
    color();
  }

  function color() {
    const groups = new Map();
    for (const a of main.querySelectorAll(".around svg.map a[data-group]:not(.more)")) {
      const row = main.querySelector(`tr[data-rank="${a.dataset.rank}"]`);
      row?.setAttribute("data-group", a.dataset.group);
      groups.set(row?.dataset.node, a.dataset.group);
    }
    for (const each of main.querySelectorAll(".ribbons [data-node]"))
      if (groups.has(each.dataset.node)) each.dataset.group = groups.get(each.dataset.node);
    main.querySelector(".chips")?.replaceChildren(...[...main.querySelectorAll(".around .groups [data-group]")].map((group) => {
      const chip = document.createElement("li"), button = document.createElement("button"), dot = document.createElement("span");
      [chip.dataset.group, dot.className, button.type] = [group.dataset.group, "dot", "button"];
      button.setAttribute("aria-pressed", "true");
      const count = document.createElement("span");
      [count.className, count.textContent] = ["count", group.dataset.size];
      button.append(dot, group.querySelector("bdi").cloneNode(true), " ", count);
      chip.append(button);
      return chip;
    }));
  }

  let asked = null;

  function look() {
    const section = main.querySelector(".around"), svg = main.querySelector("svg.map");
    if (svg && !svg.classList.contains("live")) return live(svg);
    if (svg) return color();
    if (section && section !== asked) fill((asked = section));
  }
  new MutationObserver(look).observe(main, { childList: true });
  look();
})();
