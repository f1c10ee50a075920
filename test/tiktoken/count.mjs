// Prints the number of tokens of an encoding in each text: one JSON string a line on
// standard input, one number a line on standard output. Usage: count.mjs DIR ENCODING.
import {createInterface} from "node:readline"
import {createRequire} from "node:module"

const require = createRequire(process.argv[2] + "/node_modules/")
const {getEncoding} = require("js-tiktoken")
const encoding = getEncoding(process.argv[3])
for await (const line of createInterface({input: process.stdin})) {
	console.log(encoding.encode(JSON.parse(line), [], []).length)
}
