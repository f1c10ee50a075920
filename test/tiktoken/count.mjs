// Prints the number of tokens of cl100k_base in each text: one JSON string a line on
// standard input, one number a line on standard output.
import {createInterface} from "node:readline"
import {createRequire} from "node:module"

const require = createRequire(process.argv[2] + "/node_modules/")
const {getEncoding} = require("js-tiktoken")
const encoding = getEncoding("cl100k_base")
for await (const line of createInterface({input: process.stdin})) {
	console.log(encoding.encode(JSON.parse(line), [], []).length)
}
