// Package web is the bundle of actions that read the web (web.scrape, web.crawl,
// web.search and web.extract) and documents (text.extract).
//
// Start with [Bundle]; each action is a method of [Client], which is created once
// per set of settings. A client selects a provider (provider.go), which implements
// the interfaces of package internal/page: package internal/local reads pages
// itself, the others call the API of a service.
package web
