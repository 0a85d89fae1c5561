/** Collects the licences of all packages that end up in the built page into `licenses.txt`. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.|$)/i;

interface Manifest {
  name: string;
  version: string;
  license?: string;
  dependencies?: Record<string, string>;
}

function readManifest(name: string): Manifest | null {
  const path = join("node_modules", name, "package.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** The packages that a package needs, and those that they need, each once. */
function packagesBelow(manifest: Manifest, found = new Map<string, Manifest>()): Map<string, Manifest> {
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const each = found.has(name) ? null : readManifest(name);
    if (!each) continue;
    found.set(name, each);
    packagesBelow(each, found);
  }
  return found;
}

function textsOf(name: string): string[] {
  const folder = join("node_modules", name);
  return readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
}

function describe({ name, version, license }: Manifest): string {
  const texts = textsOf(name);
  const known = existsSync(join("licences", `${name.replace("/", "__")}.txt`))
    ? [readFileSync(join("licences", `${name.replace("/", "__")}.txt`), "utf8").trim()]
    : [];
  return [`${name} ${version}: ${license ?? "see below"}`, "", ...(texts.length > 0 ? texts : known)].join("\n");
}

export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const own = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
      const packages = [...packagesBelow(own).values()].sort((a, b) => a.name.localeCompare(b.name));
      const source = `${packages.map(describe).join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
      this.emitFile({ type: "asset", fileName: "licenses.txt", source });
    },
  };
}
