// Package part has what the protocols of plugins/device have in common: a [Part] is a
// namespace of actions with its settings.
package part
