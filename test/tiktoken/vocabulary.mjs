// Prints the vocabulary of o200k_base in the format of tiktoken. Usage: vocabulary.mjs DIR.
import {createRequire} from "node:module"

const require = createRequire(process.argv[2] + "/node_modules/")
for (const line of require("js-tiktoken/ranks/o200k_base").bpe_ranks.split("\n")) {
	const [, first, ...tokens] = line.split(" ")
	process.stdout.write(tokens.map((token, i) => `${token} ${Number(first) + i}\n`).join(""))
}
