// Run in a page: text that leaves its picture, text on text, and text too faint for what lies under it. Gives a list of sentences.
() => {
  const numbers = (colour) => {
    const n = colour.match(/[\d.]+/g).map(Number);
    return colour.startsWith("color(srgb") ? n.map((v, i) => (i < 3 ? v * 255 : v)) : n;
  };
  const luminance = (rgb) =>
    rgb
      .map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((p, q) => p - q);
    return (light + 0.05) / (dark + 0.05);
  };
  const faults = [];
  let texts_seen = 0;
  for (const svg of document.querySelectorAll(".sb-svg")) {
    if (!svg.getBoundingClientRect().width) continue;
    svg.scrollIntoView({ block: "start" });
    const frame = svg.getBoundingClientRect();
    const name = `${svg.closest("figure")?.id || svg.getAttribute("aria-label")} at ${Math.round(frame.width)} px`;
    svg.querySelectorAll("*").forEach((e) => {
      e.style.pointerEvents = "all";
    });
    const texts = [...svg.querySelectorAll("text")].map((e) => ({ e, box: e.getBoundingClientRect(), words: e.textContent }));
    texts_seen += texts.length;
    texts.forEach(({ e, box, words }, i) => {
      if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        faults.push(`${name}: "${words}" leaves the picture`);
      if (!e.hasAttribute("transform"))
        texts.slice(0, i).forEach((other) => {
          const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
          const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
          const moves = (t) => t.closest("[class*=token]") || t.previousElementSibling?.classList.contains("sb-token");
          if (wide > 2 && high > 5 && !other.e.hasAttribute("transform") && ![e, other.e].some(moves))
            faults.push(`${name}: "${words}" lies on "${other.words}"`);
        });
      let ground = numbers(getComputedStyle(document.body).backgroundColor).slice(0, 3);
      if (!e.classList.contains("sb-halo"))
        for (const under of document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).reverse()) {
          const style = getComputedStyle(under);
          if (!["rect", "circle", "path"].includes(under.tagName) || style.fill === "none" || style.fill.startsWith("url")) continue;
          const fill = numbers(style.fill);
          const share = (fill[3] ?? 1) * style.fillOpacity;
          ground = ground.map((v, c) => v * (1 - share) + fill[c] * share);
        }
      const ratio = contrast(numbers(getComputedStyle(e).fill).slice(0, 3), ground);
      if (box.top >= 0 && box.bottom <= innerHeight && ratio < 4.5)
        faults.push(`${name}: "${words}" has contrast ${ratio.toFixed(2)}`);
    });
  }
  return { faults: [...new Set(faults)], texts: texts_seen };
}
