// Package page defines the parameters and results of the web actions, and
// [Renderer], the browser for providers.
package page
