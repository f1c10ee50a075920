// Package settings checks a workflow's settings against the schemas of those
// who read them: the host's bundles, bundles that are linked in, plugins, and
// the host itself, whose own keys stand here. Nothing is opened or started for
// it.
//
// Start with [Declare].
package settings
