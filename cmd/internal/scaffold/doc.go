// Package scaffold writes the project of a new plugin.
//
// Start with [Write]. A template is a complete project whose plugin is called
// greeter; that word is replaced by the plugin's name. The template for Go is in
// templates; the templates for other languages are the example plugins. These, the
// Go SDK and the protocol are [Files]: in the program if scripts/build made it,
// otherwise in the released modules or a checkout.
package scaffold
