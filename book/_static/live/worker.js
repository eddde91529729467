// Python in a worker of its own. The first message has the addresses of its files; every other one is a request, answered by the library:
// JSON text both ways, as scalebook.live.requests has it.
const ROOT = "/lib/scalebook";
let answer;

// Pyodide only warns when its program cannot be read, and then waits for ever.
const instantiate = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = (...given) =>
  instantiate(...given).catch((error) => {
    postMessage({ failure: error.message });
    throw error;
  });

async function load({ runtime, stdlib, library, lock }) {
  const archive = fetch(library).then((reply) => {
    if (!reply.ok) throw new Error(`${library} cannot be read: ${reply.status}`);
    return reply.arrayBuffer();
  });
  archive.catch(() => {}); // it is told where it is waited for
  const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: runtime, packageBaseUrl: runtime, stdLibURL: stdlib, lockFileContents: lock });
  python.unpackArchive(await archive, "zip", { extractDir: ROOT });
  python.runPython(`import sys; sys.path.insert(0, "${ROOT}")`);
  ({ answer } = python.pyimport("scalebook.live.requests"));
  python.runPython("import gc; gc.collect(); gc.freeze()"); // what is loaded stays: looking through it again would hold up an answer
}

self.onmessage = async ({ data: { files, request } }) => {
  try {
    if (files) await load(files);
    postMessage(files ? { ready: true } : { reply: answer(request) });
  } catch (error) {
    postMessage({ failure: error.message });
  }
};
