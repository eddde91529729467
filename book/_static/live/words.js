// Words in the text that set a figure: <span class="sb-set" data-for="NAME" data-set='{"B": 240}'>. Without a script they are plain words.

export function bindWords(explorers) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  for (const span of document.querySelectorAll("span.sb-set[data-for]")) {
    const explorer = explorers.get(span.dataset.for);
    if (!explorer) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sb-set";
    button.append(...span.childNodes);
    button.setAttribute("aria-controls", explorer.id);
    button.addEventListener("click", () => {
      explorer.uncover();
      // The words describe the figure as the page shows it, so what else was moved goes back to the start.
      explorer.reset(JSON.parse(span.dataset.set));
      if (visible(explorer.stage)) return;
      explorer.figure.tabIndex = -1;
      explorer.figure.focus({ preventScroll: true });
      explorer.figure.scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    });
    span.replaceWith(button);
  }
}

/** Whether enough of an element can be seen to notice that it changes. */
function visible(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return Math.min(bottom, innerHeight) - Math.max(top, 0) >= Math.min(0.6 * (bottom - top), 0.6 * innerHeight);
}
