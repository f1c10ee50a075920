// Package search searches the web through the API of a service: SearXNG, Brave,
// Tavily or Perplexity, one per file. Start with [Open].
package search
