// Package settings checks a workflow's settings against the schemas of their
// readers: the host's bundles, linked bundles, plugins, and the host itself,
// whose own keys are defined here. It opens and starts nothing. Schemas also
// mark settings that are secret and settings that name files.
//
// Start with [Declare].
package settings
