// Command tea-wasm is the host for browsers, GOOS=js. The npm package in
// packages/browser loads it in a worker: start with its engine.js, and here with
// main.go. Both sides exchange JSON texts, so that integers keep their digits.
package main
