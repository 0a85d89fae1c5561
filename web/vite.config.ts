import { defineConfig } from "vitest/config";
import { licences } from "./licences";

const DESK = process.env.SEGTRUST_DESK ?? "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [licences()],
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
