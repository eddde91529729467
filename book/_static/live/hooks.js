// What can be touched in the picture itself: elements that choose (data-set), and areas in which a handle is dragged (sb-drag).
// All listeners sit on the stage, because the picture in it is replaced at every change.

const FAR = 6; // pixels that a finger moves before it drags: less is a tap, or the page being scrolled

export function bindHooks(explorer) {
  const { stage } = explorer;
  let last = ""; // what the mouse chose last
  let drag = null;

  const choose = (event) => {
    const chosen = event.target.closest?.("[data-set]")?.dataset.set ?? "";
    if (chosen && (chosen !== last || event.type === "click")) explorer.move(JSON.parse(chosen));
    last = chosen;
  };
  // Pointing chooses and stays so: nothing flickers, and a tap does the same. A page that scrolls under a still mouse chooses nothing.
  stage.addEventListener("pointermove", (event) => {
    if (drag) pull(event);
    else if (event.pointerType === "mouse" && !event.buttons) choose(event);
  });
  stage.addEventListener("pointerleave", () => {
    last = "";
  });
  stage.addEventListener("click", choose);

  stage.addEventListener("pointerdown", (event) => {
    const area = event.target.closest?.(".sb-drag");
    if (!area || event.button !== 0) return;
    const { key, axis } = area.dataset;
    drag = { key, axis, from: event[`client${axis.toUpperCase()}`], begun: event.pointerType === "mouse" };
    stage.setPointerCapture(event.pointerId);
    stage.classList.add("sb-dragging");
    explorer.controls.focus(key);
    if (event.pointerType === "mouse") event.preventDefault(); // keeps the focus, and selects no text
    if (drag.begun) pull(event);
  });
  stage.addEventListener("pointerup", (event) => {
    if (drag) {
      drag.begun = true;
      pull(event);
    }
    drag = null;
    stage.classList.remove("sb-dragging");
  });
  stage.addEventListener("pointercancel", () => {
    drag = null;
    stage.classList.remove("sb-dragging");
  });

  /** Moves the handle to the stop that is nearest to the pointer, in the picture as it is now. */
  function pull(event) {
    const vertical = drag.axis === "y";
    const client = vertical ? event.clientY : event.clientX;
    drag.begun ||= Math.abs(client - drag.from) >= FAR;
    const area = stage.querySelector(`.sb-drag[data-key="${drag.key}"][data-axis="${drag.axis}"]`);
    if (!drag.begun || !area) return;
    const svg = area.ownerSVGElement;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const at = vertical ? y : x;
    const near = JSON.parse(area.dataset.stops).reduce((best, stop) => (Math.abs(stop[0] - at) < Math.abs(best[0] - at) ? stop : best));
    explorer.move({ [drag.key]: near[1] });
  }
}
