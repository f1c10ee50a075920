// Package chromium loads pages in an installed Chromium, for pages that need
// JavaScript and for screenshots. Start with [New] and [Browser.Render].
//
// A browser process (process.go) is started for the first page and shared by
// the pages after it, each in a separate browser context. The process is driven
// through a pipe, so that no debugging port is open. Its only way to the network
// is a proxy in this process (proxy.go), one for each page, which connects
// through a [safenet.Guard]: an address that a page, a redirect or a script
// leads to is checked at the time of the connection.
package chromium
