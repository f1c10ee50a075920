// Package firecrawl is the provider that reads pages and sites through the
// Firecrawl API, version 1 or 2, hosted or self-hosted. Start with [Open].
//
// A crawl is a job of the server: crawl.go starts it, polls its status until it has
// ended, and reads its pages. The job's identifier is a note of the node, so that an
// interrupted call continues the same job.
package firecrawl
