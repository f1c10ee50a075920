// Package chromium loads pages in an installed Chromium, for pages that need
// JavaScript and for screenshots. Start with [New] and [Browser.Render].
//
// A browser process (process.go) is started for the first page and shared by later
// pages, each in a separate browser context. The process is driven through a pipe, so
// that no debugging port is open. It reaches the network only through proxies in this
// process (proxy.go), one per page, which connect through a [safenet.Guard]. An address
// that a page, a redirect or a script leads to is checked when the connection is made.
package chromium
