// Package docs contains the pages of the documentation that tea shows.
package docs

import "embed"

// Errors has a page for each code of a finding, errors/TEA1401.md for example.
//
//go:embed errors/*.md
var Errors embed.FS
