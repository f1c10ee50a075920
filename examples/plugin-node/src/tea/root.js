import fs from "node:fs";
import path from "node:path";

const here = import.meta.dirname;

/** The directory of the plugin's executable file. A bundle has all code in that file. */
export const ROOT = fs.existsSync(path.join(here, "proto")) ? here : path.resolve(here, "../..");
