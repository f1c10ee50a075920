// Package documents is [store.MetadataStore] on a [store.QueryEngine]: JSON
// documents in one table. Start with [New].
package documents
