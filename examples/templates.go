package examples

import "embed"

// Plugins contains the plugins in other languages than Go: `tea plugin new`
// writes them under another name. The protocol's files, to which each folder
// links, are missing.
//
//go:embed plugin-node/.gitignore plugin-node/*.md plugin-node/*.json plugin-node/*.yaml plugin-node/src plugin-node/tea-plugin-* plugin-node/test
var Plugins embed.FS
