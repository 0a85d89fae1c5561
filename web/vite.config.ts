import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { licences } from "./licences.ts";

const ABSENT = fileURLToPath(new URL("./src/viewer/absent.ts", import.meta.url)); // also below "my folder"
const DESK = process.env.SEGTRUST_DESK ?? "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [licences()],
  // NiiVue can also read Zarr; the desk sends NIfTI only, and leaves out the decoders of the former (1.4 MB).
  resolve: { alias: [{ find: /^numcodecs\/(blosc|lz4|zstd)$/, replacement: ABSENT }] },
  build: {
    outDir: "../src/segtrust/review/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy wants files
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 4000, // NiiVue, which is loaded only for volumes
  },
  // Requests that change something must come from the desk's own origin.
  server: { proxy: { "/api": { target: DESK, changeOrigin: true, headers: { origin: DESK } } } },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
