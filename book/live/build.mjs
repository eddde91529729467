// Makes the files with which a page runs the library: node build.mjs PYODIDE SOURCE OUT. All that needs Python is done in Pyodide itself,
// by build.py: only the Python that will read compiled modules can write them.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, source, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
try {
  const { loadPyodide } = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
  const python = await loadPyodide({ indexURL: pyodide });
  for (const [place, root] of [["/source", source], ["/out", out]]) {
    python.FS.mkdir(place);
    python.FS.mount(python.FS.filesystems.NODEFS, { root }, place);
  }
  python.runPython(readFileSync(new URL("build.py", import.meta.url), "utf8"), { filename: "build.py" });
} catch (error) {
  console.error(error.message); // the stack would be a line of a megabyte
  process.exit(1);
}
