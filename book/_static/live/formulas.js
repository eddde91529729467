// A formula that is wider than a narrow page scrolls by itself: also by the keyboard.

/** Lets the formulas that scroll take the focus, now and when the page changes its width. */
export async function bindFormulas() {
  await window.MathJax?.startup?.promise;
  const mark = () => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"], div.math')) {
      if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
      else formula.removeAttribute("tabindex");
    }
  };
  mark();
  addEventListener("resize", mark);
}
