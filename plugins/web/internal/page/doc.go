// Package page has the parameters and results of the web actions, and the
// interfaces that providers implement: [Scraper] and [Crawler].
package page
