// Package fileroot reads settings.file: the directory that the actions on
// files stay in. Start with [OpenLazily].
package fileroot
