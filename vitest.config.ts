// Unit tests of the front end's pure parts; what needs a browser is tested in one (tests/browser).
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["js/tests/**/*.test.ts"] } });
