// What stands under a page: the report takes the state of the figures along, and comments are loaded when asked for.

/** Binds the block under the article. */
export function bindTakingPart() {
  const report = document.querySelector('.sb-below a[data-do="report"]');
  report?.addEventListener("click", () => {
    const address = new URL(report.href);
    address.searchParams.set("state", location.pathname.split("/").pop() + location.search + location.hash);
    report.href = address.href;
  });
  const comments = document.querySelector(".sb-comments");
  const button = comments?.querySelector("button");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    button.remove();
    comments.append(giscus(JSON.parse(comments.dataset.giscus)));
  });
}

/** The script of giscus, with the settings that its site gives for a repository. */
function giscus({ repo, repo_id, category, category_id, term }) {
  const script = document.createElement("script");
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  const settings = { repo, repoId: repo_id, category, categoryId: category_id, mapping: "specific", term, strict: "1", theme };
  Object.assign(script.dataset, settings, { reactionsEnabled: "1", emitMetadata: "0", inputPosition: "top", lang: "en" });
  Object.assign(script, { src: "https://giscus.app/client.js", crossOrigin: "anonymous", async: true });
  return script;
}
