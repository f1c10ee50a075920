// Package page has the parameters and results of the web actions, and
// [Renderer], the browser that providers use.
package page
