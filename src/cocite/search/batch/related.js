/* Inserts related pages at its position in a page:

     <script src="/related/related.js" data-node="NAME" async></script>       files of --output-format site
     <script src="https://SERVER/embed.js" data-node="NAME" async></script>   cocite serve --allow-origin

   data-node   the page; by default the current page, by its URL or its path in the site
   data-k      the number, 10 by default        data-title  the heading, "Related pages" by default
   data-index  which index of a server          data-link   target of names that are not URLs: a URL
                                                            with {} for the name
   data-site   the URL of the site's root, where pages are named by their paths in the site;
               for files, the default is the folder above theirs
   data-from   the folder of the files, if the script is elsewhere

   It makes <nav class="cocite-related"><h2>..</h2><ul><li><a>..</a></li></ul></nav>, and nothing if
   the page is unknown. Names and titles are inserted as text; links lead to http and https only. */
"use strict";
(() => {
  const script = document.currentScript;
  const told = script.dataset;
  const here = new URL(script.src, location);
  const served = told.from === undefined && here.pathname.endsWith("/embed.js");
  const folder = new URL(told.from ? `${told.from.replace(/\/$/, "")}/` : ".", told.from ? location : here);
  const site = told.site === undefined ? (served ? null : new URL("..", folder)) : new URL(told.site, location);
  if (site && !site.pathname.endsWith("/")) site.pathname += "/";
  let paths = told.site !== undefined; // whether names are paths in the site
  const count = Math.max(1, Number.parseInt(told.k ?? "10", 10) || 10);

  /* Yields possible names of this page: the URL, and paths on a server. */
  function* names(urls) {
    const canonical = document.querySelector('link[rel="canonical"][href]');
    const places = (canonical ? [canonical.href, location.href] : [location.href]).map((href) => new URL(href, location));
    for (const url of places) url.hash = "";
    if (urls) yield places[0].href;
    for (const url of site ? places : []) {
      const path = inside(url);
      if (path === null) continue;
      if (path === "" || path.endsWith("/")) {
        yield* [`${path}index.html`, `${path}index.htm`];
        if (path) yield `${path.slice(0, -1)}.html`;
      } else {
        yield path;
        if (!/\.x?html?$/i.test(path)) yield* [`${path}.html`, `${path}/index.html`, `${path}.htm`];
      }
    }
  }

  function inside(url) {
    if (!url.href.startsWith(site.href)) return null;
    try {
      return decodeURIComponent(url.pathname.slice(site.pathname.length));
    } catch {
      return null; // not text
    }
  }

  /* Returns the path of a page's file, like file_name in folder.py. */
  async function file(node, levels) {
    const raw = new TextEncoder().encode(node);
    const plain = /[A-Za-z0-9_.~-]/;
    let name = "";
    for (const byte of raw) {
      const sign = String.fromCharCode(byte);
      name += plain.test(sign) ? sign : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    }
    if (name.startsWith(".")) name = `=2E${name.slice(1)}`;
    const digits = levels || name.length > 150 ? sha256(raw) : "";
    if (name.length > 150) name = `${name.slice(0, 120)}==${digits.slice(0, 16)}`;
    const folders = [...Array(levels).keys()].map((i) => `${digits.slice(2 * i, 2 * i + 2)}/`);
    return `pages/${folders.join("")}${name}.json`;
  }

  /* SHA-256 (FIPS 180-4), which browsers provide only over https. */
  function sha256(bytes) {
    const primes = [], size = ((bytes.length + 72) >> 6) << 6, view = new DataView(new ArrayBuffer(size));
    for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
    const part = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32) >>> 0;
    const sum = primes.slice(0, 8).map((p) => part(Math.sqrt(p))), round = primes.map((p) => part(Math.cbrt(p)));
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    bytes.forEach((byte, i) => view.setUint8(i, byte));
    view.setUint8(bytes.length, 128);
    view.setUint32(size - 4, bytes.length * 8);
    view.setUint32(size - 8, Math.floor(bytes.length / 2 ** 29));
    for (let at = 0; at < size; at += 64) {
      const w = Array.from({ length: 16 }, (_, i) => view.getUint32(at + 4 * i));
      for (let i = 16; i < 64; i++) {
        const a = w[i - 15], b = w[i - 2];
        w[i] = (w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10))) | 0;
      }
      let [a, b, c, d, e, f, g, h] = sum;
      for (let i = 0; i < 64; i++) {
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + round[i] + w[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
      }
      [a, b, c, d, e, f, g, h].forEach((x, i) => (sum[i] = (sum[i] + x) >>> 0));
    }
    return sum.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  }

  async function got(url) {
    const answer = await fetch(url, { credentials: "omit" });
    return answer.ok ? answer.json() : null;
  }

  /* Fetches the data for the first of the page's names that exists. */
  async function asked() {
    const manifest = served ? {} : await got(new URL("manifest.json", folder));
    if (!manifest) return null;
    const urls = served ? !paths : manifest.urls;
    for (const node of told.node === undefined ? new Set(names(urls)) : [told.node]) {
      const query = new URLSearchParams({ node, k: String(count), ...(told.index && { index: told.index }) });
      const found = await got(served ? new URL(`v1/related?${query}`, here) : new URL(await file(node, manifest.levels), folder));
      if (!found) continue;
      paths ||= told.node === undefined && !isURL(node);
      return found;
    }
    return null;
  }

  function isURL(name) {
    return /^https?:\/\//i.test(name);
  }

  function leads(name) {
    const path = encodeURIComponent(name).replaceAll("%2F", "/");
    const text = isURL(name) ? name : told.link ? told.link.replaceAll("{}", path) : paths && site ? site.origin + site.pathname + path : "";
    try {
      const url = new URL(text, location);
      if (text && /^https?:$/.test(url.protocol)) return url.href;
    } catch { /* not a URL */ }
    return null;
  }

  function element(name, ...inside) {
    const made = document.createElement(name);
    made.append(...inside);
    return made;
  }

  asked().then((found) => {
    const hits = (found?.hits ?? []).slice(0, count);
    if (!hits.length) return;
    const items = hits.map((hit) => {
      const text = String(hit.title || hit.node), to = leads(String(hit.node));
      if (!to) return element("li", text);
      const link = element("a", text);
      link.href = to;
      link.rel = "noopener";
      return element("li", link);
    });
    const title = told.title ?? "Related pages";
    const nav = element("nav", ...(title ? [element("h2", title)] : []), element("ul", ...items));
    nav.className = "cocite-related";
    nav.setAttribute("aria-label", title || "Related pages");
    script.after(nav);
  }, () => {});
})();
