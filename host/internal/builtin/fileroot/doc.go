// Package fileroot reads settings.file: the directory that file actions are
// confined to. Start with [OpenLazily].
package fileroot
